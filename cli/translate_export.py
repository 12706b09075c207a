"""What `keras-seq translate` translates with where it is given an exported SavedModel."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from keras_seq_cli.output_options import OutputOptions
from keras_seq_cli.quiet import without_noise

# What is the same for a run and an export.
_FREE = {"batch_size", "format", "stream", "progress"}


class ExportModel:
    """An export, which has a search and a vocabulary in it.

    Args:
        version: Its directory.
        batch_size: Lines translated at a time; as a run has by default if None.
        trust: Whether to load it whatever its graph contains.
    """

    # It keeps its vocabulary to itself.
    target_tokenizer = None

    def __init__(self, version: Path, batch_size: int | None, *, trust: bool = False) -> None:
        from keras_seq.serving import SavedModelTranslator

        self.run = str(version)
        self.translator: Any = None
        given = {}
        if batch_size is not None:
            from keras_seq.settings import load_settings

            # With the bounds, and the words, of a run's.
            load_settings(overrides={"search.batch_size": batch_size})
            given = {"batch_size": batch_size}
        self._translator = SavedModelTranslator(version, trust=trust, **given)
        self.batch_size = self._translator.batch_size
        self.n_best = self._translator.n_best

    def load(self) -> None:
        """Loads the graph."""
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        with without_noise():
            self.translator = self._translator.load()

    def pictures(self) -> list[Any]:
        """None: an export gives translations alone."""
        return []


def find_export(path: str) -> Path | None:
    """The version that `translate` was given in place of a run, None for a run.

    Raises:
        InputError: A directory that is neither.
    """
    from keras_seq.serving.saved_model_translator import find_export
    from keras_seq.text import InputError

    version = find_export(path)
    if version is None and os.path.isdir(path) and not os.path.lexists(f"{path}/settings.toml"):
        raise InputError(
            f"{path}: neither a run directory of keras-seq nor an export: it has no "
            "settings.toml, no saved_model.pb and no versions named 1, 2, ..."
        )
    return version


def refuse_options(
    shown: OutputOptions, search: Mapping[str, Any], others: Mapping[str, bool]
) -> None:
    """Refuses what an export cannot do, or does as it was told when it was made.

    Args:
        shown: What is to be written besides translations.
        search: Settings of the search that were given.
        others: Whether they were given, by name.
    """
    options = [*search, *shown.given(), *(name for name, given in others.items() if given)]
    for name in options:
        if name in _FREE:
            continue
        settled = name in search or name in ("ensemble", "which")
        raise typer.BadParameter(
            "is settled in an export: export again with this option, or translate with the run"
            if settled
            else "an export cannot do this: translate with the run",
            param_hint=f"'--{name.replace('_', '-')}'",
        )
