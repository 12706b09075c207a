"""Token embedding that also maps vectors back to logits."""

import contextlib
import contextvars
from collections.abc import Iterable, Iterator
from typing import Any

import keras
from keras import ops

from keras_seq.layers.internal.checks import check_positive
from keras_seq.layers.internal.configured_layer import ConfiguredLayer
from keras_seq.layers.internal.shapes import dense

_KERNELS: contextvars.ContextVar[dict[int, Any]] = contextvars.ContextVar("kernels")


@contextlib.contextmanager
def cached_output_kernels(layers: Iterable["TokenEmbedding"]) -> Iterator[None]:
    """Transposes the tables of some layers once, for all calls within the context.

    Otherwise TensorFlow transposes and casts each table at each step of a search. For a handful of
    vectors, a product with a transposed table takes two thirds of the time.
    """
    kernels = {id(layer): layer.output_kernel() for layer in layers}
    token = _KERNELS.set({**_KERNELS.get({}), **kernels})
    try:
        yield
    finally:
        _KERNELS.reset(token)


@keras.saving.register_keras_serializable(package="keras_seq")
class TokenEmbedding(ConfiguredLayer):
    """Embeds token ids, and computes logits from vectors with the same table.

        forward:  x[b, t] = sqrt(U) * E[id[b, t]]
        reverse:  logits[b, t, v] = E[v] . h[b, t]

    Sharing the table between the embedding and the softmax saves V * U weights, and trains rare
    words from both sides. The table is initialized with standard deviation U ** -0.5, so that
    scaled embeddings have unit variance and logits start small. Keras' `ReversibleEmbedding` does
    not scale and has no padding mask.

    Shapes: B batch, T steps, U units, V vocabulary.

    Args:
        vocabulary_size: Positive integer V.
        units: Positive integer U.
        scale: Whether the forward direction multiplies by sqrt(U).

    Call arguments:
        inputs: Integer ids `(B, T)`; with `reverse=True` a float tensor `(..., U)`.
        reverse: Whether to compute logits from vectors instead of embedding ids.

    Returns:
        Embeddings `(B, T, U)` in the compute dtype, or logits `(..., V)` in float32 under every
        dtype policy, because a softmax over thousands of words needs the precision.

    Masks: the forward direction returns the mask `inputs != 0`, because id 0 is padding.

    Raises:
        ValueError: At construction if `vocabulary_size` or `units` is not a positive integer. At
            call if the ids are not integers, or with `reverse=True` if the width is not U.

    Example:

    >>> embedding = TokenEmbedding(vocabulary_size=10, units=4)
    >>> vectors = embedding(keras.ops.array([[5, 6, 0]]))
    >>> tuple(vectors.shape), tuple(embedding(vectors, reverse=True).shape)
    ((1, 3, 4), (1, 3, 10))

    Reference:
        Vaswani et al., 2017, section 3.4, https://arxiv.org/abs/1706.03762; Press and Wolf, "Using
        the Output Embedding to Improve Language Models", 2017, https://arxiv.org/abs/1608.05859
    """

    def __init__(self, vocabulary_size: int, units: int, scale: bool = True, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_positive(vocabulary_size=vocabulary_size, units=units)
        self.vocabulary_size = vocabulary_size
        self.units = units
        self.scale = scale

    def build(self, input_shape: Any) -> None:
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.vocabulary_size, self.units),
            initializer=keras.initializers.RandomNormal(stddev=self.units**-0.5),
            # Lookups stay in full precision: the gradient of a frequent word sums hundreds of
            # vectors, and a bfloat16 sum stops growing at 256 times a summand.
            autocast=False,
        )

    def call(self, inputs: Any, reverse: bool = False) -> Any:
        if reverse:
            if inputs.shape[-1] != self.units:
                raise ValueError(
                    f"With `reverse=True` the inputs must have {self.units} features, "
                    f"received shape {tuple(inputs.shape)}."
                )
            kernel = _KERNELS.get({}).get(id(self))
            kernel = self.output_kernel() if kernel is None else kernel
            return ops.cast(dense(inputs, kernel), "float32")
        dtype = keras.backend.standardize_dtype(inputs.dtype)
        if "int" not in dtype:
            raise ValueError(
                f"The inputs must be integer ids, received {dtype} of shape "
                f"{tuple(inputs.shape)}: cast them, or compute logits with `reverse=True`."
            )
        vectors = ops.take(self.embeddings, inputs, axis=0)
        if self.scale:
            vectors = vectors * ops.cast(self.units**0.5, vectors.dtype)
        return ops.cast(vectors, self.compute_dtype)

    def output_kernel(self) -> Any:
        """The transposed table `(U, V)` in the compute dtype, which vectors are multiplied by."""
        return ops.transpose(ops.cast(self.embeddings, self.compute_dtype))

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        if "int" not in keras.backend.standardize_dtype(inputs.dtype):
            return mask
        return ops.not_equal(inputs, 0)
