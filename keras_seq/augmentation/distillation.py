"""Training pairs whose targets are translations by a teacher."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from keras_seq.augmentation.pair_lines import pair_line
from keras_seq.jobs import run_locally, translate_files
from keras_seq.preparation.files import training_files
from keras_seq.run import Run
from keras_seq.scoring import pairwise_scores
from keras_seq.storage import atomic_lines, make_directory, remove
from keras_seq.text import Example, InputError, Notice, PairFiles, read_lines, split_language

_SOURCES = "sources.txt"


class DistilledCounts(NamedTuple):
    """Number of pairs that `make_distilled_pairs` wrote, and of those that it left out.

    `changed` pairs have another target than before. `untranslated` pairs have no translation.
    """

    pairs: int
    changed: int
    untranslated: int


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

    Features and target languages of the corpus are the third column of the output.

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
        InputError: The corpus cannot be read, `output` exists, or no pair is left.
        JobError: A line cannot be translated, or no worker starts.

    Reference:
        Kim and Rush, "Sequence-Level Knowledge Distillation", EMNLP 2016
    """
    path = Path(output)
    if path.exists() and not overwrite:
        raise InputError(f"{path}: exists already; --overwrite replaces it")
    opened = Run.open(teacher, notice=notice)
    opened.require_task("translate")
    files = files or training_files(opened.settings.data)
    folder = path.with_name(f"{path.name}.job")
    count = 1 if closest == "none" else candidates
    sizes = {"beam_size": max(count, opened.settings.search.beam_size), "n_best": count}
    _write_sources(files, folder)
    translate_files(
        teacher,
        str(folder / _SOURCES),
        folder / "translated",
        which=which,
        ensemble=ensemble,
        search={**sizes, **(search or {})},
        workers=workers,
        runner=runner,
        overwrite=overwrite,
        notice=notice,
    )
    translations = _candidates(folder / "translated" / _SOURCES, count)
    counts = _write(
        path, _examples(files), translations, closest, has_languages=files.has_languages
    )
    remove(folder)
    return counts


def _examples(files: PairFiles) -> Iterator[Example]:
    for example in files.read_usable():
        # Only features follow a tab.
        source = example.source if files.has_features else example.source.replace("\t", " ")
        yield example._replace(source=source)


def _write_sources(files: PairFiles, folder: Path) -> None:
    make_directory(folder, parents=True)
    with atomic_lines(folder / _SOURCES) as write:
        for example in _examples(files):
            write(example.source)


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
    examples: Iterable[Example],
    translations: Iterator[list[str]],
    closest: str,
    *,
    has_languages: bool = False,
) -> DistilledCounts:
    pairs = changed = untranslated = 0
    with atomic_lines(path) as write:
        for example, candidates in zip(examples, translations, strict=True):
            target = _closest(candidates, example.target, closest)
            if not target.strip():
                untranslated += 1
                continue
            pairs += 1
            changed += target.split() != example.target.split()
            language, source = (
                split_language(example.source) if has_languages else (None, example.source)
            )
            write(pair_line(source, target) + ("" if language is None else f"\t{language}"))
        if not pairs:
            raise InputError(f"no pair is left: {untranslated:,} sources without a translation")
    return DistilledCounts(pairs, changed, untranslated)


def _closest(candidates: list[str], reference: str, metric: str) -> str:
    if metric == "none" or len(candidates) == 1:
        return candidates[0]
    scores = pairwise_scores([*candidates, reference], metric)[:-1, -1]
    # Of equal candidates the first is the one that the teacher prefers.
    return candidates[int(np.argmax(scores))]
