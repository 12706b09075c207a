"""Prepares the text of several runs once for each vocabulary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from keras_seq.preparation import open_or_prepare
from keras_seq.run import Run
from keras_seq.settings import Settings
from keras_seq.text import Notice

# Endings of the names of model settings that have no influence on the prepared text.
_NOT_OF_TEXT = ("dropout", "layers", "units", "heads", "filters", "members")
_TRAINING = ("subword_alpha", "from_hub", "source_embeddings", "target_embeddings")


class SharedText:
    """Opens runs with equal vocabularies on one prepared text.

    Args:
        folder: The folder of the prepared texts.
        notice: Function that receives the messages of preparing a text.
    """

    def __init__(self, folder: Path, notice: Notice) -> None:
        self._folder = folder
        self._notice = notice
        self._directories: dict[str, Path] = {}

    def open_run(self, settings: Settings, directory: Path) -> Run:
        """Prepares a run, or opens it to resume its training. Its lock is free.

        Raises InputError or SettingsError if the text cannot be prepared with the settings.
        """
        if settings.data.prepared is None and settings.training.from_run is None:
            prepared = self._prepared(settings)
            data = settings.data.model_copy(update={"prepared": str(prepared)})
            settings = settings.model_copy(update={"data": data})
        run = open_or_prepare(settings, directory)
        run.unlock()
        return run

    def _prepared(self, settings: Settings) -> Path:
        key = _text_key(settings)
        if key not in self._directories:
            path = self._folder / str(len(self._directories) + 1)
            open_or_prepare(settings, path, notice=self._notice).unlock()
            self._directories[key] = path
        return self._directories[key]


def _text_key(settings: Settings) -> str:
    """Returns text that is equal for settings with the same prepared text."""
    model: dict[str, Any] = {
        key: value
        for key, value in settings.model.model_dump().items()
        if not key.endswith(_NOT_OF_TEXT)
    }
    key = [
        settings.task,
        settings.seed,
        settings.data.model_dump(),
        settings.tokenizer.model_dump(),
        model,
        settings.model.reads_characters,
        [getattr(settings.training, name) for name in _TRAINING],
    ]
    return json.dumps(key)
