"""Serves the newest version and switches to newer ones."""

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
    """A version's state by TensorFlow Serving's names: LOADING, AVAILABLE, UNLOADING or END.

    `error` says why the version could not be loaded, or is "".
    """

    state: str
    error: str = ""


class ModelWatcher:
    """Keeps the newest version of a directory loaded.

    While a newer version is loaded, the old version keeps answering; afterwards it finishes its
    running requests. A version that cannot be loaded is reported once and skipped until its files
    change. If the served version is deleted, the newest remaining version is served; if none
    remains, the server keeps the version in memory.
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
        """The states of all versions seen so far, newest first."""
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
        """Checks for another version at this interval until it is canceled."""
        while True:
            await asyncio.sleep(seconds)
            try:
                await self.check()
            except InputError as error:
                # The directory may exist again at the next check.
                if self._failed.get(-1) != str(error):
                    self._failed[-1] = str(error)
                    self._notice(str(error))

    async def check(self) -> None:
        """Switches to another version if there is a newer one, or if the served one is deleted."""
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
        """Frees the model after its last request."""
        if self._current is not None:
            self._current.retire()

    def _switch_to(self, model: LoadedModel) -> None:
        old, self._current = self._current, model
        if old is not None:
            old.retire()
            self._retiring.append(old)
        # Before the state of the new model, whose number may have been served and deleted earlier.
        self._update_retiring()
        self._states[model.version] = VersionState("AVAILABLE")
        self._failed.pop(model.version, None)
        self._notice(f"version {model.version} is served now")
        # A graph contains reference cycles.
        gc.collect()

    def _update_retiring(self) -> None:
        """Updates the states of old versions, which end with their last request."""
        for model in self._retiring:
            state = "END" if model.closed else "UNLOADING"
            self._states[model.version] = VersionState(state)
        self._retiring = [model for model in self._retiring if not model.closed]
