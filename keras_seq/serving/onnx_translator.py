"""Translator that runs an ONNX export, for the commands."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keras_seq import runtime
from keras_seq.inference.hypothesis import Hypothesis, LineTranslator
from keras_seq.inference.predictor import check_is_list
from keras_seq.serving.http.versions import recorded_languages
from keras_seq.storage import check_tree
from keras_seq.text import InputError, with_languages


class OnnxTranslator(LineTranslator):
    """Translates lines of text with an ONNX export, by `keras_seq.runtime`.

    The translations have no token ids.

    Args:
        folder: A directory that `keras-seq export --format onnx` wrote.
        **options: Arguments of `keras_seq.runtime.load`.

    Raises:
        InputError: The export is damaged or of another version, contains links or pipes, or does
            not translate, or a package is not installed.
    """

    def __init__(self, folder: str | os.PathLike[str], **options: Any) -> None:
        # The runtime follows links, because some systems of containers mount files by links.
        check_tree(Path(os.path.realpath(folder)))
        try:
            model = runtime.load(folder, **options)
        except runtime.RuntimeInputError as error:
            raise InputError(str(error)) from None
        except ImportError as error:
            raise InputError(
                f"{error.name} is not installed: python -m pip install 'keras-seq[onnx]'"
            ) from None
        if model.task != "translate":
            raise InputError(
                f"{folder}: an export of the task {model.task!r}, expected 'translate': use "
                f"python {folder}/runtime.py < input > output"
            )
        self._model = model
        self.n_best, self.batch_size = model.n_best, model.batch_size
        self.languages = recorded_languages(folder)

    def translate(self, lines: Sequence[str], *, to: str | None = None) -> list[list[Hypothesis]]:
        check_is_list("lines", lines)
        lines = with_languages(lines, self.languages, to)
        try:
            return [[Hypothesis(*output) for output in row] for row in self._model.run(lines)]
        except runtime.RuntimeInputError as error:
            raise InputError(str(error)) from None
