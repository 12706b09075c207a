"""`keras-seq augment`: makes training pairs of text in one language, and of other pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeVar

import typer

from keras_seq_cli.output import check_writable, notice
from keras_seq_cli.search_options import RERANK_OPTIONS, with_search_options
from keras_seq_cli.shared_options import OverwriteFile, Runner, To, Which, Workers
from keras_seq_cli.signals import exit_on_sigterm

if TYPE_CHECKING:
    from keras_seq.text import Example, PairFiles

_Item = TypeVar("_Item")
_Text = Annotated[
    list[str], typer.Argument(help="Files of sentences, one per line, or patterns; plain or .gz.")
]
_Pairs = Annotated[
    list[str], typer.Argument(help="Files of source<TAB>target lines or CSV, or patterns.")
]
_Columns = Annotated[
    str | None,
    typer.Option(help="Columns of PAIRS, by number or header: source=1,target=2,features=3."),
]
_PairOutput = Annotated[
    str,
    typer.Option("--output", "-o", help="File for the pairs; gzipped if its name ends in .gz."),
]
_Tag = Annotated[
    str, typer.Option(help="Text before each source, such as <bt>, to mark these pairs.")
]
_TargetLanguage = Annotated[
    str | None,
    typer.Option(help="Language of the targets, such as de, as a third column."),
]
_AnyLanguage = Annotated[
    bool,
    typer.Option(
        "--any-language", help="Accept text that does not look like the source language of RUN."
    ),
]
_Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]


# Omit --n-best, because each line gets one translation.
def _with_search(command: Any) -> Any:
    return with_search_options(command, without=("n_best", *RERANK_OPTIONS))


@_with_search
def back_translate(
    run: Annotated[str, typer.Argument(help="Run that translates TEXT.")],
    text: _Text,
    output: _PairOutput,
    tag: _Tag = "",
    to: To = None,
    target_language: _TargetLanguage = None,
    any_language: _AnyLanguage = False,
    which: Which = "best",
    workers: Workers = None,
    runner: Runner = "local",
    overwrite: OverwriteFile = False,
    *,
    search: dict[str, Any],
) -> None:
    """Translate text in the target language; the translations are sources.

    RUN translates from the target language to the source language of the run to be trained. If the
    command was interrupted, the same command resumes it.
    """
    _translate(
        run,
        text,
        output,
        runner,
        text_is="target",
        tag=tag,
        to=to,
        target_language=target_language,
        any_language=any_language,
        which=which,
        workers=workers,
        overwrite=overwrite,
        search=search,
    )


@_with_search
def self_train(
    run: Annotated[str, typer.Argument(help="Run that translates TEXT.")],
    text: _Text,
    output: _PairOutput,
    tag: _Tag = "",
    to: To = None,
    target_language: _TargetLanguage = None,
    any_language: _AnyLanguage = False,
    which: Which = "best",
    workers: Workers = None,
    runner: Runner = "local",
    overwrite: OverwriteFile = False,
    *,
    search: dict[str, Any],
) -> None:
    """Translate text in the source language; the translations are targets.

    If the command was interrupted, the same command resumes it.
    """
    _translate(
        run,
        text,
        output,
        runner,
        text_is="source",
        tag=tag,
        to=to,
        target_language=target_language,
        any_language=any_language,
        which=which,
        workers=workers,
        overwrite=overwrite,
        search=search,
    )


def _translate(run: str, text: list[str], output: str, runner: str, **options: Any) -> None:
    from keras_seq.augmentation import make_synthetic_pairs
    from keras_seq.jobs import require_ray, run_locally, run_on_ray

    if runner == "ray":
        require_ray()
    check_writable(output)
    with exit_on_sigterm():
        counts = make_synthetic_pairs(
            run,
            text,
            output,
            runner=run_on_ray if runner == "ray" else run_locally,
            notice=notice,
            **options,
        )
    _report(
        output,
        f"{counts.pairs:,} pairs; left out: {counts.blank:,} blank lines, "
        f"{counts.untranslated:,} without a translation, {counts.copies:,} copies",
    )


def copy(
    text: _Text,
    output: _PairOutput,
    tag: _Tag = "",
    target_language: _TargetLanguage = None,
    overwrite: OverwriteFile = False,
) -> None:
    """Make each line of text in the target language its own source."""
    from keras_seq.augmentation import copied_pairs
    from keras_seq.text import expand_names, language_tag, read_lines

    if target_language is not None:
        language_tag(target_language)
    names = expand_names(text)
    lines = _Counted(
        (line for name in names for line in read_lines(name, notice=notice)), str.strip
    )
    examples = copied_pairs(lines.kept(), tag=tag)
    number = _write(output, names, examples, overwrite, target_language)
    _report(output, f"{number:,} pairs; left out: {lines.left_out:,} blank lines")


def noise(
    pairs: _Pairs,
    output: _PairOutput,
    columns: _Columns = None,
    drop: Annotated[float, typer.Option(help="Probability of removing a word.")] = 0.1,
    mask: Annotated[float, typer.Option(help="Probability of masking a word.")] = 0.0,
    swap: Annotated[int, typer.Option(help="Maximum distance of a word from its place.")] = 3,
    mask_text: Annotated[
        str, typer.Option(help="What replaces a masked word; add it to tokenizer.symbols.")
    ] = "<mask>",
    unit: Annotated[
        Literal["word", "character"], typer.Option(help="What is removed, masked and swapped.")
    ] = "word",
    copies: Annotated[int, typer.Option(min=1, help="Pairs to make of each pair.")] = 1,
    seed: _Seed = 0,
    overwrite: OverwriteFile = False,
) -> None:
    """Remove, mask and swap words of the sources; the targets stay."""
    from keras_seq.augmentation import Noise, noised_pairs

    amount = Noise(drop, mask, swap, mask_text, unit)
    amount.check()
    files = _pair_files(pairs, columns)
    read = _Counted(files.read(notice), _is_usable)
    examples = noised_pairs(read.kept(), amount, copies=copies, seed=seed)
    number = _write(output, files.names["pairs"], examples, overwrite)
    _report(output, _made_of(number, read))


def hallucinate(
    pairs: _Pairs,
    output: _PairOutput,
    columns: _Columns = None,
    count: Annotated[int, typer.Option(min=1, help="Number of pairs to make.")] = 10_000,
    seed: _Seed = 0,
    overwrite: OverwriteFile = False,
) -> None:
    """Replace the stems of words by random letters, on both sides, for inflection."""
    from keras_seq.augmentation import hallucinated_pairs

    files = _pair_files(pairs, columns)
    read = _Counted(files.read(notice), _is_usable)
    # Says how many pairs have no stem.
    examples = hallucinated_pairs(list(read.kept()), count, seed=seed, notice=notice)
    number = _write(output, files.names["pairs"], examples, overwrite)
    _report(output, f"{number:,} pairs; left out: {read.left_out:,} without text on both sides")
    if number < count:
        notice(f"fewer than {count:,}, because the stems of these pairs allow no others")


class _Counted(Generic[_Item]):
    """Counts the items that `is_kept` accepts and those that it leaves out."""

    def __init__(self, items: Iterable[_Item], is_kept: Callable[[_Item], object]) -> None:
        self._items, self._is_kept = items, is_kept
        self.number = self.left_out = 0

    def kept(self) -> Iterator[_Item]:
        for item in self._items:
            if self._is_kept(item):
                self.number += 1
                yield item
            else:
                self.left_out += 1


def _is_usable(example: Example) -> bool:
    return example.usable


def _made_of(number: int, read: _Counted[Example]) -> str:
    return (
        f"{number:,} pairs made of {read.number:,}; left out: {read.left_out:,} without text on "
        "both sides"
    )


def _report(output: str, line: str) -> None:
    from keras_seq.augmentation import HELD_OUT_ADVICE

    notice(f"{output}: {line}")
    notice(f"{output}: {HELD_OUT_ADVICE}")


def _pair_files(pairs: list[str], columns: str | None) -> PairFiles:
    from keras_seq.text import InputError, PairFiles

    files = PairFiles(pairs=pairs, columns=columns)
    if files.has_languages:
        # The tag is a word of the source, which noise could remove.
        raise InputError("--columns: received target_language, expected source, target or features")
    return files


def _write(
    output: str,
    inputs: Iterable[str],
    examples: Iterable[Example],
    overwrite: bool,
    target_language: str | None = None,
) -> int:
    """Writes the pairs and returns their number."""
    from keras_seq.augmentation import check_output, pair_line
    from keras_seq.storage import atomic_lines
    from keras_seq.text import InputError

    path = Path(output)
    check_writable(output)
    check_output(path, inputs, overwrite=overwrite)
    count = 0
    with exit_on_sigterm(), atomic_lines(path) as write:
        for example in examples:
            write(pair_line(example.source, example.target, target_language))
            count += 1
        if not count:
            raise InputError(f"{', '.join(inputs)}: no pair has text")
    return count
