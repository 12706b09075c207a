"""Word vectors from characters."""

import keras
from keras import ops

from keras_seq.layers.embedding.hashed_trigram_embedding import check_ids
from keras_seq.layers.internal.exact_dense import ExactDense
from keras_seq.layers.internal.maximum import masked_maximum
from keras_seq.layers.internal.scaled_dot_product import zero_padding
from keras_seq.layers.internal.shapes import reshape

# Shape letters: B batch, T words, C characters, E features of a character, U units.


@keras.saving.register_keras_serializable(package="keras_seq")
class CharacterConvolution(keras.layers.Layer):
    """Reads each word letter by letter, by convolutions of several widths.

        f_w    = max over places p of tanh(K_w [e_p; ...; e_{p+w-1}] + b_w)
        y      = [f_w; ...] over the widths w
        t      = sigmoid(y W_t + b_t)
        y      = t * relu(y W_h + b_h) + (1 - t) * y, for each highway layer

    A window p begins at each letter of the word; beyond its end there are 0.

    Shapes: B batch, T words, C characters, E features of a character, U units,
    the sum of `filters`.

    Args:
        vocabulary_size: Integer, 2 at least: the number of characters, 0 being
            padding.
        embedding_units: Positive integer E.
        widths: Integers w, one for each convolution.
        filters: Integers, the number of features of each convolution.
        num_highway_layers: Integer, 0 at least.

    Call arguments:
        inputs: Integer ids `(B, T, C)`, 0 after the last character of a word.

    Returns:
        Tensor `(B, T, U)` in the compute dtype, 0 where a word has no
        character.

    Masks: makes the mask of words that have a character. How many 0 there are
    behind a word changes nothing.

    Raises:
        ValueError: If a size is out of range, `widths` and `filters` differ in
            length, or the inputs are not integers of shape `(B, T, C)`.

    Example:

    >>> words = keras.ops.array([[[5, 3, 2, 0], [4, 0, 0, 0]]])
    >>> layer = CharacterConvolution(vocabulary_size=30, widths=(2, 3), filters=(4, 6))
    >>> tuple(layer(words).shape)
    (1, 2, 10)

    Reference:
        Kim et al., "Character-Aware Neural Language Models", AAAI 2016,
        sections 2.2 and 2.3, https://arxiv.org/abs/1508.06615; Srivastava,
        Greff and Schmidhuber, "Highway Networks", 2015,
        https://arxiv.org/abs/1505.00387
    """

    def __init__(
        self,
        vocabulary_size,
        embedding_units=15,
        widths=(1, 2, 3, 4, 5, 6),
        filters=(25, 50, 75, 100, 125, 150),
        num_highway_layers=1,
        **kwargs,
    ):
        super().__init__(**kwargs)
        widths, filters = list(widths), list(filters)
        if len(widths) != len(filters) or not widths:
            raise ValueError(
                "`widths` and `filters` must have one number for each convolution, "
                f"received {widths!r} and {filters!r}."
            )
        for name, value, least in (
            ("vocabulary_size", vocabulary_size, 2),
            ("embedding_units", embedding_units, 1),
            ("num_highway_layers", num_highway_layers, 0),
            *(("widths", width, 1) for width in widths),
            *(("filters", count, 1) for count in filters),
        ):
            if not isinstance(value, int) or value < least:
                raise ValueError(
                    f"`{name}` must be of integers from {least} on, received {value!r}."
                )
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
        units = sum(filters)
        self.highways = [
            (
                ExactDense(units, "relu", dtype=policy, name=f"highway_{layer}"),
                ExactDense(
                    units,
                    "sigmoid",
                    # At first most is carried on as it is: section 2.3.
                    bias_initializer=keras.initializers.Constant(-2.0),
                    dtype=policy,
                    name=f"highway_gate_{layer}",
                ),
            )
            for layer in range(num_highway_layers)
        ]

    def build(self, input_shape):
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.vocabulary_size, self.embedding_units),
            initializer="uniform",
            # Looked up in full precision: see `TokenEmbedding`.
            autocast=False,
        )
        for convolution in self.convolutions:
            convolution.build((None, None, self.embedding_units))
        for pair in self.highways:
            for dense in pair:
                dense.build((None, sum(self.filters)))

    def call(self, inputs):
        check_ids(inputs, "characters")
        batch, words, characters = ops.shape(inputs)
        ids = reshape(inputs, (-1, characters))  # (B T, C)
        real = ops.not_equal(ids, 0)
        vectors = zero_padding(ops.take(self.embeddings, ids, axis=0), real)
        vectors = ops.cast(vectors, self.compute_dtype)
        outputs = ops.concatenate(
            [self._strongest(convolution, vectors, real) for convolution in self.convolutions],
            axis=-1,
        )  # (B T, U)
        for hidden, gate in self.highways:
            opened = gate(outputs)
            outputs = opened * hidden(outputs) + (1 - opened) * outputs
        outputs = reshape(outputs, (batch, words, sum(self.filters)))
        return zero_padding(outputs, self.compute_mask(inputs))

    def _strongest(self, convolution, vectors, real):
        width = convolution.kernel_size[0]
        behind = ops.pad(vectors, [[0, 0], [0, width - 1], [0, 0]])
        features = convolution(behind)  # (B T, C, filters)
        return masked_maximum(ops.tanh(features), real)

    def compute_mask(self, inputs, mask=None):
        return ops.any(ops.not_equal(inputs, 0), axis=-1)

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "embedding_units": self.embedding_units,
            "widths": self.widths,
            "filters": self.filters,
            "num_highway_layers": self.num_highway_layers,
        }
