"""Training pairs whose targets are translations by a teacher."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from keras_seq.augmentation.pair_lines import (
    check_output,
    columns_of,
    job_folder,
    pair_line,
    without_tabs,
)
from keras_seq.jobs import run_locally, translate_files
from keras_seq.preparation.files import training_files
from keras_seq.run import Run
from keras_seq.scoring import bleu_tokenizer, pairwise_scores
from keras_seq.storage import atomic_lines, make_directory, remove
from keras_seq.text import Example, InputError, Notice, PairFiles, read_lines, split_language

_SOURCES = "sources.txt"


class DistilledCounts(NamedTuple):
    """Number of pairs that `make_distilled_pairs` wrote, and of those that it left out.

    `changed` pairs have another target than before. `untranslated` pairs have no translation, and
    the teacher validated on the sources of `held_out` pairs.
    """

    pairs: int
    changed: int
    untranslated: int
    held_out: int = 0


def make_distilled_pairs(
    teacher: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    files: PairFiles | None = None,
    closest: Literal["none", "chrf", "bleu", "exact"] = "none",
    candidates: int = 8,
    which: str | int = "best",
    ensemble: Sequence[str | os.PathLike[str]] = (),
    search: Mapping[str, Any] | None = None,
    workers: int | None = None,
    runner: Callable[..., Any] = run_locally,
    overwrite: bool = False,
    notice: Notice | None = None,
) -> DistilledCounts:
    """Writes the pairs of a corpus with the teacher's translations as targets.

    A small model learns more from them than from the corpus, because they vary less: the same
    words are mostly translated in the same way. This is sequence-level knowledge distillation, by
    the best translation or by the candidate that is closest to the target of the corpus.

    Features and target languages of the corpus are the third column of the output. Weights of the
    corpus are written to a file with the name of `output` and the ending `.weights`, instead of
    `.gz` if it ends so. Without `files`, the corpus is the training text of the teacher, without
    the pairs that the teacher held out for its validation.

    The translations are stored in `output` + ".job" until the end. If the call is interrupted, the
    same call resumes it from there.

    Args:
        teacher: The run that translates.
        output: The file to write, gzipped if its name ends in `.gz`.
        files: The corpus; by default the training text of the teacher.
        closest: The metric that chooses among the candidates, or `"none"` for the best translation.
        candidates: The number of translations to choose from.
        which: Checkpoint to load: `"best"`, `"latest"`, or the step of a stored checkpoint.
        ensemble: Other run directories with the same vocabularies, which teach together.
        search: Search settings that override those of the teacher.
        workers: Number of workers; by default one per four cores.
        runner: `keras_seq.jobs.run_locally` or `run_on_ray`.
        overwrite: Boolean, whether to replace `output` and to delete the translations of another
            call.
        notice: Function that receives messages.

    Raises:
        InputError: The corpus cannot be read, `output` exists, a package or file of the tokenizer
            of BLEU is missing, or no pair is left.
        SettingsError: There are more candidates than hypotheses in the beam.
        JobError: A line cannot be translated, or no worker starts.

    Reference:
        Kim and Rush, "Sequence-Level Knowledge Distillation", EMNLP 2016
    """
    path = Path(output)
    opened = Run.open(teacher, notice=notice)
    opened.require_task("translate")
    tokenize = opened.settings.score.tokenize
    if closest == "bleu":
        _require_tokenizer(tokenize)
    held_out = set() if files else _held_out_sources(opened)
    files = files or training_files(opened.settings.data)
    weights_path = _weights_path(path) if files.has_weights else None
    inputs = list(itertools.chain(*files.names.values()))
    folder = job_folder(path, _SOURCES, "translated")
    # A kill may come between the two files; the weights are then written again.
    interrupted = folder.exists() and not path.exists()
    check_output(path, inputs, overwrite=overwrite)
    check_output(_weights_path(path), inputs, overwrite=overwrite or interrupted)
    count = 1 if closest == "none" else candidates
    own = opened.settings.search
    search = {"beam_size": max(count, own.beam_size), **(search or {})}
    search = {"n_best": 1, **search} if count == 1 else own.of_candidates(count, search)
    corpus = _Corpus(files, held_out)
    make_directory(folder, parents=True)
    left_out = corpus.write_sources(folder / _SOURCES, notice)
    translate_files(
        teacher,
        str(folder / _SOURCES),
        folder / "translated",
        which=which,
        ensemble=ensemble,
        search=search,
        workers=workers,
        runner=runner,
        overwrite=overwrite,
        notice=notice,
    )
    translations = _candidates(folder / "translated" / _SOURCES, count)
    choose = functools.partial(_closest, metric=closest, tokenize=tokenize)
    counts = _write(path, weights_path, corpus, translations, choose)
    remove(folder)
    if notice is not None:
        if weights_path is not None:
            notice(f"{weights_path}: the weights of these pairs, for --weights")
        if third := corpus.third:
            notice(f"{path}: three columns: {columns_of(third)}")
    return counts._replace(held_out=left_out)


def _require_tokenizer(name: str) -> None:
    try:
        bleu_tokenizer(None if name == "auto" else name)
    except ValueError as error:
        raise InputError(f"score.tokenize: {error}") from None


def _held_out_sources(run: Run) -> set[str]:
    """Returns the sources of the validation text that was taken from the training text."""
    data = run.settings.data
    has_files = data.valid_pairs is not None or data.valid_source is not None
    return set() if has_files or not run.has_valid_lines else set(run.valid_lines()[0])


def _weights_path(path: Path) -> Path:
    return path.with_name(f"{path.name.removesuffix('.gz')}.weights")


class _Corpus:
    """The pairs to translate: those with text whose source is not held out."""

    def __init__(self, files: PairFiles, held_out: Collection[str] = ()) -> None:
        self.files = files
        # A run that could not hold any pair out has validated on its training text.
        is_used = any(example.key not in held_out for example in files.read_usable())
        self._held_out = held_out if is_used else ()

    @property
    def third(self) -> str | None:
        """The role of the third column; None for two columns."""
        if self.files.has_languages:
            return "target_language"
        return "features" if self.files.has_features else None

    def is_held_out(self, example: Example) -> bool:
        return example.key in self._held_out

    def read(self) -> Iterator[Example]:
        """Yields the pairs to translate."""
        return (self._plain(one) for one in self.files.read_usable() if not self.is_held_out(one))

    def write_sources(self, path: Path, notice: Notice | None) -> int:
        """Writes the sources to translate, and returns the number of pairs that are held out."""
        held_out = 0
        with atomic_lines(path) as write:
            for example in self.files.read_usable(notice):
                if self.is_held_out(example):
                    held_out += 1
                else:
                    write(self._plain(example).source)
        return held_out

    def _plain(self, example: Example) -> Example:
        # Only features follow a tab.
        has_features = self.files.has_features
        return example if has_features else example._replace(source=without_tabs(example.source))


def _candidates(path: Path, count: int) -> Iterator[list[str]]:
    """Yields the translations of each source, best first."""
    lines = read_lines(str(path))
    if count == 1:
        yield from ([line] for line in lines)
        return
    # With several translations, a line is `number<TAB>score<TAB>translation`.
    rows = (line.split("\t", 2) for line in lines)
    for _, group in itertools.groupby(rows, key=lambda row: row[0]):
        yield [row[2] for row in group]


def _write(
    path: Path,
    weights_path: Path | None,
    corpus: _Corpus,
    translations: Iterator[list[str]],
    choose: Callable[[list[str], str], str],
) -> DistilledCounts:
    pairs = changed = untranslated = 0
    if weights_path is None:
        # Those of an earlier corpus do not belong to these pairs.
        remove(_weights_path(path))
    with contextlib.ExitStack() as files:
        write = files.enter_context(atomic_lines(path))
        write_weight = files.enter_context(atomic_lines(weights_path)) if weights_path else None
        for example, candidates in zip(corpus.read(), translations, strict=True):
            target = choose(candidates, example.target)
            if not target.strip():
                untranslated += 1
                continue
            pairs += 1
            changed += target.split() != example.target.split()
            language, source = None, example.source
            if corpus.files.has_languages:
                language, source = split_language(source)
            write(pair_line(source, target, language))
            if write_weight is not None:
                write_weight(repr(example.weight))
        if not pairs:
            raise InputError(f"no pair is left: {untranslated:,} sources without a translation")
    return DistilledCounts(pairs, changed, untranslated)


def _closest(candidates: list[str], reference: str, *, metric: str, tokenize: str = "auto") -> str:
    if metric == "none" or len(candidates) == 1:
        return candidates[0]
    scores = pairwise_scores([*candidates, reference], metric, tokenize=tokenize)[:-1, -1]
    # Of equal candidates the first is the one that the teacher prefers.
    return candidates[int(np.argmax(scores))]
