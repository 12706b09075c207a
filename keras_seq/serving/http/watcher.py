"""Keeps the newest version of a model loaded."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from keras_seq.serving.http.model import LoadedModel, ModelError
from keras_seq.serving.http.versions import check_version, find_versions, fingerprint
from keras_seq.text import InputError


@dataclass(frozen=True)
class VersionState:
    """State of a version, as in TensorFlow Serving: LOADING, AVAILABLE, UNLOADING or END.

    `error` is the reason why the version could not be loaded, or an empty string.
    """

    state: str
    error: str = ""


class ModelWatcher:
    """Keeps the newest version of a directory loaded.

    While a newer version is loaded, the old version answers requests. After the switch, the old
    version finishes the running requests. A version that cannot be loaded is reported once and
    skipped until its files change. If the served version is deleted, the newest remaining version
    is served. If no version remains, the server keeps the deleted version in memory.
    """

    def __init__(
        self, base: Path, notice: Callable[[str], None], threads: int = 1, *, trust: bool = False
    ) -> None:
        self._trust = trust
        self._base = base
        self._threads = threads
        self._notice = notice
        self._current: LoadedModel | None = None
        self._retiring: list[LoadedModel] = []
        self._states: dict[int, VersionState] = {}
        self._failed: dict[int, object] = {}

    @property
    def current(self) -> LoadedModel:
        """The model that answers requests."""
        if self._current is None:
            raise RuntimeError("No version is loaded: call start() first.")
        return self._current

    @property
    def states(self) -> dict[int, VersionState]:
        """The states of all versions found since the start, newest first."""
        self._update_retiring()
        return dict(sorted(self._states.items(), reverse=True))

    def start(self, version: int, path: Path) -> None:
        """Loads the first version, or raises InputError."""
        try:
            self._current = self._load(version, path)
        except ModelError as error:
            raise InputError(f"{path}: {error}") from None
        self._states[version] = VersionState("AVAILABLE")

    def _load(self, version: int, path: Path) -> LoadedModel:
        return LoadedModel(path, version, self._threads, trust=self._trust)

    async def watch(self, seconds: float) -> None:
        """Calls `check` at an interval of `seconds` until the task is canceled."""
        while True:
            await asyncio.sleep(seconds)
            try:
                await self.check()
            except InputError as error:
                # Report the error once and continue, because the directory may come back.
                if self._failed.get(-1) != str(error):
                    self._failed[-1] = str(error)
                    self._notice(str(error))

    async def check(self) -> None:
        """Loads and serves the newest version that can be loaded, unless it is already served."""
        for version, path in find_versions(self._base).items():
            if self._current is not None and version == self._current.version:
                return
            stamp = fingerprint(path)
            if self._failed.get(version) == stamp:
                continue
            try:
                check_version(path)
                self._states[version] = VersionState("LOADING")
                model = await asyncio.to_thread(self._load, version, path)
            except (InputError, ModelError) as error:
                self._failed[version] = stamp
                self._states[version] = VersionState("END", str(error))
                self._notice(f"version {version} skipped: {error}")
                continue
            self._switch_to(model)
            return

    def close(self) -> None:
        """Frees the model when no request uses it anymore."""
        if self._current is not None:
            self._current.retire()

    def _switch_to(self, model: LoadedModel) -> None:
        old, self._current = self._current, model
        if old is not None:
            old.retire()
            self._retiring.append(old)
        # Update the old states first, because an old and the new model may have equal versions.
        self._update_retiring()
        self._states[model.version] = VersionState("AVAILABLE")
        self._failed.pop(model.version, None)
        self._notice(f"version {model.version} is served now")
        # Collect garbage, because reference cycles keep the graph of a freed model in memory.
        gc.collect()

    def _update_retiring(self) -> None:
        """Sets the states of old versions: UNLOADING until the last request ends, then END."""
        for model in self._retiring:
            state = "END" if model.closed else "UNLOADING"
            self._states[model.version] = VersionState(state)
        self._retiring = [model for model in self._retiring if not model.closed]
