"""Text, token ids and vocabularies of a run: everything that preparation writes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from keras_seq.run.layout import check_format
from keras_seq.run.stored_values import read_optional_json
from keras_seq.run.vocabularies import V, Vocabulary, read_vocabularies, write_vocabularies
from keras_seq.settings import Settings
from keras_seq.storage import check_regular, make_directory, write_file
from keras_seq.storage.checkpoints import CheckpointStore
from keras_seq.storage.limits import MAX_INDEX_BYTES
from keras_seq.text import InputError, Labels, Tokenizer, read_lines

# The version of the record that `keras_seq.preparation` writes.
PREPARED_FORMAT = 1


class PreparedData:
    """The part of a run directory that preparation writes; the base class of `Run`."""

    def __init__(self, path: Path, settings: Settings) -> None:
        self.path = path
        self.settings = settings
        self._vocabularies: tuple[Tokenizer, Vocabulary] | None = None

    @property
    def vocabularies(self) -> tuple[Tokenizer, Vocabulary]:
        """Source and target vocabulary; the same object if they are joint."""
        if self._vocabularies is None:
            self._vocabularies = read_vocabularies(self.path / "tokenizer", self.settings)
        return self._vocabularies

    @property
    def source_tokenizer(self) -> Tokenizer:
        """The tokenizer of source text."""
        return self.vocabularies[0]

    @property
    def target_tokenizer(self) -> Tokenizer:
        """The tokenizer of target text. TypeError if the task predicts labels."""
        return self._target(Tokenizer, "predicts labels, not text")

    @property
    def labels(self) -> Labels:
        """The labels. TypeError if the task generates text."""
        return self._target(Labels, "generates text, not labels")

    @property
    def languages(self) -> list[str]:
        """The target languages that the sources name, sorted; empty if there are none."""
        # Most runs need not read their vocabulary for this.
        if not self.settings.data.has_languages:
            return []
        return sorted(self.source_tokenizer.languages)

    def _target(self, kind: type[V], problem: str) -> V:
        target = self.vocabularies[1]
        if not isinstance(target, kind):
            raise TypeError(f"a run of task {self.settings.task!r} {problem}")
        return target

    def save_vocabularies(self, source: Tokenizer, target: Vocabulary) -> None:
        """Saves the vocabularies. Pass the same object twice for a joint vocabulary."""
        write_vocabularies(self.path / "tokenizer", source, target)
        self._vocabularies = (source, target)

    @property
    def train_directory(self) -> Path:
        """Directory of the training token ids, which may belong to `data.prepared`."""
        shared = self.settings.data.prepared
        return (self.path if shared is None else Path(shared)) / "data" / "train"

    @property
    def valid_directory(self) -> Path:
        """Directory of the validation token ids."""
        return self.path / "data" / "valid"

    @property
    def corpus_directory(self) -> Path:
        """Directory of text that the package generated."""
        return self.path / "corpus"

    @property
    def start_directory(self) -> Path:
        """Directory of the run with the initial checkpoint and its vocabulary."""
        return self.path / "data" / "start"

    @property
    def teacher_directory(self) -> Path:
        """Directory of the run that is the teacher of a distillation."""
        return self.path / "data" / "teacher"

    @property
    def pretrained_directory(self) -> Path:
        """Directory of the weights of the pretrained encoder."""
        return self.path / "data" / "pretrained"

    @property
    def start_step(self) -> int | None:
        """The step of the initial checkpoint; None if training started from new weights."""
        return CheckpointStore(self.start_directory / "checkpoints").latest_step

    def vectors_file(self, side: str) -> Path:
        """File of the initial word vectors of the source or target embedding."""
        return self.path / "data" / f"{side}.vectors"

    def save_valid_lines(self, sources: Iterable[str], references: Iterable[str]) -> None:
        """Saves the validation text. Lines must not contain line feeds."""
        make_directory(self.path / "data")
        for name, lines in (("source", sources), ("target", references)):
            content = "".join(f"{line}\n" for line in lines).encode()
            write_file(self.path / "data" / f"valid.{name}", content)

    @property
    def has_valid_lines(self) -> bool:
        """True if the run has its validation text. A copy from elsewhere has none."""
        return (self.path / "data" / "valid.source").exists()

    def valid_lines(self) -> tuple[list[str], list[str]]:
        """Returns the validation text: source lines and reference lines."""
        data = self.path / "data"
        if not self.has_valid_lines:
            raise InputError(
                f"{self.path}: this run has no validation text: name a test set, or export it with "
                "--verify 0"
            )
        sources = list(read_lines(check_regular(data / "valid.source")))
        references = list(read_lines(check_regular(data / "valid.target")))
        if len(sources) != len(references):
            raise InputError(
                f"{data}: valid.source has {len(sources)} lines, valid.target has {len(references)}"
            )
        if not sources:
            raise InputError(f"{data}: valid.source and valid.target are empty")
        return sources, references

    def prepared_files(self) -> list[str]:
        """Returns the files that preparation wrote, relative to the run, sorted."""
        paths = [*(self.path / "tokenizer").iterdir(), *(self.path / "data").rglob("*")]
        names = {path.relative_to(self.path).as_posix() for path in paths if path.is_file()}
        return sorted(names - {"data/prepared.json"})

    def write_preparation(self, record: Mapping[str, Any]) -> None:
        """Writes the record of the preparation, which marks the run as prepared."""
        write_file(self.preparation_file(self.path), json.dumps(record, indent=1).encode())

    def read_preparation(self) -> dict[str, Any] | None:
        """Returns the record of the preparation; None if the preparation did not finish.

        Raises InputError if it cannot be read, or has an unknown format.
        """
        path = self.preparation_file(self.path)
        record = read_optional_json(path, MAX_INDEX_BYTES)
        if record is not None:
            check_format(path, "prepared text", record.get("format"), PREPARED_FORMAT)
        return record

    @staticmethod
    def preparation_file(path: str | os.PathLike[str]) -> Path:
        """File of the preparation record of the run in a directory."""
        return Path(path) / "data" / "prepared.json"
