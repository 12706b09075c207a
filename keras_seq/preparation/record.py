"""The record of a preparation: which text it read and which files it wrote."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_seq.preparation.files import PairCounts
from keras_seq.run import Run
from keras_seq.run.prepared_data import PREPARED_FORMAT
from keras_seq.settings import SIDES, DataSettings, TokenizerSettings
from keras_seq.storage import hash_file, reason
from keras_seq.text import InputError, LineStatistics, expand_names

# Characters of a recorded value that a message shows.
_SHOWN = 80
TEXT_KEYS = (
    *("source", "target", "pairs", "text", "labeled", "prepared", "weights", "alignments"),
    *("valid_source", "valid_target", "valid_pairs", "valid_text", "valid_labeled"),
)


def make_record(
    run: Run, data: DataSettings, requested: TokenizerSettings, counts: PairCounts
) -> dict[str, Any]:
    """Returns the record of a finished preparation, for `Run.write_preparation`.

    `requested` has the vocabulary settings before learning, which may lower the size.
    """
    return {
        "format": PREPARED_FORMAT,
        "asked_tokenizer": requested.model_dump(),
        "pairs": counts.pairs,
        "usable": counts.usable,
        "statistics": {
            side: statistics.to_dict()
            for side in SIDES
            if (statistics := getattr(counts, side)) is not None
        },
        "text": {key: _describe_all(names) for key, names in _text_files(data)},
        "files": {name: _describe(run.path / name, name) for name in run.prepared_files()},
    }


def recorded_counts(record: Mapping[str, Any]) -> PairCounts | None:
    """Returns the counts of the training text in a record, or None."""
    pairs, usable = record.get("pairs", 0), record.get("usable", 0)
    if not all(type(count) is int and count > 0 for count in (pairs, usable)):
        return None
    stored = record.get("statistics")
    stored = stored if isinstance(stored, dict) else {}
    return PairCounts(
        pairs, usable, *(LineStatistics.from_dict(stored.get(side)) for side in SIDES)
    )


def known_counts(earlier: Run | None, data: DataSettings) -> PairCounts | None:
    """Returns the text counts that an earlier run recorded; None if the text must be read."""
    # Different columns of the same file contain different pairs.
    if earlier is None or earlier.settings.data.columns != data.columns:
        return None
    try:
        record = earlier.read_preparation()
        counts = recorded_counts(record) if record and _text_untouched(record, data) else None
    except InputError:
        return None
    return None if counts is None or None in (counts.source, counts.target) else counts


def same_tokenizer(
    requested: TokenizerSettings, record: Mapping[str, Any], learned: TokenizerSettings
) -> bool:
    """Tests if a run with `learned` settings was prepared from the `requested` settings."""
    values = requested.model_dump()
    if "asked_tokenizer" in record:
        return bool(values == record["asked_tokenizer"])
    # The first version of the format records only the size.
    earlier = {"size": record.get("asked_vocabulary"), "kind": learned.kind, "joint": learned.joint}
    return all(values[key] in (value, "auto") for key, value in earlier.items())


def check_record(run: Run, *, since_prepared: bool = False) -> dict[str, Any]:
    """Reads the record of a run. Raises InputError if a file has changed since the preparation.

    `since_prepared` says that `run` is the directory of `data.prepared`, for the message.
    """
    since, advice = "the training began", "train in another directory, or start again with"
    if since_prepared:
        since, advice = "it was prepared", "prepare the text again with"
    record = run.read_preparation() or {}
    if record.get("format") != PREPARED_FORMAT or not isinstance(record.get("files"), dict):
        raise InputError(
            f"{run.path}: prepared by another version of keras-seq: {advice} --overwrite"
        )
    names = run.prepared_files()
    for name in sorted(record["files"].keys() | set(names)):
        if name not in names or not _is_same(record["files"].get(name), run.path / name, name):
            shown = name if name in names else _shown(name)
            raise InputError(f"{run.path / shown}: changed since {since}: {advice} --overwrite")
    return record


def text_differences(record: Mapping[str, Any], data: DataSettings) -> list[str]:
    """Returns the changes of the text since it was recorded, as `key old -> new`."""
    recorded = record.get("text")
    recorded = recorded if isinstance(recorded, dict) else {}
    files = dict(_text_files(data))
    differences = []
    for key in TEXT_KEYS:
        entries, names = _entries(recorded.get(key)), files.get(key, ())
        if bool(entries) != bool(names):
            old = [_shown(entry.get("path")) for entry in entries]
            differences.append(f"data.{key} {_listed(old)} -> {_listed(names)}")
        elif len(entries) != len(names):
            differences.append(f"data.{key} {len(entries):,} files -> {len(names):,} files")
        else:
            for entry, name in zip(entries, names, strict=True):
                if not _is_same(entry, Path(name), name):
                    size = Path(name).stat().st_size
                    other = ", other content" if size == entry.get("size") else ""
                    was, bytes_before = (_shown(entry.get(name)) for name in ("path", "size"))
                    differences.append(
                        f"data.{key} {was} of {bytes_before} bytes -> {name} of {size} bytes{other}"
                    )
    return differences


def _text_untouched(record: Mapping[str, Any], data: DataSettings) -> bool:
    """Tests if each text file still has the recorded path, size and modification time."""
    recorded = record.get("text")
    files = dict(_text_files(data))
    return (
        isinstance(recorded, dict)
        and recorded.keys() == files.keys()
        and all(
            len(entries := _entries(recorded[key])) == len(names)
            and all(map(_looks_same, entries, map(Path, names), names))
            for key, names in files.items()
        )
    )


def text_hashes(data: DataSettings) -> dict[str, list[str]]:
    """Returns the SHA-256 of each text file, by setting."""
    return {
        key: [hash_file(Path(name), follow_links=True) for name in names]
        for key, names in _text_files(data)
    }


def imported_hashes(tokenizer: TokenizerSettings) -> dict[str, str]:
    """Returns the SHA-256 of each imported vocabulary file, by name."""
    names = {tokenizer.of_side(side).model for side in SIDES}
    return {name: hash_file(Path(name), follow_links=True) for name in sorted(filter(None, names))}


def _text_files(data: DataSettings) -> Iterator[tuple[str, tuple[str, ...]]]:
    if data.prepared is not None:
        # The record of the preparation contains the hashes of all prepared files.
        yield "prepared", (str(Run.preparation_file(data.prepared)),)
        return
    for key in TEXT_KEYS:
        names = getattr(data, key)
        if names is not None:
            yield key, expand_names(names)


def _describe_all(names: Sequence[str]) -> Any:
    """Returns the entry of one file, or a list of the entries of several files."""
    entries = [_describe(Path(name), name) for name in names]
    return entries[0] if len(entries) == 1 else entries


def _entries(recorded: Any) -> list[dict[str, Any]]:
    """Returns a recorded result of `_describe_all` as a list of entries."""
    entries = recorded if isinstance(recorded, list) else [recorded]
    return [entry for entry in entries if isinstance(entry, dict)]


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "none"
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1:,} more"


def _describe(path: Path, name: str) -> dict[str, Any]:
    status = path.stat()
    return {
        "path": name,
        "size": status.st_size,
        "changed": status.st_mtime_ns,
        "sha256": hash_file(path, follow_links=True),
    }


def _looks_same(entry: Any, path: Path, name: str) -> bool:
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(f"{path}: {reason(error)}") from None
    return isinstance(entry, dict) and (
        (entry.get("path"), entry.get("size"), entry.get("changed"))
        == (name, status.st_size, status.st_mtime_ns)
    )


def _is_same(entry: Any, path: Path, name: str) -> bool:
    if _looks_same(entry, path, name):
        return True
    if not isinstance(entry, dict) or entry.get("size") != path.stat().st_size:
        return False
    return bool(entry.get("sha256") == hash_file(path, follow_links=True))


def _shown(value: object) -> str:
    """Returns a value of a record, which may come from anywhere, for a message."""
    if isinstance(value, str) and value.isprintable():
        return value if len(value) <= _SHOWN else f"...{value[-_SHOWN:]}"
    if isinstance(value, list | dict):
        return f"a {type(value).__name__}"
    text = ascii(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
