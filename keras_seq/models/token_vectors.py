"""The first layers of text encoders: tokens as vectors, with or without their characters."""

from types import SimpleNamespace
from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.embedding.character_convolution import CharacterConvolution
from keras_seq.layers.embedding.token_embedding import TokenEmbedding
from keras_seq.layers.embedding.word_form_embedding import WordFormEmbedding
from keras_seq.models.checks import check_sizes
from keras_seq.models.inputs import token_input
from keras_seq.text import WORD_CHARACTERS

# Shape letters: B batch, S steps, C characters.

_CHARACTER_UNITS = 32
_CHARACTER_WIDTHS = (3, 5)
# Characters whose code points differ by a multiple of this number share a vector.
_CHARACTER_ROWS = 1024


def embed_tokens(
    arguments: SimpleNamespace, vocabulary_size: int, embedding_units: int
) -> tuple[dict[str, Any], Any]:
    """Makes the symbolic inputs of a text encoder, and a vector for each token `(B, S, U)`.

    `arguments` are the constructor arguments of the encoder. With `character_filters` or
    `form_units`, the inputs have code points `characters` `(B, S, C)` of
    `keras_seq.text.word_characters`, and the vectors of the characters follow those of the tokens.
    """
    args, dtype = arguments, arguments.dtype
    embedding = TokenEmbedding(vocabulary_size, embedding_units, dtype=dtype, name="embedding")
    inputs = {"source": token_input("source")}
    vectors = [embedding(inputs["source"])]
    if args.character_filters or args.form_units:
        inputs["characters"] = keras.Input(
            (None, WORD_CHARACTERS), dtype="int32", name="characters"
        )
        points = _KnownCharacters(name="known_characters")(inputs["characters"])
    if args.character_filters:
        check_sizes(character_filters=args.character_filters)
        convolution = CharacterConvolution(
            _CHARACTER_ROWS,
            _CHARACTER_UNITS,
            _CHARACTER_WIDTHS,
            [args.character_filters] * len(_CHARACTER_WIDTHS),
            num_highway_layers=0,
            dtype=dtype,
            name="character_convolution",
        )
        rows = ops.where(ops.equal(points, 0), 0, 1 + ops.mod(points, _CHARACTER_ROWS - 1))
        vectors.append(convolution(rows))
    if args.form_units:
        check_sizes(form_units=args.form_units)
        forms = WordFormEmbedding(units=args.form_units, dtype=dtype, name="word_forms")
        vectors.append(forms(points))
    joined = vectors[0] if len(vectors) == 1 else ops.concatenate(vectors, axis=-1)
    return inputs, joined


class _KnownCharacters(keras.layers.Layer):
    """Sets the number of characters, which may be unknown in compiled code."""

    def call(self, characters: Any) -> Any:
        batch, steps = backend.shape(characters)[:2]
        return ops.reshape(characters, (batch, steps, WORD_CHARACTERS))

    def compute_output_spec(self, characters: Any) -> Any:
        return keras.KerasTensor((*characters.shape[:2], WORD_CHARACTERS), dtype="int32")
