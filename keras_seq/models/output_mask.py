"""Masks on the outputs of models, which Keras' losses and metrics read."""

import keras
from keras import ops

# Shape letters: B batch, T target steps, V vocabulary.


class AttachMask(keras.layers.Layer):
    """Attaches the `mask` argument to a tensor, so that losses leave out what is not real."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        # What is float32 stays so under every policy.
        self._convert_input_args = False
        self.built = True

    def call(self, inputs, mask=None):
        # Another tensor, for Keras keeps the mask on the tensor itself.
        return ops.copy(inputs)


def masked_logits(logits, target):
    """Logits that carry the mask of the target.

    Args:
        logits: Symbolic `(B, T, V)`.
        target: Symbolic ids `(B, T)`, 0 where padded.

    Returns:
        The logits, symbolic. `keras.metrics` and `keras.losses` count their real steps only.
    """
    return AttachMask(name="masked_logits")(logits, mask=ops.not_equal(target, 0))
