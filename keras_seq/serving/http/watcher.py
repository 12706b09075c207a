"""The version that is served, and the newer one that takes its place."""

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
    """A version's state, in TensorFlow Serving's words.

    Attributes:
        state: `LOADING`, `AVAILABLE`, `UNLOADING` or `END`.
        error: Why it could not be loaded, or "".
    """

    state: str
    error: str = ""


class ModelWatcher:
    """Serves the newest version of a directory, today's and tomorrow's.

    A newer version is loaded beside the old one, which answers meanwhile, and
    then takes its place; requests that the old one has begun it finishes. A
    version that cannot be loaded is said once and passed over until its files
    change. When the version served is deleted, the newest one left is served;
    when none is left, the one in memory goes on.

    Args:
        base: Directory of the versions.
        notice: Called with a line for each change.
        threads: Most runs of a model at the same time.
        trust: As for `LoadedModel`.
    """

    def __init__(
        self,
        base: Path,
        notice: Callable[[str], None],
        threads: int = 1,
        *,
        trust: bool = False,
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
        """The model that answers."""
        if self._current is None:
            raise RuntimeError("No version is loaded: call start() first.")
        return self._current

    @property
    def states(self) -> dict[int, VersionState]:
        """Every version seen, newest first."""
        self._settle()
        return dict(sorted(self._states.items(), reverse=True))

    def start(self, version: int, path: Path) -> None:
        """Loads the first version.

        Raises:
            InputError: It cannot be served.
        """
        try:
            self._current = self._load(version, path)
        except ModelError as error:
            raise InputError(f"{path}: {error}") from None
        self._states[version] = VersionState("AVAILABLE")

    def _load(self, version: int, path: Path) -> LoadedModel:
        return LoadedModel(path, version, self._threads, trust=self._trust)

    async def watch(self, seconds: float) -> None:
        """Looks for another version again and again, until cancelled."""
        while True:
            await asyncio.sleep(seconds)
            try:
                await self.look()
            except InputError as error:
                # The directory may be back the next time.
                self._say_once(-1, str(error))

    async def look(self) -> None:
        """Looks once, and changes to another version if there is one to change to."""
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
                self._notice(f"version {version} passed over: {error}")
                continue
            self._change_to(model)
            return

    def close(self) -> None:
        """Frees the model once its last request is answered."""
        if self._current is not None:
            self._current.retire()

    def _change_to(self, model: LoadedModel) -> None:
        old, self._current = self._current, model
        if old is not None:
            old.retire()
            self._retiring.append(old)
        # Before the new one's state: its number may have been served and deleted earlier.
        self._settle()
        self._states[model.version] = VersionState("AVAILABLE")
        self._failed.pop(model.version, None)
        self._notice(f"version {model.version} is served now")
        # A graph refers to itself: without this its memory stays until some later day.
        gc.collect()

    def _settle(self) -> None:
        """Notes which of the old versions have answered their last request."""
        for model in self._retiring:
            state = "END" if model.closed else "UNLOADING"
            self._states[model.version] = VersionState(state)
        self._retiring = [model for model in self._retiring if not model.closed]

    def _say_once(self, key: int, message: str) -> None:
        if self._failed.get(key) != message:
            self._failed[key] = message
            self._notice(message)
