"""Output layer of a recognizer that is trained with CTC."""

from typing import Any

import keras
from keras import ops

from keras_seq.layers.internal.adaptable_layer import AdaptableLayer
from keras_seq.layers.internal.checks import check_minimum
from keras_seq.layers.internal.exact_dense import ExactDense
from keras_seq.layers.internal.precision import at_least_float32
from keras_seq.layers.internal.scaled_dot_product import NEG_INF, zero_padding


@keras.saving.register_keras_serializable(package="keras_seq")
class CTCLogits(AdaptableLayer):
    """Logits of each label at each frame, with padded frames set to the blank.

        logits_t = W x_t + b                    at a real frame
        logits_t = (0, -1e9, -1e9, ...)         at a padded frame

    In connectionist temporal classification a blank adds nothing to the labels. So frames at an
    end that are blank with probability 1 change neither the likelihood of labels nor the result of
    a search, and consumers of the logits need no lengths.

    Shapes: B batch, T frames, D features, V vocabulary.

    Args:
        vocabulary_size: Integer V, 2 or more: the labels and the blank, which is id 0.

    Call arguments:
        inputs: Float tensor `(B, T, D)`.
        mask: Optional bool tensor `(B, T)`, True at real frames; by default the Keras mask.

    Returns:
        Logits `(B, T, V)` in float32 or more.

    Masks: the mask passes through. Masked steps, even NaN, affect neither outputs nor gradients.

    Raises:
        ValueError: If `vocabulary_size` is not an integer of 2 or more.

    Example:

    >>> layer = CTCLogits(3)
    >>> logits = layer(keras.ops.ones((1, 2, 4)), mask=keras.ops.array([[True, False]]))
    >>> [round(float(p), 3) for p in keras.ops.softmax(logits)[0, 1]]
    [1.0, 0.0, 0.0]

    Reference:
        Graves, Fernández, Gomez and Schmidhuber, "Connectionist Temporal Classification", ICML
        2006, section 3.1
    """

    parts = ("projection",)

    def __init__(self, vocabulary_size: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_minimum(2, vocabulary_size=vocabulary_size)  # one label and the blank
        self.vocabulary_size = vocabulary_size
        self.projection = ExactDense(vocabulary_size, dtype=self.dtype_policy, name="projection")

    def build(self, input_shape: Any) -> None:
        self.projection.build(input_shape)

    def call(self, inputs: Any, mask: Any = None) -> Any:
        logits = at_least_float32(self.projection(zero_padding(inputs, mask)))
        return blank_frames(logits, mask)


def blank_frames(logits: Any, mask: Any) -> Any:
    """Returns logits `(B, T, V)` with masked frames set to the blank. The mask may be None."""
    if mask is None:
        return logits
    blank = ops.arange(logits.shape[-1]) == 0
    blank = ops.where(blank, ops.zeros((), logits.dtype), ops.cast(NEG_INF, logits.dtype))
    return ops.where(mask[..., None], logits, blank)
