"""Masks on model outputs. Keras losses and metrics read these masks."""

from typing import Any

import keras
from keras import ops

# Shape letters: B batch, T target steps, V vocabulary.


class AttachMask(keras.layers.Layer):
    """Attaches the `mask` argument to a tensor, so that losses ignore padding."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        # Float32 outputs must not be cast to the compute dtype.
        self._convert_input_args = False
        self.built = True

    def call(self, inputs: Any, mask: Any = None) -> Any:
        # Returns a copy, because Keras attaches the mask to the tensor itself.
        return ops.copy(inputs)


def masked_logits(logits: Any, target: Any) -> Any:
    """Returns symbolic logits `(B, T, V)` whose mask is True where `target` `(B, T)` is not 0."""
    return AttachMask(name="masked_logits")(logits, mask=ops.not_equal(target, 0))
