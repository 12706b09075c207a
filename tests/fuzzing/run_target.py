"""The target of the fuzzers that damages one file of a run directory.

There are two runs: of a translator, whose corpus has weights, links and features, and of a
classifier. All that commands read before they build a model is read: settings, vocabularies,
checkpoint and training state, prepared text, logs, results and evaluations.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
from fuzzing.mutations import damaged_bytes, damaged_json, json_files
from run_helpers import BOTH, SHAPES, forge, weights

from keras_seq.data import TokenCorpus, TokenPair, write_corpus
from keras_seq.run import Run
from keras_seq.settings import load_settings
from keras_seq.text import InputError, Labels, Tokenizer

SOURCES = ["a dog runs", "two cats", "½ é 漢 😀"] * 3
TARGETS = ["ein Hund rennt", "zwei Katzen", "½ é 漢 😀"] * 3
NAMES = ["good", "bad", "good"] * 3
# The weights of `run_helpers` are enough for this model.
TINY = {
    "translate": {
        "model.num_encoder_layers": 1,
        "model.num_decoder_layers": 1,
        "model.units": 1,
        "model.feedforward_units": 1,
        "model.num_heads": 1,
    },
    "classify": {"model.embedding_units": 1, "model.widths": [1], "model.filters": 1},
}
VALIDATION = {
    "kind": "validation",
    "step": 1,
    "minutes": 0.1,
    "loss": 2.5,
    "temperature": 1.1,
    "threshold": 0.6,
    "outside_penalty": 0.3,
    "signature": "nrefs:1",
}


class RunFiles:
    """A run with one damaged file at a time.

    Args:
        path: The new directory.
        task: "translate" or "classify".
    """

    def __init__(self, path: Path, task: str) -> None:
        from keras_seq.callbacks import Validation

        self.path = path
        self.monitor = "bleu" if task == "translate" else "accuracy"
        pairs = path.with_suffix(".tsv")
        outputs = TARGETS if task == "translate" else NAMES
        pairs.write_text("".join(f"{a}\t{b}\n" for a, b in zip(SOURCES, outputs, strict=True)))
        text = "data.pairs" if task == "translate" else "data.labeled"
        settings = {"task": task, text: str(pairs), **TINY[task], "data.max_source_length": 20}
        self.run = Run.create(path, load_settings(overrides=settings))
        self._write_text(task, outputs)
        self.validation = Validation(lambda step: {}, 1, self.monitor, patience=5)
        self._write_training()
        self.run.unlock()
        self.data = self.run.settings.data
        self.checkpoint = path / "checkpoints" / "step-00000001"
        self.files = {
            str(file.relative_to(path)): file.read_bytes()
            for file in sorted(path.rglob("*"))
            if file.is_file() and file.stat().st_size < 100_000
        }

    def _write_text(self, task: str, outputs: list[str]) -> None:
        from keras_seq.preparation.files import PairCounts
        from keras_seq.preparation.record import make_record
        from keras_seq.text import LineStatistics

        tokenizer = Tokenizer.train(SOURCES + TARGETS, size=300)
        target = tokenizer if task == "translate" else Labels(["bad", "good"])
        self.run.save_vocabularies(tokenizer, target)
        sources = tokenizer.encode(SOURCES)
        targets = tokenizer.encode(outputs)
        if isinstance(target, Labels):
            targets = [[number] for number in target.ids(outputs)]
        all_parts = task == "translate"
        pairs = [
            TokenPair(a, b, 0.5, [(0, 0)], [4]) if all_parts else TokenPair(a, b)
            for a, b in zip(sources, targets, strict=True)
        ]
        for directory in (self.run.train_directory, self.run.valid_directory):
            write_corpus(
                directory,
                pairs,
                max_source_length=20,
                max_target_length=20,
                shard_pairs=5,
                vocabulary_size=tokenizer.vocabulary_size,
                weights=all_parts,
                alignments=all_parts,
                features=all_parts,
            )
        self.run.save_valid_lines(SOURCES, outputs)
        counts = PairCounts(len(pairs), len(pairs), LineStatistics(), LineStatistics())
        settings = self.run.settings
        self.run.write_preparation(make_record(self.run, settings.data, settings.tokenizer, counts))

    def _write_training(self) -> None:
        from keras_seq.training.checkpointing import TrainingProgress
        from keras_seq.training.result import TrainingResult, store_result

        training = {"kind": "training", "step": 1, "minutes": 0.1, "loss": 3.5}
        self.run.logs.append_metrics(training)
        self.run.logs.append_metrics({**VALIDATION, "monitor": self.monitor, self.monitor: 3.0})
        self.run.logs.append_samples("  step 1, line 1\n    source a dog")
        state = {**self.validation.state, "best": 3.0, "best_step": 1, "validated": 1}
        sizes = self.run.logs.sizes()
        progress = TrainingProgress(1, 0.1, state, "nrefs:1", "tensorflow", sizes)
        tensors = {"weights": weights(1), "training": {"moment": np.full(2000, 1, np.float32)}}
        self.run.save_checkpoint(1, tensors, asdict(progress))
        self.run.mark_best(1)
        result = TrainingResult(str(self.path), 1, 0.1, self.monitor, 3.0, 1, "nrefs:1")
        store_result(self.run, result, 0)
        self.run.write_card("# A keras-seq run\n")
        self.evaluate(self.run)

    def damage(self, name: str, content: bytes) -> None:
        """Replaces a file; the manifest of a checkpoint has the checksum of the new content."""
        path = self.path / name
        if path.parent == self.checkpoint and path.name != "MANIFEST.json":
            forge(self.checkpoint, path.name, content)
        else:
            path.write_bytes(content)

    def mend(self) -> None:
        """Restores all files."""
        for name, content in self.files.items():
            path = self.path / name
            if path.read_bytes() != content:
                path.write_bytes(content)

    def read(self, name: str = "settings.toml") -> None:
        """Reads what depends on a file; raises an error only if that fails other than cleanly.

        All depends on the settings.
        """
        readers: list[tuple[str, Callable[[Run], object]]] = [
            ("tokenizer/", self._read_vocabularies),
            ("checkpoints/", self._read_checkpoint),
            ("metrics.jsonl samples.txt", self._read_logs),
            ("result.json evaluations.json README.md", self._read_results),
            ("data/", self._read_record),
            ("data/valid.source data/valid.target", Run.valid_lines),
            ("data/train/", lambda run: read_corpus(run.path / "data" / "train")),
            ("data/valid/", lambda run: read_corpus(run.path / "data" / "valid")),
        ]
        with refusing(InputError):
            run = Run.open(self.path, notice=one_line)
            for prefixes, read in readers:
                if name.startswith(("settings.toml", *prefixes.split())):
                    with refusing(InputError):
                        read(run)

    def _read_vocabularies(self, run: Run) -> None:
        source, target = run.vocabularies
        assert len(source.decode(source.encode(SOURCES[:2]))) == 2
        if isinstance(target, Labels):
            assert len(target.ids(["good", "x"])) == 2

    def _read_checkpoint(self, run: Run) -> None:
        from keras_seq.training.checkpointing import TrainingProgress

        checkpoint = run.load_checkpoint(BOTH)
        run.load_weights(SHAPES)
        with refusing(ValueError):
            progress = TrainingProgress.from_json(checkpoint.state)
            # The first version of the format did not store the monitor.
            self.validation.restore({"monitor": self.monitor, **progress.validation})
            assert self.validation.out_of_patience in (True, False)
            # As a training uses them when it ends.
            numbers = self.validation.best, self.validation.best_step
            assert [float(number or 0.0) for number in numbers]
            run.logs.truncate(progress.log_sizes)

    def _read_record(self, run: Run) -> None:
        from keras_seq.preparation.record import (
            check_record,
            known_counts,
            recorded_counts,
            same_tokenizer,
            text_differences,
        )

        record = run.read_preparation() or {}
        recorded_counts(record)
        known_counts(run, self.data)
        same_tokenizer(run.settings.tokenizer, record, run.settings.tokenizer)
        for line in text_differences(record, self.data):
            one_line(line)
        check_record(run)

    def _read_logs(self, run: Run) -> None:
        from keras_seq.analysis.history import History
        from keras_seq.analysis.reports.course import curves, facts
        from keras_seq.inference.classifier import temperature_of
        from keras_seq.inference.tagger import outside_penalty_of
        from keras_seq.inference.wake_words import threshold_of

        run.loaded_step = 1
        numbers = [temperature_of(run), threshold_of(run), outside_penalty_of(run)]
        history = History.of_run(run)
        shown = [numbers, facts(run, 1_000, history), curves(history)]
        json.dumps(shown, allow_nan=False, ensure_ascii=False).encode()
        sorted(run.logs.validation_scores().values())

    def _read_results(self, run: Run) -> None:
        from keras_seq.evaluation.metrics import evaluation_metrics
        from keras_seq.training.result import load_result, model_card

        result, _ = load_result(run)
        if result is not None:
            assert f"{result.score} {result.steps:,} {result.minutes:.1f}".encode()
            run.write_card(model_card(run.settings, result, 1_000))
        evaluation_metrics(run, (), [("a", "good")])
        self.evaluate(run)

    def evaluate(self, run: Run) -> None:
        """Adds the evaluation of a test set to the card, with those that are stored."""
        from keras_seq.evaluation.card import add_to_card
        from keras_seq.evaluation.values import Evaluation, MetricValue

        values = {self.monitor: MetricValue("BLEU", 3.0, "nrefs:1", 3.1, 0.2)}
        name = f"test {len(run.read_evaluations())}"
        add_to_card(run, name, Evaluation(1, 9, values, None))


def read_corpus(path: Path) -> None:
    """Reads all pairs of a corpus."""
    corpus = TokenCorpus.open(path)
    rows = range(len(corpus))
    for index in rows:
        corpus.source(index), corpus.target(index)
    for part, lengths in (("source", corpus.source_lengths), ("target", corpus.target_lengths)):
        corpus.padded(part, rows, int(lengths.max(initial=0)))
    if corpus.has_features:
        corpus.padded("features", rows, corpus.max_features)
    corpus.weights(rows)
    corpus.links(rows)


def run_files(folder: Path) -> tuple[st.SearchStrategy[bytes], Callable[[bytes], None]]:
    """Returns damaged files, whose content begins with their name, and the check of one."""
    runs = {name: RunFiles(folder / name, name) for name in ("translate", "classify")}
    names = [f"{name}/{file}" for name, run in runs.items() for file in run.files]
    shards = [name for name in names if "/shard-" in name]
    others = [name for name in names if name not in shards]

    @st.composite
    def files(draw: Callable) -> bytes:
        name = draw(st.sampled_from(draw(st.sampled_from([shards, others, others, others]))))
        kind, _, file = name.partition("/")
        return name.encode() + b"\n" + draw(damaged(file, runs[kind].files[file]))

    def check(content: bytes) -> None:
        name, _, rest = content.partition(b"\n")
        kind, _, file = name.decode().partition("/")
        try:
            runs[kind].damage(file, rest)
            runs[kind].read(file)
        finally:
            runs[kind].mend()

    return files(), check


def damaged(name: str, content: bytes) -> st.SearchStrategy[bytes]:
    """Returns damaged contents of a file."""
    if name.endswith(".json"):
        return json_files(json.loads(content))
    if name.endswith(".jsonl"):
        values = [json.loads(line) for line in content.splitlines()]
        lines = damaged_json(values).map(_lines)
        return st.one_of(lines, lines, damaged_bytes(content))
    return damaged_bytes(content)


def _lines(values: Any) -> bytes:
    values = values if isinstance(values, list) else [values]
    return "".join(f"{json.dumps(value)}\n" for value in values).encode()


@contextmanager
def refusing(kind: type[Exception]) -> Iterator[None]:
    """Accepts errors of one kind whose messages have one line."""
    try:
        yield
    except kind as error:
        one_line(str(error))


def one_line(message: str) -> None:
    assert message and "\n" not in message, message
