"""Training pairs of monolingual text and its translations: back-translation and self-training."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from keras_seq.cleaning import CharacterModel, is_copy
from keras_seq.jobs import run_locally, translate_files
from keras_seq.run import Run
from keras_seq.storage import atomic_lines, remove
from keras_seq.text import InputError, Notice, expand_names, read_lines

# Lines of the text that are compared with the validation text of the run, and the least number of
# both for that.
_COMPARED, _MIN_LINES = 1000, 10


class SyntheticCounts(NamedTuple):
    """Number of pairs that `make_synthetic_pairs` wrote, and of lines that it left out.

    `blank` lines have no text, `untranslated` ones no translation, and `copies` are translated by
    themselves, apart from case, digits and punctuation.
    """

    pairs: int
    blank: int
    untranslated: int
    copies: int


def make_synthetic_pairs(
    run: str | os.PathLike[str],
    texts: str | Sequence[str],
    output: str | os.PathLike[str],
    *,
    text_is: Literal["target", "source"] = "target",
    tag: str = "",
    which: str | int = "best",
    search: Mapping[str, Any] | None = None,
    to: str | None = None,
    workers: int | None = None,
    runner: Callable[..., Any] = run_locally,
    overwrite: bool = False,
    notice: Notice | None = None,
) -> SyntheticCounts:
    """Translates text in one language, and writes `source<TAB>target` lines to train another run.

    The translations are stored in `output` + ".job" until the end. If the call is interrupted, the
    same call resumes it from there. Each pair needs text on both sides, and pairs whose sides are
    equal are left out.

    Args:
        run: The run that translates the texts. For back-translation its source language is the
            target language of the run to be trained.
        texts: Paths or patterns of files in the source language of `run`, one sentence per line.
        output: The file to write.
        text_is: `"target"` for back-translation: the texts are targets and their translations are
            sources. `"source"` for self-training: the translations are targets.
        tag: Text before each source, which tells the model that it is synthetic.
        which: Checkpoint to load: `"best"`, `"latest"`, or the step of a stored checkpoint.
        search: Search settings that override those of the run, such as
            `{"method": "sampling"}`.
        to: The target language of `run`, if it has several.
        workers: Number of workers; by default one per four cores.
        runner: `keras_seq.jobs.run_locally` or `run_on_ray`.
        overwrite: Boolean, whether to replace `output` and to delete the translations of another
            call.
        notice: Function that receives messages.

    Raises:
        InputError: A file cannot be read, `output` exists, the texts look like the other language
            of the run, or no pair is left.
        JobError: A line cannot be translated, or no worker starts.

    Reference:
        Sennrich et al., "Improving Neural Machine Translation Models with Monolingual Data", ACL
        2016; for the tag: Caswell et al., "Tagged Back-Translation", WMT 2019
    """
    path = Path(output)
    if path.exists() and not overwrite:
        raise InputError(f"{path}: exists already; --overwrite replaces it")
    opened = Run.open(run, notice=notice)
    opened.require_task("translate")
    names = expand_names(texts)
    _check_language(opened, names)
    folder = path.with_name(f"{path.name}.job")
    translate_files(
        run,
        names,
        folder,
        which=which,
        search={"n_best": 1, **(search or {})},
        to=to,
        workers=workers,
        runner=runner,
        overwrite=overwrite,
        notice=notice,
    )
    counts = _write(path, _translated(names, folder), text_is, tag)
    remove(folder)
    return counts


def _translated(names: Sequence[str], folder: Path) -> Iterator[tuple[str, str]]:
    """Yields each line with its translation."""
    for name in names:
        output = folder / os.path.basename(name).removesuffix(".gz")
        yield from zip(read_lines(name), read_lines(str(output)), strict=True)


def _write(
    path: Path, translated: Iterator[tuple[str, str]], text_is: str, tag: str
) -> SyntheticCounts:
    pairs = blank = untranslated = copies = 0
    begin = f"{tag} " if tag else ""
    with atomic_lines(path) as write:
        for text, translation in translated:
            if not text.strip():
                blank += 1
            elif not translation.strip():
                untranslated += 1
            elif is_copy(text, translation):
                copies += 1
            else:
                pairs += 1
                sides = (translation, text) if text_is == "target" else (text, translation)
                source, target = (side.replace("\t", " ") for side in sides)
                write(f"{begin}{source}\t{target}")
        if not pairs:
            raise InputError(
                f"no pair is left of {blank + untranslated + copies:,} lines: {blank:,} blank, "
                f"{untranslated:,} without a translation, {copies:,} translated by themselves"
            )
    return SyntheticCounts(pairs, blank, untranslated, copies)


def _check_language(run: Run, names: Sequence[str]) -> None:
    """Raises InputError if a text looks more like the targets of the run than like its sources."""
    # A run of several target languages often has the same languages as sources.
    if run.languages or not run.has_valid_lines:
        return
    sides = run.valid_lines()
    if min(map(len, sides)) < _MIN_LINES:
        return
    models = [CharacterModel(), CharacterModel()]
    for model, lines in zip(models, sides, strict=True):
        model.add(lines)
    num_letters = len(models[0].letters | models[1].letters) + 1
    for name in names:
        filled = (line for line in read_lines(name) if line.strip())
        lines = list(itertools.islice(filled, _COMPARED))
        if len(lines) < _MIN_LINES:
            continue
        source, target = (model.log_probabilities(lines, num_letters).sum() for model in models)
        if target > source:
            raise InputError(
                f"{name}: looks like the target language of {run.path}, expected its source "
                "language: for back-translation, train a run in the opposite direction"
            )
