"""Translation with an exported SavedModel, for `keras-seq translate`."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import typer

from keras_seq_cli.output_options import OutputOptions
from keras_seq_cli.quiet import without_log_lines
from keras_seq_cli.search_options import OPTIONS as SEARCH_OPTIONS
from keras_seq_cli.search_options import RERANK_OPTIONS

# Search settings that can be replaced.
SAVED_MODEL_OPTIONS = frozenset({"batch_size"})
# An ONNX export has the forbidden texts and the prefix as ids, and only a run reranks.
ONNX_OPTIONS = frozenset(SEARCH_OPTIONS) - {"forbidden", "prefix", *RERANK_OPTIONS}
# Output options of every export.
_OUTPUTS = {"format", "stream", "progress"}


class ExportModel:
    """An exported SavedModel, which contains the search settings and vocabularies.

    Args:
        version: Directory of the SavedModel.
        batch_size: Lines per batch; None for the default of `SavedModelTranslator`.
        trust: Boolean, whether to load a graph with any operations.
    """

    # None, because the vocabulary is inside the graph.
    source_tokenizer = None
    target_tokenizer = None

    def __init__(self, version: Path, batch_size: int | None, *, trust: bool = False) -> None:
        from keras_seq.serving import SavedModelTranslator

        self.run = str(version)
        self.translator: Any = None
        options = {}
        if batch_size is not None:
            options = {"batch_size": _checked(batch_size)}
        self._translator = SavedModelTranslator(version, trust=trust, **options)
        self.batch_size = self._translator.batch_size
        self.n_best = self._translator.n_best
        self.languages = self._translator.languages

    def load(self) -> None:
        """Loads the SavedModel."""
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        with without_log_lines():
            self.translator = self._translator.load()

    def pictures(self) -> list[Any]:
        """Returns an empty list, because an export returns no attention weights and no beam."""
        return []


class OnnxModel:
    """An ONNX export, which contains the vocabularies.

    Args:
        folder: Directory of the export.
        search: Search settings that replace those of the export.
    """

    source_tokenizer = None
    target_tokenizer = None

    def __init__(self, folder: str, search: Mapping[str, Any]) -> None:
        from keras_seq.serving.onnx_translator import OnnxTranslator

        self.run = folder
        # Loaded now, to report errors before a file is opened; it takes a tenth of a second.
        self.translator: Any = OnnxTranslator(folder, **search)
        self.batch_size, self.n_best = self.translator.batch_size, self.translator.n_best
        self.languages = self.translator.languages

    def load(self) -> None:
        """Does nothing, because the model is loaded."""

    def pictures(self) -> list[Any]:
        """Returns an empty list, because an export returns no attention weights and no beam."""
        return []


def is_onnx_export(path: str) -> bool:
    """Tests if a directory may be an ONNX export."""
    # The name of `keras_seq.runtime.MODEL_FILE`, which needs numpy to be imported.
    return os.path.isfile(os.path.join(path, "model.json"))


def _checked(batch_size: int) -> int:
    """Checks a batch size with the limits and error messages of a run."""
    from keras_seq.settings import load_settings

    load_settings(overrides={"search.batch_size": batch_size})
    return batch_size


def find_export(path: str) -> Path | None:
    """Returns the directory of the exported SavedModel at a path; None for a run.

    Raises:
        InputError: The directory is neither a run nor an export.
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


def reject_options(
    outputs: OutputOptions,
    search: Mapping[str, Any],
    others: Mapping[str, bool],
    allowed: Collection[str],
) -> None:
    """Raises BadParameter for options that an export does not support.

    Args:
        outputs: The output options.
        search: The search options on the command line.
        others: Maps the name of each other option to True if the option is present.
        allowed: Names of the search options that the export supports.
    """
    present = (name for name, is_present in others.items() if is_present)
    for name in (*search, *outputs.changed(), *present):
        if name in _OUTPUTS or name in allowed:
            continue
        is_fixed = name in {*search, "ensemble", "which"} - {*RERANK_OPTIONS}
        raise typer.BadParameter(
            "is fixed in an export: export again with this option, or translate with the run"
            if is_fixed
            else "an export cannot do this: translate with the run",
            param_hint=f"'--{name.replace('_', '-')}'",
        )
