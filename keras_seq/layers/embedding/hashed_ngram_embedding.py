"""Embedding of the n-grams of token ids."""

from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.internal.checks import check_minimum
from keras_seq.layers.internal.configured_layer import ConfiguredLayer

_FACTOR = 1021
# The largest number of rows for which `_FACTOR` times a row fits into 32 bits.
_MAX_ROWS = 2**20


@keras.saving.register_keras_serializable(package="keras_seq")
class HashedNgramEmbedding(ConfiguredLayer):
    """Embeds the n tokens that end at each step, by a row of a table that a hash function chooses.

        h_1 = id[b, t-n+1];  h_i = (1021 * h_{i-1} + id[b, t-n+i]) mod R
        x[b, t] = E[h_n]

    A sum of token embeddings has no word order; with n-grams, it has the order of neighboring
    words, at the cost of a lookup. N-grams with equal hashes share a vector, so that the table does
    not grow with the corpus. Before the first token, the ids are 0.

    Shapes: B batch, T steps, R rows, U units.

    Args:
        n: Integer of at least 2, the number of tokens.
        rows: Integer from 2 to 1,048,576, the number R of vectors.
        units: Positive integer U.

    Call arguments:
        inputs: Integer ids `(B, T)`, 0 in padding.

    Returns:
        Tensor `(B, T, U)` in the compute dtype.

    Masks: returns the mask `inputs != 0`.

    Raises:
        ValueError: At construction if a size is out of range. At call if the inputs are not
            integers of shape `(B, T)`.

    Example:

    >>> layer = HashedNgramEmbedding(2, rows=1000, units=4)
    >>> vectors = layer(keras.ops.array([[5, 6, 7], [4, 6, 7]]))
    >>> tuple(vectors.shape), bool(keras.ops.all(vectors[0, 2] == vectors[1, 2]))
    ((2, 3, 4), True)

    Reference:
        Joulin et al., "Bag of Tricks for Efficient Text Classification", 2017, section 2.2,
        https://arxiv.org/abs/1607.01759
    """

    def __init__(self, n: int, rows: int, units: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_minimum(2, n=n, rows=rows)
        check_minimum(1, units=units)
        if rows > _MAX_ROWS:
            raise ValueError(f"`rows` must be at most {_MAX_ROWS:,}, received {rows!r}.")
        self.n = n
        self.rows = rows
        self.units = units

    def build(self, input_shape: Any) -> None:
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.rows, self.units),
            initializer=keras.initializers.RandomNormal(stddev=self.units**-0.5),
            autocast=False,  # lookups stay in full precision, as in `TokenEmbedding`
        )

    def call(self, inputs: Any) -> Any:
        dtype = keras.backend.standardize_dtype(inputs.dtype)
        if len(inputs.shape) != 2 or "int" not in dtype:
            raise ValueError(
                "The inputs must be integer ids of shape (batch, steps), "
                f"received {dtype} of shape {tuple(inputs.shape)}."
            )
        ids = ops.cast(inputs, "int32")
        steps = backend.shape(ids)[1]
        padded = ops.pad(ids, [[0, 0], [self.n - 1, 0]])
        hashes = padded[:, :steps]
        for i in range(1, self.n):
            # The ids are below 2 ** 20, so the sum stays below 2 ** 31.
            hashes = ops.mod(
                ops.mod(hashes, self.rows) * _FACTOR + padded[:, i : i + steps], self.rows
            )
        return ops.cast(ops.take(self.embeddings, hashes, axis=0), self.compute_dtype)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return ops.not_equal(inputs, 0)
