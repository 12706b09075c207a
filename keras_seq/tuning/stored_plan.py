"""A file that records what a folder of runs was started with, and its results."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from keras_seq.preparation.record import text_hashes
from keras_seq.settings import Settings
from keras_seq.storage import DirectoryLock, make_directory, read_json, reason, remove, write_file
from keras_seq.storage.limits import MAX_INDEX_BYTES
from keras_seq.text import InputError

_Result = TypeVar("_Result")
_FORMAT = 1
_MAX_DIFFERENCES = 4
# Prefix of the names of the hashes of text files.
_TEXT = "text."


class StoredPlan:
    """The plan and the results in a folder, which lets an interrupted command resume.

    This process holds the lock of the folder until `close`.

    Args:
        folder: The folder. It is created if it is missing.
        name: Name of the file.
        plan: What the command was started with, for JSON, such as settings by name.
        outputs: Other names in the folder that belong to the command.
        overwrite: Whether to delete an earlier plan and its results.

    Raises:
        InputError: If the folder has other files, another process works there, or it was started
            with another plan; the message lists the differences.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        plan: Mapping[str, Any],
        outputs: Sequence[str],
        overwrite: bool = False,
    ) -> None:
        self._path = folder / name
        self._outputs = [folder / output for output in outputs]
        self.results: Any = None
        self._plan = json.loads(json.dumps(plan))
        check_folder(folder, name)
        try:
            make_directory(folder, parents=True)
        except OSError as error:
            raise InputError(f"{folder}: cannot be created: {reason(error)}") from None
        self._lock = DirectoryLock(folder, name.partition(".")[0])
        try:
            is_known = not overwrite and self._read_results()
            if not is_known:
                self._clear()
                self.save(None)
        except BaseException:
            self.close()
            raise

    def read_results(self, read: Callable[[int, Any], _Result]) -> list[_Result]:
        """Returns the stored results.

        `read` returns a result of its number, from 1, and its content; it raises ValueError if the
        content is damaged. Then InputError is raised.
        """
        results = [] if self.results is None else self.results
        try:
            if not isinstance(results, list):
                raise ValueError("not a list")
            return [read(number, stored) for number, stored in enumerate(results, 1)]
        except ValueError:
            raise InputError(
                f"{self._path}: the results are damaged: copy the file again, or start again with "
                "--overwrite"
            ) from None

    def save(self, results: Any) -> None:
        """Stores the results."""
        self.results = results
        self._write(self._plan)

    def discard(self) -> None:
        """Deletes the plan, the results and all outputs."""
        self._clear()
        remove(self._path)

    def close(self) -> None:
        """Releases the lock of the folder."""
        self._lock.release()

    def _write(self, plan: Mapping[str, Any]) -> None:
        content = {"format": _FORMAT, "plan": plan, "results": self.results}
        write_file(self._path, json.dumps(content, indent=1).encode())

    def _clear(self) -> None:
        """Deletes results and outputs. After a kill, the next call does it again."""
        self.results = None
        self._write({})
        for path in self._outputs:
            remove(path)

    def _read_results(self) -> bool:
        """Reads the results. Returns False if there is no plan, or one without results or runs."""
        if not self._path.exists():
            return False
        stored = read_json(self._path, MAX_INDEX_BYTES)
        if stored.get("format") != _FORMAT or not isinstance(stored.get("plan"), dict):
            raise InputError(f"{self._path}: written by another version of keras-seq: --overwrite")
        self.results = stored.get("results")
        differences = self._differences(stored["plan"])
        if not differences:
            return True
        trained = any(next(path.glob("*/checkpoints/latest"), None) for path in self._outputs)
        if self.results is None and (not stored["plan"] or not trained):
            return False
        more = len(differences) - _MAX_DIFFERENCES
        raise InputError(
            f"{self._path.parent}: was started with other options or text: "
            f"{'; '.join(differences[:_MAX_DIFFERENCES])}"
            f"{f' and {more} more' if more > 0 else ''}: give the original ones, name another "
            "folder, or start again with --overwrite"
        )

    def _differences(self, plan: Mapping[str, Any]) -> list[str]:
        """Returns the differences of a stored plan as `key old -> new`."""
        earlier, now = (dict(_flatten("", each)) for each in (plan, self._plan))
        return [
            f"data.{key.removeprefix(_TEXT)} has other content"
            if key.startswith(_TEXT)
            else f"{key} {_show(earlier.get(key))} -> {_show(now.get(key))}"
            for key in {**earlier, **now}
            if earlier.get(key) != now.get(key)
        ]


def check_folder(folder: Path, name: str) -> None:
    """Raises InputError if the path is a file, or a folder with other files but no plan `name`."""
    if folder.is_dir():
        entries = {path.name for path in folder.iterdir()} - {".lock"}
        if not entries or name in entries:
            return
        raise InputError(f"{folder}: has other files: name a new folder")
    if folder.exists() or folder.is_symlink():
        raise InputError(f"{folder}: a file, expected a folder")


def described_settings(settings: Settings) -> dict[str, Any]:
    """Returns the part of a plan that describes the settings and their text files."""
    return {"settings": settings.to_dict(), "text": text_hashes(settings.data)}


def _flatten(prefix: str, values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flatten(prefix if name == "settings" else f"{prefix}{name}.", value)
        else:
            yield f"{prefix}{name}", value


def _show(value: Any) -> str:
    if value is None:
        return "none"
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
