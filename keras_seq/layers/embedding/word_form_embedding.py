"""Embedding of the beginning, the ending and the shape of words."""

import functools
import unicodedata
from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.internal.checks import check_minimum, check_word_ids
from keras_seq.layers.internal.configured_layer import ConfiguredLayer

# Lower case and class are looked up below this code point; nearly all cased letters are below it.
_TABLE_SIZE = 0x3000
_LETTER, _SYMBOL = 2, 5
_FIRST_SYMBOL = 0x1F000  # emoji, and other symbols
_FACTOR = 1021
_SHAPE_CHARACTERS = 4


@keras.saving.register_keras_serializable(package="keras_seq")
class WordFormEmbedding(ConfiguredLayer):
    """Embeds words by their beginnings, their endings and their shape.

        y = [P_1[h(c_1)]; ...; P_N[h(c_1 ... c_N)];  S_1[h(c_m)]; ...; S_N[h(c_{m-N+1} ... c_m)];
             F[h(shape)]]

    The c are the lower-cased characters of a word of m characters. The shape is the classes of its
    first four and last four characters: upper case, lower case or without case, digit,
    punctuation, symbol. These are the features that taggers with hand-written features get most
    from: they tell much about words that are not in the training text. A hash function h chooses
    one of R rows of each table P, S and F.

    Shapes: B batch, T words, C characters, U units of a feature.

    Args:
        rows: Integer R from 2 to 1,048,576.
        units: Positive integer U.
        max_affix: Positive integer N, the number of characters of the longest affix.

    Call arguments:
        inputs: Integer code points `(B, T, C)` of `keras_seq.text.word_characters`: the beginning
            of a word in the first half, its ending in the second half, 0 where there is no
            character.

    Returns:
        Tensor `(B, T, (2 N + 1) U)` in the compute dtype, 0 for words without a character.

    Masks: returns a mask that is True for words with a character.

    Raises:
        ValueError: At construction if a size is out of range. At call if the inputs are not
            integers of shape `(B, T, C)`, or C is odd or below 2 N.

    Example:

    >>> from keras_seq.text import word_characters
    >>> words = keras.ops.array([[word_characters("Dogs"), word_characters("hog")]])
    >>> tuple(WordFormEmbedding(rows=100, units=4, max_affix=2)(words).shape)
    (1, 2, 20)

    Reference:
        Collobert et al., "Natural Language Processing (Almost) from Scratch", 2011, section 6,
        https://arxiv.org/abs/1103.0398; Miranda et al., "Multi hash embeddings in spaCy", 2022,
        https://arxiv.org/abs/2212.09255
    """

    def __init__(
        self, rows: int = 4000, units: int = 16, max_affix: int = 4, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        check_minimum(2, rows=rows)
        check_minimum(1, units=units, max_affix=max_affix)
        if rows > 2**20:
            raise ValueError(f"`rows` must be at most {2**20:,}, received {rows!r}.")
        self.rows = rows
        self.units = units
        self.max_affix = max_affix

    def build(self, input_shape: Any) -> None:
        # Feature i has the rows from `i * rows` on.
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=((2 * self.max_affix + 1) * self.rows, self.units),
            initializer=keras.initializers.RandomNormal(stddev=self.units**-0.5),
            autocast=False,  # lookups stay in full precision, as in `TokenEmbedding`
        )

    def call(self, inputs: Any) -> Any:
        check_word_ids(inputs, "characters")
        width = inputs.shape[-1]
        if width is None or width % 2 or width < 2 * self.max_affix:
            raise ValueError(
                f"The inputs must have an even number of characters, at least "
                f"{2 * self.max_affix}, received the shape {tuple(inputs.shape)}."
            )
        lower, classes = (ops.convert_to_tensor(table, "int32") for table in _tables())
        points = ops.cast(inputs, "int32")
        place = ops.minimum(points, _TABLE_SIZE)
        beyond = ops.equal(place, _TABLE_SIZE)
        lowered = ops.where(beyond, points, ops.take(lower, place, axis=0))
        later = ops.where(ops.less(points, _FIRST_SYMBOL), _LETTER, _SYMBOL)
        kinds = ops.where(beyond, later, ops.take(classes, place, axis=0))
        affixes = range(1, self.max_affix + 1)
        parts = [lowered[..., :n] for n in affixes] + [lowered[..., -n:] for n in affixes]
        parts.append(
            ops.concatenate([kinds[..., :_SHAPE_CHARACTERS], kinds[..., -_SHAPE_CHARACTERS:]], -1)
        )
        hashes = [self._hash(part) + i * self.rows for i, part in enumerate(parts)]
        vectors = ops.take(self.embeddings, ops.stack(hashes, axis=-1), axis=0)
        shape = backend.shape(vectors)
        vectors = ops.reshape(vectors, (shape[0], shape[1], len(parts) * self.units))
        real = self.compute_mask(inputs)
        vectors = ops.where(real[..., None], vectors, ops.zeros((), vectors.dtype))
        return ops.cast(vectors, self.compute_dtype)

    def _hash(self, numbers: Any) -> Any:
        """Maps numbers `(B, T, N)` to a row `(B, T)`."""
        row = ops.zeros_like(numbers[..., 0])
        for i in range(numbers.shape[-1]):
            # Code points are below 2 ** 21, so the sum stays below 2 ** 31.
            row = ops.mod(row * _FACTOR + numbers[..., i], self.rows)
        return row

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        return ops.any(ops.not_equal(inputs, 0), axis=-1)


@functools.cache
def _tables() -> tuple[list[int], list[int]]:
    """Returns the lower case and the class of each code point below `_TABLE_SIZE`, and one more."""
    characters = [chr(point) for point in range(_TABLE_SIZE)]
    lower = [ord(low) if len(low := c.lower()) == 1 else ord(c) for c in characters]
    classes = [_character_class(c) for c in characters]
    return [*lower, 0], [0, *classes[1:], 0]


def _character_class(character: str) -> int:
    category = unicodedata.category(character)
    if category == "Lu":
        return 1
    return {"L": _LETTER, "M": _LETTER, "N": 3, "P": 4}.get(category[0], _SYMBOL)
