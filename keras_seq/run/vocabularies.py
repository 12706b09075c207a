"""Reads and writes the vocabularies of a run directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from keras_seq.settings import TASKS, Settings
from keras_seq.storage import make_directory, read_file, write_file
from keras_seq.storage.limits import MAX_VOCABULARY_BYTES
from keras_seq.text import InputError, Labels, Tokenizer, tokenizer_from_bytes

Vocabulary = Tokenizer | Labels
V = TypeVar("V", Tokenizer, Labels)


def read_vocabularies(directory: Path, settings: Settings) -> tuple[Tokenizer, Vocabulary]:
    """Reads the source and target vocabulary of a run; the same object if they are joint.

    Raises InputError if a file is missing, too large, or not a vocabulary.
    """
    has_labels = TASKS[settings.task].has_labels
    if settings.tokenizer.joint and not has_labels:
        joint = _read(tokenizer_from_bytes, directory / "joint.model")
        return with_languages_of(settings, joint, joint)
    source = _read(tokenizer_from_bytes, directory / "source.model")
    if has_labels:
        return source, _read(Labels.from_bytes, directory / "labels.txt")
    target = _read(tokenizer_from_bytes, directory / "target.model")
    return with_languages_of(settings, source, target)


def are_equal(one: tuple[Tokenizer, Vocabulary], other: tuple[Tokenizer, Vocabulary]) -> bool:
    """Tests if the source and target vocabularies of two runs are the same."""
    return all(a.to_bytes() == b.to_bytes() for a, b in zip(one, other, strict=True))


def with_languages_of(
    settings: Settings, source: Tokenizer, target: Vocabulary
) -> tuple[Tokenizer, Vocabulary]:
    """Returns the vocabularies; that of the source knows target languages if the text names them.

    A joint vocabulary stays one object.
    """
    if not settings.data.has_languages:
        return source, target
    tagged = source.with_languages()
    return tagged, tagged if target is source else target


def write_vocabularies(directory: Path, source: Tokenizer, target: Vocabulary) -> None:
    """Writes the vocabularies. If both are the same object, one file is written."""
    make_directory(directory)
    if source is target:
        write_file(directory / "joint.model", source.to_bytes())
        return
    name = "labels.txt" if isinstance(target, Labels) else "target.model"
    write_file(directory / "source.model", source.to_bytes())
    write_file(directory / name, target.to_bytes())


def _read(make: Callable[[bytes], V], path: Path) -> V:
    content = read_file(path, MAX_VOCABULARY_BYTES)
    try:
        return make(content)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
