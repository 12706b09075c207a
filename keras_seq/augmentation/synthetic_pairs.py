"""Training pairs of monolingual text and its translations: back-translation and self-training."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from keras_seq.augmentation.language_check import require_source_language, validation_statistics
from keras_seq.augmentation.pair_lines import (
    before_source,
    check_output,
    columns_of,
    job_folder,
    pair_line,
    without_tabs,
)
from keras_seq.cleaning import CorpusStatistics, is_copy
from keras_seq.jobs import run_locally, translate_files
from keras_seq.jobs.translation import JOB
from keras_seq.run import Run
from keras_seq.storage import atomic_lines, remove
from keras_seq.text import (
    InputError,
    Notice,
    expand_names,
    language_tag,
    read_lines,
    split_language,
    with_languages,
)

# Copies among the validation pairs that show that copies are right; fewer may be by chance.
_MIN_COPIES = 10


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
    target_language: str | None = None,
    any_language: bool = False,
    workers: int | None = None,
    runner: Callable[..., Any] = run_locally,
    overwrite: bool = False,
    notice: Notice | None = None,
) -> SyntheticCounts:
    """Translates text in one language, and writes `source<TAB>target` lines to train another run.

    The translations are stored in `output` + ".job" until the end. If the call is interrupted, the
    same call resumes it from there. Each pair needs text on both sides. Pairs whose sides are equal
    are left out, unless more than 10 % of the validation pairs of `run` are such copies.

    Features that follow a text after a tab, for a run with features, become the third column. So
    does the target language, if `target_language` names it, and in self-training by a run of
    several target languages.

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
        target_language: The language of the targets, for a run to be trained with several target
            languages. In self-training, a run of several languages tells it already.
        any_language: Boolean, whether to accept text that does not look like the source language of
            `run`.
        workers: Number of workers; by default one per four cores.
        runner: `keras_seq.jobs.run_locally` or `run_on_ray`.
        overwrite: Boolean, whether to replace `output` and to delete the translations of another
            call.
        notice: Function that receives messages.

    Raises:
        InputError: A file cannot be read, `output` exists, a text does not look like the source
            language of the run, or no pair is left.
        JobError: A line cannot be translated, or no worker starts.

    Reference:
        Sennrich et al., "Improving Neural Machine Translation Models with Monolingual Data", ACL
        2016; for the tag: Caswell et al., "Tagged Back-Translation", WMT 2019
    """
    path = Path(output)
    names = expand_names(texts)
    check_output(path, names, overwrite=overwrite)
    opened = Run.open(run, notice=notice)
    opened.require_task("translate")
    columns = _Columns.of(opened, text_is, tag, to, target_language)
    statistics = validation_statistics(opened)
    # A run of several target languages often has the same languages as sources.
    if statistics is not None and not any_language and not opened.languages:
        require_source_language(opened, statistics, names)
    keeps_copies = statistics is not None and _has_many_copies(statistics)
    folder = job_folder(path, JOB, *map(_output_name, names))
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
    counts = _write(path, _translated(names, folder), columns, keeps_copies=keeps_copies)
    remove(folder)
    if notice is not None:
        for line in columns.notices(path):
            notice(line)
    return counts


def _has_many_copies(statistics: CorpusStatistics) -> bool:
    copies = round(statistics.copies * statistics.num_examples)
    return statistics.copies_are_right and copies >= _MIN_COPIES


def _output_name(name: str) -> str:
    return os.path.basename(name).removesuffix(".gz")


def _translated(names: Sequence[str], folder: Path) -> Iterator[tuple[str, str]]:
    """Yields each line with its translation."""
    for name in names:
        output = folder / _output_name(name)
        yield from zip(read_lines(name), read_lines(str(output)), strict=True)


class _Columns(NamedTuple):
    """Makes the columns of the output of a text and its translation.

    Attributes:
        text_is: The side of the text.
        begin: What a tag puts before each source.
        languages: The target languages of the run that translates.
        to: The target language of lines that name none.
        target_language: The language of all targets; None if unknown.
        has_features: Whether features follow the text of a line after a tab.
    """

    text_is: str = "target"
    begin: str = ""
    languages: Sequence[str] = ()
    to: str | None = None
    target_language: str | None = None
    has_features: bool = False

    @classmethod
    def of(
        cls, run: Run, text_is: str, tag: str, to: str | None, target_language: str | None
    ) -> _Columns:
        """Raises InputError if `target_language` is not a name, or does not suit the run."""
        has_features = run.settings.data.has_features
        if target_language is not None:
            language_tag(target_language)
            received = f"target language of the pairs: received {target_language!r}, expected none"
            if has_features:
                raise InputError(
                    f"{received}: {run.path} reads features, and pairs have either features or "
                    "target languages"
                )
            if run.languages and text_is == "source":
                raise InputError(f"{received}: it is the language that {run.path} translates into")
        return cls(text_is, before_source(tag), run.languages, to, target_language, has_features)

    @property
    def third(self) -> str | None:
        """The role of the third column; None for two columns."""
        if self.has_features:
            return "features"
        is_known = self.target_language is not None or (self.languages and self.text_is == "source")
        return "target_language" if is_known else None

    def text(self, line: str) -> str:
        """Returns a line without features and the tag of a language."""
        if self.languages:
            line = split_language(line)[1]
        return line.partition("\t")[0] if self.has_features else without_tabs(line)

    def line(self, line: str, translation: str) -> str:
        """Returns the line of a pair."""
        text, translation = self.text(line), without_tabs(translation)
        sides = (translation, text) if self.text_is == "target" else (text, translation)
        source = f"{self.begin}{sides[0]}"
        language = self.target_language
        if self.has_features:
            source += f"\t{line.partition(chr(9))[2]}"
        elif self.languages and self.text_is == "source":
            language = split_language(with_languages([line], self.languages, self.to)[0])[0]
        return pair_line(source, sides[1], language)

    def notices(self, path: Path) -> Iterator[str]:
        """Yields how to read the pairs."""
        if self.third is not None:
            yield f"{path}: three columns: {columns_of(self.third)}"
        elif self.languages:
            yield (
                f"{path}: two columns; for a corpus of several target languages, name the "
                "language of the text by --target-language"
            )


def _write(
    path: Path,
    translated: Iterator[tuple[str, str]],
    columns: _Columns,
    *,
    keeps_copies: bool = False,
) -> SyntheticCounts:
    pairs = blank = untranslated = copies = 0
    with atomic_lines(path) as write:
        for line, translation in translated:
            text = columns.text(line)
            if not text.strip():
                blank += 1
            elif not translation.strip():
                untranslated += 1
            elif not keeps_copies and is_copy(text, translation):
                copies += 1
            else:
                pairs += 1
                write(columns.line(line, translation))
        if not pairs:
            raise InputError(
                f"no pair is left of {blank + untranslated + copies:,} lines: {blank:,} blank, "
                f"{untranslated:,} without a translation, {copies:,} translated by themselves"
            )
    return SyntheticCounts(pairs, blank, untranslated, copies)
