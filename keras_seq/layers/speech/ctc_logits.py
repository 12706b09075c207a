"""Outputs of a recogniser whose frames are aligned with labels by CTC."""

import keras
from keras import ops

from keras_seq.layers.internal.exact_dense import ExactDense
from keras_seq.layers.internal.precision import at_least_float32
from keras_seq.layers.internal.scaled_dot_product import MASKED, zero_padding

# Shape letters: B batch, T frames, D features, V vocabulary.


@keras.saving.register_keras_serializable(package="keras_seq")
class CTCLogits(keras.layers.Layer):
    """Scores of each label at each frame; a frame that is padding says the blank.

        logits_t = W x_t + b                    of a real frame
        logits_t = (0, -1e9, -1e9, ...)         of one that is padding

    In connectionist temporal classification a blank adds nothing to the labels. So
    frames at an end that are the blank with probability 1 change neither the likelihood
    of any labels nor what a search finds, and who reads the logits needs no lengths.

    Shapes: B batch, T frames, D features, V vocabulary.

    Args:
        vocabulary_size: Integer V, 2 at least: the labels, and the blank, which is id 0.

    Call arguments:
        inputs: Float tensor `(B, T, D)`.
        mask: Optional bool tensor `(B, T)`, True where a frame is real. Filled in by
            Keras from `inputs` when not given.

    Returns:
        Logits `(B, T, V)`, float32 at least.

    Masks: the mask of `inputs` passes through. What a masked frame holds, NaN included,
    reaches neither the outputs nor the gradients.

    Raises:
        ValueError: If `vocabulary_size` is no integer of 2 at least.

    Example:

    >>> layer = CTCLogits(3)
    >>> logits = layer(keras.ops.ones((1, 2, 4)), mask=keras.ops.array([[True, False]]))
    >>> [round(float(p), 3) for p in keras.ops.softmax(logits)[0, 1]]
    [1.0, 0.0, 0.0]

    Reference:
        Graves, Fernández, Gomez and Schmidhuber, "Connectionist Temporal
        Classification", ICML 2006, section 3.1
    """

    def __init__(self, vocabulary_size, **kwargs):
        super().__init__(**kwargs)
        if not isinstance(vocabulary_size, int) or vocabulary_size < 2:
            raise ValueError(
                "`vocabulary_size` must be an integer of 2 at least, one label and the blank, "
                f"received {vocabulary_size!r}."
            )
        self.vocabulary_size = vocabulary_size
        self.supports_masking = True
        self.projection = ExactDense(vocabulary_size, dtype=self.dtype_policy, name="projection")

    def build(self, input_shape):
        self.projection.build(input_shape)

    def call(self, inputs, mask=None):
        logits = at_least_float32(self.projection(zero_padding(inputs, mask)))
        return blank_frames(logits, mask)

    def compute_mask(self, inputs, mask=None):
        return mask

    def get_config(self):
        return {**super().get_config(), "vocabulary_size": self.vocabulary_size}


def blank_frames(logits, mask):
    """Logits `(B, T, V)` that say the blank at masked frames; those given if there is no mask."""
    if mask is None:
        return logits
    blank = ops.arange(logits.shape[-1]) == 0
    blank = ops.where(blank, ops.zeros((), logits.dtype), ops.cast(MASKED, logits.dtype))
    return ops.where(mask[..., None], logits, blank)
