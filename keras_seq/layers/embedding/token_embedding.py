"""Token embedding that also maps vectors back to logits."""

import contextlib
import contextvars

import keras
from keras import ops

from keras_seq.layers.internal.shapes import dense

# Shape letters: B batch, T steps, U units, V vocabulary.

_KERNELS: contextvars.ContextVar[dict] = contextvars.ContextVar("kernels")


@contextlib.contextmanager
def cached_output_kernels(layers):
    """Turns the tables of some layers once, for all that they score within the context.

    TensorFlow reads a turned table in two thirds of the time where it scores a handful of
    vectors: it would turn it, or round it to the compute dtype, each time anew.

    Args:
        layers: `TokenEmbedding` layers.
    """
    kernels = {id(layer): layer.scoring_kernel() for layer in layers}
    before = _KERNELS.set({**_KERNELS.get({}), **kernels})
    try:
        yield
    finally:
        _KERNELS.reset(before)


@keras.saving.register_keras_serializable(package="keras_seq")
class TokenEmbedding(keras.layers.Layer):
    """Embeds token ids, and scores vectors against the same table.

        forward:  x[b, t] = sqrt(U) * E[id[b, t]]
        reverse:  logits[b, t, v] = E[v] . h[b, t]

    One table for both directions ties the softmax to the embedding, which
    saves V * U weights and trains rare words from both sides. The table is
    drawn with standard deviation U ** -0.5, so that scaled embeddings have
    unit variance and logits start small. Keras' `ReversibleEmbedding` does
    not scale and has no padding mask.

    Shapes: B batch, T steps, U units, V vocabulary.

    Args:
        vocabulary_size: Positive integer V.
        units: Positive integer U.
        scale: Whether the forward direction multiplies by sqrt(U).

    Call arguments:
        inputs: Integer ids `(B, T)`; with `reverse=True` a float tensor
            `(..., U)`.
        reverse: Whether to score vectors instead of embedding ids.

    Returns:
        Embeddings `(B, T, U)` in the compute dtype, or logits `(..., V)` in
        float32, whatever the dtype policy: a softmax over thousands of words
        needs the precision.

    Masks: the forward direction makes the mask `inputs != 0`; id 0 is padding.

    Raises:
        ValueError: If `vocabulary_size` or `units` is not a positive integer,
            the ids are no integers, or the vectors to score are not U wide.

    Example:

    >>> embedding = TokenEmbedding(vocabulary_size=10, units=4)
    >>> vectors = embedding(keras.ops.array([[5, 6, 0]]))
    >>> tuple(vectors.shape), tuple(embedding(vectors, reverse=True).shape)
    ((1, 3, 4), (1, 3, 10))

    Reference:
        Vaswani et al., "Attention Is All You Need", 2017, section 3.4,
        https://arxiv.org/abs/1706.03762; Press and Wolf, "Using the Output
        Embedding to Improve Language Models", 2017,
        https://arxiv.org/abs/1608.05859
    """

    def __init__(self, vocabulary_size, units, scale=True, **kwargs):
        super().__init__(**kwargs)
        for name, value in (("vocabulary_size", vocabulary_size), ("units", units)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"`{name}` must be a positive integer, received {value!r}.")
        self.vocabulary_size = vocabulary_size
        self.units = units
        self.scale = scale

    def build(self, input_shape):
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.vocabulary_size, self.units),
            initializer=keras.initializers.RandomNormal(stddev=self.units**-0.5),
            # Looked up in full precision: the gradient adds up hundreds of vectors for a frequent
            # word, and a sum in bfloat16 stands still at 256 times what is added.
            autocast=False,
        )

    def call(self, inputs, reverse=False):
        if reverse:
            if inputs.shape[-1] != self.units:
                raise ValueError(
                    f"With `reverse=True` the inputs must have {self.units} features, "
                    f"received shape {tuple(inputs.shape)}."
                )
            kernel = _KERNELS.get({}).get(id(self))
            kernel = self.scoring_kernel() if kernel is None else kernel
            return ops.cast(dense(inputs, kernel), "float32")
        dtype = keras.backend.standardize_dtype(inputs.dtype)
        if "int" not in dtype:
            raise ValueError(
                f"The inputs must be integer ids, received {dtype} of shape "
                f"{tuple(inputs.shape)}: cast them, or score vectors with `reverse=True`."
            )
        vectors = ops.take(self.embeddings, inputs, axis=0)
        if self.scale:
            vectors = vectors * ops.cast(self.units**0.5, vectors.dtype)
        return ops.cast(vectors, self.compute_dtype)

    def scoring_kernel(self):
        """The table as vectors are scored by it, `(U, V)` in the compute dtype."""
        return ops.transpose(ops.cast(self.embeddings, self.compute_dtype))

    def compute_mask(self, inputs, mask=None):
        if "int" not in keras.backend.standardize_dtype(inputs.dtype):
            return mask
        return ops.not_equal(inputs, 0)

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "units": self.units,
            "scale": self.scale,
        }
