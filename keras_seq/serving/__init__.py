"""Export functions and translators, imported on first use because their dependencies differ."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

_NAMES = {
    "CTranslate2Translator": "keras_seq.serving.ctranslate2_translator",
    "SavedModelTranslator": "keras_seq.serving.saved_model_translator",
    "export_ctranslate2": "keras_seq.serving.ctranslate2_model",
    "export_keras": "keras_seq.serving.keras_file",
    "export_litert": "keras_seq.serving.litert_model",
    "export_model": "keras_seq.serving.model_export",
    "export_onnx": "keras_seq.serving.onnx_model",
    "export_recognizer": "keras_seq.serving.recognizer_export",
    "export_saved_model": "keras_seq.serving.saved_model",
    "verify_saved_model": "keras_seq.serving.verification",
}

__all__ = list(_NAMES)

if TYPE_CHECKING:
    from .ctranslate2_model import export_ctranslate2 as export_ctranslate2
    from .ctranslate2_translator import CTranslate2Translator as CTranslate2Translator
    from .keras_file import export_keras as export_keras
    from .litert_model import export_litert as export_litert
    from .model_export import export_model as export_model
    from .onnx_model import export_onnx as export_onnx
    from .recognizer_export import export_recognizer as export_recognizer
    from .saved_model import export_saved_model as export_saved_model
    from .saved_model_translator import SavedModelTranslator as SavedModelTranslator
    from .verification import verify_saved_model as verify_saved_model


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'keras_seq.serving' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
