"""The recurrent text encoder."""

from typing import Any

import keras
from keras import ops

from keras_seq.layers.internal.dropout import Dropout
from keras_seq.layers.internal.seeds import split_seed
from keras_seq.models.checks import check_choice, check_sizes
from keras_seq.models.recurrent_encoder import (
    RECURRENT_LAYERS,
    encode_bidirectional,
    make_bidirectional_layers,
)
from keras_seq.models.text_encoder import TextEncoder
from keras_seq.models.token_vectors import embed_tokens


@keras.saving.register_keras_serializable(package="keras_seq")
class RecurrentTextEncoder(TextEncoder):
    """Text encoder with bidirectional recurrent layers, as a functional Keras model.

        steps = bidirectional layers over dropout(E[id]), residual from layer 2
        last  = [last forward state; last backward state] of the topmost layer

    For texts where word order matters and the corpus is small. The last state of a direction is
    its state at the last real token it reads. Id 0 is padding, which changes nothing.

    Shapes: B batch, S steps, U units.

    Args:
        vocabulary_size, num_layers, embedding_units: Positive integers.
        cell: "gru" or "lstm".
        units: Positive integer U, in each direction.
        dropout: Float in [0, 1), on embeddings and between layers.
        character_filters: Integer, the filters of a `CharacterConvolution` of each of two widths; 0
            for none.
        form_units: Integer, the units of each feature of a `WordFormEmbedding`; 0 for none.
        seed: Optional integer, makes the dropout reproducible.
        **kwargs: `name`, and `dtype`, the policy of all layers.

    Call arguments:
        inputs: Dict of int32 ids: `source` `(B, S)`; and with `character_filters` or `form_units`
            int32 `characters` `(B, S, C)`, the code points that `keras_seq.text.word_characters`
            returns for the word of each token, or zeros.

    Returns:
        Dict of `steps` `(B, S, 2U)`; `last` `(B, 2U)`, 0 for a row of padding; and bool `mask`
        `(B, S)`, True where a token is real.

    Raises:
        ValueError: If `cell` is unknown, or a size or rate is out of range.

    Example:

    >>> encoder = RecurrentTextEncoder(20, embedding_units=4, units=8)
    >>> tuple(encoder({"source": keras.ops.array([[5, 6, 0]])})["steps"].shape)
    (1, 3, 16)

    Reference:
        Schuster and Paliwal, "Bidirectional Recurrent Neural Networks", 1997; Conneau et al.,
        "Supervised Learning of Universal Sentence Representations from Natural Language Inference
        Data", 2017, section 3.2, https://arxiv.org/abs/1705.02364
    """

    def __init__(
        self,
        vocabulary_size: int,
        cell: str = "gru",
        num_layers: int = 1,
        embedding_units: int = 256,
        units: int = 256,
        dropout: float = 0.3,
        character_filters: int = 0,
        form_units: int = 0,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        check_choice("cell", cell, tuple(RECURRENT_LAYERS))
        check_sizes(num_layers=num_layers, embedding_units=embedding_units, units=units)
        dtype = self._arguments.dtype
        dropouts = [
            Dropout(dropout, seed=seed, dtype=dtype, name=f"encoder_dropout_{i}")
            for i, seed in enumerate(split_seed(seed, num_layers))
        ]
        layers = make_bidirectional_layers(cell, num_layers, units, dtype)
        inputs, x = embed_tokens(self._arguments, vocabulary_size, embedding_units)
        mask = ops.not_equal(inputs["source"], 0)
        steps, last_states = encode_bidirectional(layers, dropouts[1:], dropouts[0](x), mask)
        outputs = {"steps": steps, "last": last_states[-1][0], "mask": mask}
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)

    def pool(self, pooling: str) -> Any:
        return self.output["last"] if pooling == "last" else super().pool(pooling)
