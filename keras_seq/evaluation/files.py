"""The files of a test set."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from keras_seq.data import find_sound
from keras_seq.run import Run
from keras_seq.settings import TASKS
from keras_seq.text import (
    PAIR,
    TAGGED,
    FeatureTokenizer,
    InputError,
    check_readable,
    check_same_length,
    feature_notice,
    parse_columns,
    read_labeled,
    read_lines,
    read_pairs,
    read_table,
    with_languages,
)

Name = str | os.PathLike[str] | None


@dataclass(frozen=True)
class EvaluationFiles:
    """Paths of the files of a test set; None for a file that is absent.

    Attributes:
        pairs: `source<TAB>target` lines, for task `translate`; `path<TAB>text` for `speech`;
            `path<TAB>spans` for `wake-word`.
        source, target: Instead of `pairs`, two files with as many lines.
        text: Lines of text, for task `language-model`.
        labeled: `text<TAB>label` lines for task `classify`, `text<TAB>tags` lines for task `tag`.
        data: Instead of `pairs`, `text` or `labeled`, the file that the task needs.
        columns: The columns of `pairs` or `labeled`, see `read_table`; by default as in the run.
        to: The target language of all sources, for a run with several and files that name none.
    """

    pairs: Name = None
    source: Name = None
    target: Name = None
    text: Name = None
    labeled: Name = None
    data: Name = None
    columns: str | None = None
    to: str | None = None

    def read(self, run: Run, notice: Callable[[str], None] | None = None) -> list[tuple[str, str]]:
        """Reads pairs of input and reference. The input of a language model is "".

        The task of the run decides which files are expected. `notice` receives a line for each
        repair of a file. Raises InputError if the files do not fit the task, cannot be read,
        or are empty.
        """
        task, columns = run.settings.task, self.columns or run.settings.data.columns
        examples = self._read(task, columns, notice)
        if not examples:
            raise InputError(f"{self._paths()[0][1]}: empty, there is nothing to evaluate")
        _check_features(run, examples, columns, notice)
        return _with_languages(run, examples, columns, self.to)

    @property
    def is_given(self) -> bool:
        """True if any file is named."""
        return bool(self._paths())

    @property
    def name(self) -> str:
        """The name of the test set in a model card."""
        names = ["standard input" if path == "-" else Path(path).name for _, path in self._paths()]
        return ", ".join(names).replace("|", "\\|")

    def _paths(self) -> list[tuple[str, str]]:
        """The names of the options and the paths that are not None."""
        return [
            (name, os.fspath(path))
            for name, path in vars(self).items()
            if path is not None and name not in ("columns", "to")
        ]

    def _read(
        self, task: str, columns: str | None, notice: Callable[[str], None] | None
    ) -> list[tuple[str, str]]:
        names = [name for name, _ in self._paths()]
        roles = TASKS[task].roles
        if roles == PAIR and names == ["source", "target"]:
            source, target = self.source or "-", self.target or "-"
            reading = read_pairs(source, target, notice=notice)
            check_same_length(source, target)
            return list(reading)
        expected = "text" if roles is None else "pairs" if roles == PAIR else "labeled"
        if names not in ([expected], ["data"]):
            received = ", ".join(f"--{name}" for name in names) or "no file"
            other = ", or --source and --target" if roles == PAIR else ""
            raise InputError(
                f"received {received}, expected --{expected} FILE{other}: the task of the run is "
                f"{task!r}"
            )
        path = self._paths()[0][1]
        check_readable(path)
        if roles is None:
            return [("", line) for line in read_lines(path, notice=notice)]
        if roles == PAIR:
            rows = list(read_table(path, columns=columns, notice=notice))
            if not TASKS[task].reads_sounds:
                return rows
            folder = Path(path).parent
            return [(str(find_sound(name, [folder])), text) for name, text in rows]
        pairs = read_labeled(path, tagged=roles == TAGGED, columns=columns, notice=notice)
        # Texts without a label and texts without words cannot be scored.
        return [(text, label) for text, label in pairs if label]


def _check_features(
    run: Run,
    examples: list[tuple[str, str]],
    columns: str | None,
    notice: Callable[[str], None] | None,
) -> None:
    """Raises InputError if only one of the run and the test set has features."""
    if run.settings.task != "translate":
        return
    tokenizer = run.source_tokenizer
    has_features = columns is not None and parse_columns(columns, PAIR).has_features
    if has_features != isinstance(tokenizer, FeatureTokenizer):
        expected = "no features" if has_features else "the column of features, as in features=3,"
        raise InputError(f"data.columns: received {columns!r}, expected {expected} as in training")
    message = feature_notice([source for source, _ in examples], tokenizer)
    if message and notice is not None:
        notice(message)


def _with_languages(
    run: Run, examples: list[tuple[str, str]], columns: str | None, to: str | None
) -> list[tuple[str, str]]:
    """Adds the target language to each source; raises InputError if one has none or needs none."""
    if run.settings.task == "translate" and columns is not None:
        if parse_columns(columns, PAIR).has_languages and not run.languages:
            raise InputError(
                f"data.columns: received {columns!r}, expected no target_language as in training"
            )
    sources, references = zip(*examples, strict=True)
    return list(zip(with_languages(sources, run.languages, to), references, strict=True))
