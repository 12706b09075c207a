"""The bag-of-words text encoder."""

from typing import Any

import keras
from keras import ops

from keras_seq.layers.embedding.hashed_ngram_embedding import HashedNgramEmbedding
from keras_seq.layers.embedding.token_embedding import TokenEmbedding
from keras_seq.models.checks import check_sizes
from keras_seq.models.inputs import token_input
from keras_seq.models.text_encoder import TextEncoder


@keras.saving.register_keras_serializable(package="keras_seq")
class BagTextEncoder(TextEncoder):
    """Text encoder without context, as a functional Keras model.

        steps_s = E[id_s] + sum over n from 2 to N of E_n[hash of id_{s-n+1} ... id_s]

    `TextClassifier` with the mean of these vectors and hidden units is a bag-of-words classifier:
    the baseline for every model that reads the order of the tokens, and often close to it. With
    n-grams it knows the order of neighboring tokens, as in fastText. Id 0 is padding.

    Shapes: B batch, S steps, U units.

    Args:
        vocabulary_size: Positive integer.
        embedding_units: Positive integer U.
        ngrams: Positive integer N, the length of the longest n-grams; 1 for tokens alone.
        ngram_rows: Integer, the number of vectors that n-grams of one length share; see
            `HashedNgramEmbedding`.
        **kwargs: `name`, and `dtype`, the policy of all layers.

    Call arguments:
        inputs: Dict of int32 ids: `source` `(B, S)`.

    Returns:
        Dict of `steps` `(B, S, U)`, and bool `mask` `(B, S)`, True where a token is real.

    Raises:
        ValueError: If a size is out of range.

    Example:

    >>> from keras_seq.models import TextClassifier
    >>> encoder = BagTextEncoder(20, embedding_units=4)
    >>> model = TextClassifier(encoder, 3, pooling="mean", hidden_units=8)
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
        embedding_units: int = 256,
        ngrams: int = 1,
        ngram_rows: int = 2**17,
        **kwargs: Any,
    ) -> None:
        check_sizes(embedding_units=embedding_units, ngrams=ngrams)
        dtype = self._arguments.dtype
        embedding = TokenEmbedding(vocabulary_size, embedding_units, dtype=dtype, name="embedding")
        source = token_input("source")
        steps = embedding(source)
        for n in range(2, ngrams + 1):
            steps += HashedNgramEmbedding(
                n, ngram_rows, embedding_units, dtype=dtype, name=f"ngram_{n}"
            )(source)
        outputs = {"steps": steps, "mask": ops.not_equal(source, 0)}
        super().__init__(inputs={"source": source}, outputs=outputs, **kwargs)
