"""Word vectors from characters."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.internal.adaptable_layer import AdaptableLayer
from keras_seq.layers.internal.checks import check_minimum, check_word_ids
from keras_seq.layers.internal.exact_dense import ExactDense
from keras_seq.layers.internal.scaled_dot_product import zero_padding
from keras_seq.layers.internal.shapes import reshape
from keras_seq.layers.masked_pooling import masked_maximum


@keras.saving.register_keras_serializable(package="keras_seq")
class CharacterConvolution(AdaptableLayer):
    """Embeds words by convolutions of several widths over their characters.

        f_w    = max over positions p of tanh(K_w [e_p; ...; e_{p+w-1}] + b_w)
        y      = [f_w; ...] over the widths w
        t      = sigmoid(y W_t + b_t)
        y      = t * relu(y W_h + b_h) + (1 - t) * y, for each highway layer

    A window starts at each character of the word and reads 0 beyond the end of the word.

    Shapes: B batch, T words, C characters, E features of a character, U units, the sum of
    `filters`.

    Args:
        vocabulary_size: Integer of at least 2, the number of characters. Id 0 is padding.
        embedding_units: Positive integer E.
        widths: Positive integers w, one per convolution.
        filters: Positive integers, the number of features of each convolution.
        num_highway_layers: Integer of at least 0.

    Call arguments:
        inputs: Integer ids `(B, T, C)`, 0 after the last character of a word.

    Returns:
        Tensor `(B, T, U)` in the compute dtype, 0 for words without a character. Padding after a
        word does not change its vector.

    Masks: returns a mask that is True for words with a character.

    Raises:
        ValueError: At construction if a size is out of range, or `widths` and `filters` differ in
            length. At call if the inputs are not integers of shape `(B, T, C)`.

    Example:

    >>> words = keras.ops.array([[[5, 3, 2, 0], [4, 0, 0, 0]]])
    >>> layer = CharacterConvolution(vocabulary_size=30, widths=(2, 3), filters=(4, 6))
    >>> tuple(layer(words).shape)
    (1, 2, 10)

    Reference:
        Kim et al., "Character-Aware Neural Language Models", AAAI 2016, sections 2.2 and 2.3,
        https://arxiv.org/abs/1508.06615; Srivastava, Greff and Schmidhuber, "Highway Networks",
        2015, https://arxiv.org/abs/1505.00387
    """

    parts = ("highways",)

    def __init__(
        self,
        vocabulary_size: int,
        embedding_units: int = 15,
        widths: Sequence[int] = (1, 2, 3, 4, 5, 6),
        filters: Sequence[int] = (25, 50, 75, 100, 125, 150),
        num_highway_layers: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        widths, filters = list(widths), list(filters)
        if len(widths) != len(filters) or not widths:
            raise ValueError(
                "`widths` and `filters` must have one number for each convolution, "
                f"received {widths!r} and {filters!r}."
            )
        check_minimum(2, vocabulary_size=vocabulary_size)
        check_minimum(1, embedding_units=embedding_units, widths=widths, filters=filters)
        check_minimum(0, num_highway_layers=num_highway_layers)
        self.vocabulary_size = vocabulary_size
        self.embedding_units = embedding_units
        self.widths = widths
        self.filters = filters
        self.num_highway_layers = num_highway_layers
        policy = self.dtype_policy
        self.convolutions = [
            keras.layers.Conv1D(count, width, dtype=policy, name=f"convolution_{width}_{index}")
            for index, (width, count) in enumerate(zip(widths, filters, strict=True))
        ]
        self.highways = [self._make_highway(index) for index in range(num_highway_layers)]

    def _make_highway(self, index: int) -> tuple[ExactDense, ExactDense]:
        units, policy = sum(self.filters), self.dtype_policy
        hidden = ExactDense(units, "relu", dtype=policy, name=f"highway_{index}")
        gate = ExactDense(
            units,
            "sigmoid",
            # Initially, most of the input passes through the layer unchanged (section 2.3).
            bias_initializer=keras.initializers.Constant(-2.0),
            dtype=policy,
            name=f"highway_gate_{index}",
        )
        return hidden, gate

    def build(self, input_shape: Any) -> None:
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.vocabulary_size, self.embedding_units),
            initializer="uniform",
            autocast=False,  # lookups stay in full precision, as in `TokenEmbedding`
        )
        for convolution in self.convolutions:
            convolution.build((None, None, self.embedding_units))
        for pair in self.highways:
            for dense in pair:
                dense.build((None, sum(self.filters)))

    def call(self, inputs: Any) -> Any:
        check_word_ids(inputs, "characters")
        batch, words, characters = backend.shape(inputs)
        ids = reshape(inputs, (-1, characters))  # (B T, C)
        # TensorFlow fails on a convolution of no rows, so there is one more row.
        ids = ops.pad(ids, [[0, 1], [0, 0]])
        real = ops.not_equal(ids, 0)
        vectors = zero_padding(ops.take(self.embeddings, ids, axis=0), real)
        vectors = ops.cast(vectors, self.compute_dtype)
        outputs = ops.concatenate(
            [_max_features(convolution, vectors, real) for convolution in self.convolutions],
            axis=-1,
        )  # (B T, U)
        for hidden, gate in self.highways:
            opened = gate(outputs)
            outputs = opened * hidden(outputs) + (1 - opened) * outputs
        outputs = reshape(outputs[:-1], (batch, words, sum(self.filters)))
        return zero_padding(outputs, self.compute_mask(inputs))

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return ops.any(ops.not_equal(inputs, 0), axis=-1)


def _max_features(convolution: keras.layers.Conv1D, vectors: Any, real: Any) -> Any:
    """The maximum of each filter over the real characters, `(B T, filters)`."""
    width = convolution.kernel_size[0]
    padded = ops.pad(vectors, [[0, 0], [0, width - 1], [0, 0]])
    return masked_maximum(ops.tanh(convolution(padded)), real)
