"""Embedding of words by their letter trigrams."""

from typing import Any

import keras
from keras import ops

from keras_seq.layers.internal.checks import check_choice, check_minimum, check_word_ids
from keras_seq.layers.internal.configured_layer import ConfiguredLayer


@keras.saving.register_keras_serializable(package="keras_seq")
class HashedTrigramEmbedding(ConfiguredLayer):
    """Embeds a word as the sum or the mean of the vectors of its letter trigrams.

        good -> #go goo ood od#;  x[b, t] = sum over g of E[id[b, t, g]]

    Unknown and misspelled words get vectors near those of similar words, and the size of the table
    does not depend on the number of words. `keras_seq.text.trigram_ids` makes the ids from strings
    with a hash function.

    Shapes: B batch, T words, G trigrams, U units.

    Args:
        vocabulary_size: Integer of at least 2. Ids are smaller; id 0 is padding.
        units: Positive integer U.
        reduction: `"sum"`, as in the paper, or `"mean"`, which gives long words no longer vectors.

    Call arguments:
        inputs: Integer ids `(B, T, G)`, 0 after the last trigram of a word.

    Returns:
        Tensor `(B, T, U)` in the compute dtype, 0 for words without a trigram.

    Masks: returns a mask that is True for words with a trigram.

    Raises:
        ValueError: At construction if a size is out of range or `reduction` is unknown. At call if
            the inputs are not integers of shape `(B, T, G)`.

    Example:

    >>> from keras_seq.text import trigram_ids
    >>> ids = trigram_ids([["good", "food"]], vocabulary_size=1000)
    >>> tuple(HashedTrigramEmbedding(1000, units=8)(ids).shape)
    (1, 2, 8)

    Reference:
        Huang et al., "Learning Deep Structured Semantic Models for Web Search using Clickthrough
        Data", CIKM 2013, section 3.2
    """

    def __init__(
        self, vocabulary_size: int, units: int, reduction: str = "sum", **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        check_minimum(2, vocabulary_size=vocabulary_size)
        check_minimum(1, units=units)
        check_choice("reduction", reduction, ("sum", "mean"))
        self.vocabulary_size = vocabulary_size
        self.units = units
        self.reduction = reduction

    def build(self, input_shape: Any) -> None:
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.vocabulary_size, self.units),
            initializer=keras.initializers.RandomNormal(stddev=self.units**-0.5),
            autocast=False,  # lookups and sums stay in full precision, as in `TokenEmbedding`
        )

    def call(self, inputs: Any) -> Any:
        check_word_ids(inputs, "trigrams")
        vectors = ops.take(self.embeddings, inputs, axis=0)  # (B, T, G, U)
        real = ops.cast(ops.not_equal(inputs, 0), vectors.dtype)
        total = ops.sum(vectors * ops.expand_dims(real, -1), axis=2)  # (B, T, U)
        if self.reduction == "mean":
            count = ops.sum(real, axis=2, keepdims=True)
            total = total / ops.maximum(count, ops.ones((), count.dtype))
        return ops.cast(total, self.compute_dtype)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return ops.any(ops.not_equal(inputs, 0), axis=-1)
