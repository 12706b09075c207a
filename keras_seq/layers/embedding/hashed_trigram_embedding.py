"""Embedding of words by the letter trigrams they are made of."""

import keras
from keras import ops

# Shape letters: B batch, T words, G trigrams, U units.


@keras.saving.register_keras_serializable(package="keras_seq")
class HashedTrigramEmbedding(keras.layers.Layer):
    """Embeds a word as the sum, or the mean, of the vectors of its letter trigrams.

        good -> #go goo ood od#
        x[b, t] = sum over g of E[id[b, t, g]]

    Words that were never seen, and words with a letter wrong, come near their
    kin, and the table is as large as one chooses: `keras_seq.text.trigram_ids`
    makes the ids from strings by a hash.

    Shapes: B batch, T words, G trigrams, U units.

    Args:
        vocabulary_size: Integer, 2 at least: the ids are below it, 0 is padding.
        units: Positive integer U.
        reduction: `"sum"`, as in the paper, or `"mean"`, where a long word is
            no longer a vector.

    Call arguments:
        inputs: Integer ids `(B, T, G)`, 0 where a word has no more trigrams.

    Returns:
        Tensor `(B, T, U)` in the compute dtype, 0 where a word has no trigram.

    Masks: makes the mask of words that have a trigram.

    Raises:
        ValueError: If a size is out of range, `reduction` is unknown, or the
            inputs are not integers of shape `(B, T, G)`.

    Example:

    >>> from keras_seq.text import trigram_ids
    >>> ids = trigram_ids([["good", "food"]], vocabulary_size=1000)
    >>> tuple(HashedTrigramEmbedding(1000, units=8)(ids).shape)
    (1, 2, 8)

    Reference:
        Huang et al., "Learning Deep Structured Semantic Models for Web Search
        using Clickthrough Data", CIKM 2013, section 3.2
    """

    def __init__(self, vocabulary_size, units, reduction="sum", **kwargs):
        super().__init__(**kwargs)
        for name, value, least in (("vocabulary_size", vocabulary_size, 2), ("units", units, 1)):
            if not isinstance(value, int) or value < least:
                raise ValueError(
                    f"`{name}` must be an integer from {least} on, received {value!r}."
                )
        if reduction not in ("sum", "mean"):
            raise ValueError(f'`reduction` must be "sum" or "mean", received {reduction!r}.')
        self.vocabulary_size = vocabulary_size
        self.units = units
        self.reduction = reduction

    def build(self, input_shape):
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.vocabulary_size, self.units),
            initializer=keras.initializers.RandomNormal(stddev=self.units**-0.5),
            # Looked up and added in full precision: see `TokenEmbedding`.
            autocast=False,
        )

    def call(self, inputs):
        check_ids(inputs, "trigrams")
        vectors = ops.take(self.embeddings, inputs, axis=0)  # (B, T, G, U)
        real = ops.cast(ops.not_equal(inputs, 0), vectors.dtype)
        total = ops.sum(vectors * ops.expand_dims(real, -1), axis=2)  # (B, T, U)
        if self.reduction == "mean":
            count = ops.sum(real, axis=2, keepdims=True)
            total = total / ops.maximum(count, ops.ones((), count.dtype))
        return ops.cast(total, self.compute_dtype)

    def compute_mask(self, inputs, mask=None):
        return ops.any(ops.not_equal(inputs, 0), axis=-1)

    def get_config(self):
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "units": self.units,
            "reduction": self.reduction,
        }


def check_ids(inputs, parts):
    """Raises ValueError unless the inputs are the ids of parts of words."""
    dtype = keras.backend.standardize_dtype(inputs.dtype)
    if len(inputs.shape) != 3 or "int" not in dtype:
        raise ValueError(
            f"The inputs must be integer ids of shape (batch, words, {parts}), "
            f"received {dtype} of shape {tuple(inputs.shape)}."
        )
