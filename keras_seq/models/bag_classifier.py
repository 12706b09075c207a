"""The bag-of-words classifier."""

from typing import Any

import keras
from keras import ops

from keras_seq.layers.embedding.token_embedding import TokenEmbedding
from keras_seq.layers.internal.dropout import Dropout
from keras_seq.layers.internal.exact_dense import ExactDense
from keras_seq.layers.internal.seeds import split_seed
from keras_seq.layers.masked_pooling import MaskedPooling
from keras_seq.models.checks import check_sizes
from keras_seq.models.inputs import token_input
from keras_seq.models.text_classifier import TextClassifier


@keras.saving.register_keras_serializable(package="keras_seq")
class BagClassifier(TextClassifier):
    """Text classifier on the mean of the token embeddings, as a functional Keras model.

        m = dropout(1 / n * sum over the n real steps s of E[id_s])
        h = dropout(relu(V m + c)), or m itself without hidden units
        logits = W h + b

    The order of the tokens does not matter. This is the baseline for every model that reads the
    order, and often close to it. Id 0 is padding, which changes nothing.

    Shapes: B batch, S steps, C classes.

    Args:
        vocabulary_size: Positive integer.
        num_classes: Positive integer C.
        embedding_units: Positive integer.
        hidden_units: Integer, 0 for no hidden layer.
        dropout: Float in [0, 1), on the mean and on the hidden units.
        seed: Optional integer, makes the dropout reproducible.
        dtype: Dtype policy of all layers, or None for the global policy.

    Call arguments:
        inputs: Dict of int32 ids: `source` `(B, S)`.

    Returns:
        Float32 logits `(B, C)`. A row of padding is classified by a mean of 0.

    Raises:
        ValueError: If a size or rate is out of range.

    Example:

    >>> model = BagClassifier(20, 3, embedding_units=4, hidden_units=8)
    >>> tuple(model({"source": keras.ops.array([[5, 6, 0]])}).shape)
    (1, 3)

    Reference:
        Iyyer et al., "Deep Unordered Composition Rivals Syntactic Methods for Text
        Classification", 2015, https://aclanthology.org/P15-1162/; Joulin et al., "Bag of Tricks
        for Efficient Text Classification", 2017, https://arxiv.org/abs/1607.01759
    """

    def __init__(
        self,
        vocabulary_size: int,
        num_classes: int,
        embedding_units: int = 256,
        hidden_units: int = 256,
        dropout: float = 0.3,
        seed: int | None = None,
        dtype: Any = None,
        name: str = "bag_classifier",
        **kwargs: Any,
    ) -> None:
        check_sizes(num_classes=num_classes, embedding_units=embedding_units)
        if not isinstance(hidden_units, int) or hidden_units < 0:
            raise ValueError(
                f"`hidden_units` must be an integer, 0 or more, received {hidden_units!r}."
            )
        seeds = split_seed(seed, 2)
        embedding = TokenEmbedding(vocabulary_size, embedding_units, dtype=dtype, name="embedding")
        source = token_input("source")
        x = MaskedPooling("mean", dtype=dtype, name="pooling")(
            embedding(source), mask=ops.not_equal(source, 0)
        )
        if hidden_units:
            x = Dropout(dropout, seed=seeds.pop(), dtype=dtype, name="pooling_dropout")(x)
            x = ExactDense(hidden_units, activation="relu", dtype=dtype, name="hidden")(x)
        self._connect(source, x, seeds.pop(), name=name, **kwargs)
