"""What a run was prepared from: which text and which shards, told cheaply from others.

A file is taken for unchanged if its path, size and time of change are those
noted; otherwise its SHA-256 decides, so a copy elsewhere is still the same text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_seq.preparation.files import PairCounts
from keras_seq.run import Run
from keras_seq.settings import SIDES, DataSettings, TokenizerSettings
from keras_seq.storage import hash_file, reason
from keras_seq.text import InputError, LineStatistics, expand_names

FORMAT = 1
TEXT_KEYS = (
    "source",
    "target",
    "pairs",
    "text",
    "labelled",
    "prepared",
    "weights",
    "alignments",
    "valid_source",
    "valid_target",
    "valid_pairs",
    "valid_text",
    "valid_labelled",
)


def make_record(run: Run, data: DataSettings, asked: TokenizerSettings, counts: PairCounts) -> Any:
    """The record of a preparation that is done.

    Args:
        run: Prepared.
        data: Names the text it was prepared from.
        asked: The vocabulary as it was asked for; a small corpus makes it smaller.
        counts: Of the training text.

    Returns:
        What `Run.write_preparation` takes.
    """
    return {
        "format": FORMAT,
        "asked_tokenizer": asked.model_dump(),
        "pairs": counts.pairs,
        "usable": counts.usable,
        "statistics": {
            side: statistics.to_dict()
            for side in SIDES
            if (statistics := getattr(counts, side)) is not None
        },
        "text": {key: _note_all(names) for key, names in _text_files(data)},
        "files": {name: _note(run.path / name, name) for name in run.prepared_files()},
    }


def recorded_counts(record: Mapping[str, Any]) -> PairCounts | None:
    """The counts of the training text that a record has; None if it has none."""
    pairs, usable = record.get("pairs", 0), record.get("usable", 0)
    if not all(type(count) is int and count > 0 for count in (pairs, usable)):
        return None
    stored = record.get("statistics")
    stored = stored if isinstance(stored, dict) else {}
    return PairCounts(
        pairs, usable, *(LineStatistics.from_dict(stored.get(side)) for side in SIDES)
    )


def same_tokenizer(
    asked: TokenizerSettings, record: Mapping[str, Any], found: TokenizerSettings
) -> bool:
    """Whether the vocabulary asked for is the one that a run was prepared with.

    Args:
        asked: With the units chosen.
        record: Of the run; one of an early version has the size alone.
        found: The run's settings of its vocabulary, as it came out.
    """
    if "asked_tokenizer" in record:
        return bool(asked.model_dump() == record["asked_tokenizer"])
    earlier = {"size": record.get("asked_vocabulary"), "kind": found.kind, "joint": found.joint}
    given = asked.model_dump()
    return all(given[key] in (value, "auto") for key, value in earlier.items())


def check_record(run: Run) -> dict[str, Any]:
    """The record of a run, after a look at whether its token ids are still those it was made with.

    Raises:
        InputError: A record of another format, or a file that is missing or was changed.
    """
    record = run.read_preparation() or {}
    if record.get("format") != FORMAT or not isinstance(record.get("files"), dict):
        raise InputError(
            f"{run.path}: its data were prepared by another version of keras-seq: train in another "
            "directory, or start again with --overwrite"
        )
    found = run.prepared_files()
    for name in sorted(record["files"].keys() | set(found)):
        if name not in found or not _is_same(record["files"].get(name), run.path / name, name):
            raise InputError(
                f"{run.path / name}: not what the training began with: train in another "
                "directory, or start again with --overwrite"
            )
    return record


def text_differences(record: Mapping[str, Any], data: DataSettings) -> list[str]:
    """What of the text is no longer as noted: `key was -> is`, empty if all is the same."""
    noted = record.get("text")
    noted = noted if isinstance(noted, dict) else {}
    given = dict(_text_files(data))
    differences = []
    for key in TEXT_KEYS:
        was, names = _notes(noted.get(key)), given.get(key, ())
        old = [str(note.get("path")) for note in was]
        if not was or not names:
            if was or names:
                differences.append(f"data.{key} {_listed(old)} -> {_listed(names)}")
            continue
        if len(was) != len(names):
            differences.append(f"data.{key} {len(was):,} files -> {len(names):,} files")
            continue
        for note, name in zip(was, names, strict=True):
            if not _is_same(note, Path(name), name):
                size = Path(name).stat().st_size
                differences.append(
                    f"data.{key} {note.get('path')} of {note.get('size')} bytes -> {name} of "
                    f"{size} bytes" + (", other content" if size == note.get("size") else "")
                )
    return differences


def text_untouched(record: Mapping[str, Any], data: DataSettings) -> bool:
    """Whether the text is as noted by path, size and time, so that nothing need be read."""
    noted = record.get("text")
    given = dict(_text_files(data))
    return (
        isinstance(noted, dict)
        and noted.keys() == given.keys()
        and all(_all_look_same(_notes(noted[key]), names) for key, names in given.items())
    )


def text_hashes(data: DataSettings) -> dict[str, list[str]]:
    """SHA-256 of each file of the text, by setting."""
    return {
        key: [hash_file(Path(name), follow_links=True) for name in names]
        for key, names in _text_files(data)
    }


def imported_hashes(tokenizer: TokenizerSettings) -> dict[str, str]:
    """SHA-256 of each file that a vocabulary is imported from, by its name."""
    names = {tokenizer.of_side(side).model for side in SIDES}
    return {name: hash_file(Path(name), follow_links=True) for name in sorted(filter(None, names))}


def _text_files(data: DataSettings) -> Iterator[tuple[str, tuple[str, ...]]]:
    if data.prepared is not None:
        # Which has the hashes of all that was prepared.
        yield "prepared", (str(Run.preparation_file(data.prepared)),)
        return
    for key in TEXT_KEYS:
        names = getattr(data, key)
        if names is not None:
            yield key, expand_names(names)


def _note_all(names: Sequence[str]) -> Any:
    """The notes of some files; that of one is not put in a list."""
    notes = [_note(Path(name), name) for name in names]
    return notes[0] if len(notes) == 1 else notes


def _notes(noted: Any) -> list[dict[str, Any]]:
    """What `_note_all` gave, always as a list."""
    notes = noted if isinstance(noted, list) else [noted]
    return [note for note in notes if isinstance(note, dict)]


def _all_look_same(notes: Sequence[Any], names: Sequence[str]) -> bool:
    return len(notes) == len(names) and all(
        _looks_same(note, Path(name), name) for note, name in zip(notes, names, strict=True)
    )


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "none"
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1:,} more"


def _note(path: Path, name: str) -> dict[str, Any]:
    status = path.stat()
    return {
        "path": name,
        "size": status.st_size,
        "changed": status.st_mtime_ns,
        "sha256": hash_file(path, follow_links=True),
    }


def _looks_same(noted: Any, path: Path, name: str) -> bool:
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"{path}: {reason(error)}") from None
    return isinstance(noted, dict) and (
        (noted.get("path"), noted.get("size"), noted.get("changed"))
        == (name, status.st_size, status.st_mtime_ns)
    )


def _is_same(noted: Any, path: Path, name: str) -> bool:
    if _looks_same(noted, path, name):
        return True
    if not isinstance(noted, dict) or noted.get("size") != path.stat().st_size:
        return False
    return bool(noted.get("sha256") == hash_file(path, follow_links=True))
