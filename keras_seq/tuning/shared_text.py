"""Prepares the text of several runs once for each vocabulary."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from keras_seq.preparation import find_run, open_or_prepare
from keras_seq.run import Run
from keras_seq.settings import Settings
from keras_seq.storage import check_no_link, make_directory, read_json, write_file
from keras_seq.storage.limits import MAX_INDEX_BYTES
from keras_seq.text import InputError, Notice

# Records the settings of the texts, in the order of their directories.
_KEYS = "settings.json"
# Endings of the names of model settings that have no influence on the prepared text.
_NOT_OF_TEXT = ("dropout", "layers", "units", "heads", "filters", "members")
_TRAINING = ("subword_alpha", "from_hub", "source_embeddings", "target_embeddings")


class SharedText:
    """Opens runs with equal vocabularies on one prepared text.

    A file in the folder records which settings each text was prepared with, so that an interrupted
    search finds its texts again.

    Args:
        folder: The folder of the prepared texts.
        notice: Function that receives the messages of preparing a text.

    Raises:
        InputError: If the file is damaged.
    """

    def __init__(self, folder: Path, notice: Notice) -> None:
        self._folder = folder
        self._notice = notice
        self._keys = self._read_keys()

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
        if key not in self._keys:
            # Recorded before the preparation, which may be killed and is then repeated.
            self._keys.append(key)
            make_directory(self._folder, parents=True)
            write_file(self._folder / _KEYS, json.dumps({"keys": self._keys}, indent=1).encode())
        path = self._folder / str(self._keys.index(key) + 1)
        check_no_link(path)
        # A prepared text also has settings that have no influence on it, such as the dropout rate
        # of the first trial that used it.
        earlier = find_run(path)
        if earlier is None or earlier.read_preparation() is None:
            open_or_prepare(settings, path, notice=self._notice).unlock()
        return path

    def _read_keys(self) -> list[str]:
        path = self._folder / _KEYS
        if not path.exists():
            if (self._folder / "1").exists():
                raise InputError(
                    f"{path}: missing, so that the settings of the prepared texts are unknown: "
                    "--overwrite starts the search again"
                )
            return []
        keys = read_json(path, MAX_INDEX_BYTES).get("keys")
        if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
            raise InputError(
                f"{path}: not a list of the settings of prepared texts: --overwrite starts the "
                "search again"
            )
        return keys


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
