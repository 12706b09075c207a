"""The normalizations of Transformer blocks, by name."""

from typing import Any

import keras

from keras_seq.layers.internal.checks import check_choice
from keras_seq.layers.internal.layer_normalization import LayerNormalization

NORMALIZATIONS = ("layer", "rms")


@keras.saving.register_keras_serializable(package="keras_seq")
class RMSNormalization(keras.layers.RMSNormalization):
    """`keras.layers.RMSNormalization` that passes masks on."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True


def make_normalization(kind: str, dtype: Any, name: str) -> Any:
    """Makes a layer that normalizes the last axis; `kind` is one of `NORMALIZATIONS`."""
    check_choice("normalization", kind, NORMALIZATIONS)
    if kind == "rms":
        return RMSNormalization(epsilon=1e-6, dtype=dtype, name=name)
    # PyTorch and CTranslate2 use 1e-5; the default of Keras is 1e-3.
    return LayerNormalization(epsilon=1e-5, dtype=dtype, name=name)
