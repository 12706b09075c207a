"""The convolutional text encoder."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops

from keras_seq.layers.internal.dropout import Dropout
from keras_seq.layers.internal.scaled_dot_product import zero_padding
from keras_seq.models.checks import check_sizes
from keras_seq.models.text_encoder import TextEncoder
from keras_seq.models.token_vectors import embed_tokens


@keras.saving.register_keras_serializable(package="keras_seq")
class ConvolutionalTextEncoder(TextEncoder):
    """Text encoder with convolutions of several widths, as a functional Keras model.

        steps_s = [relu(K_w [x_{s-(w-1)//2}; ...; x_{s+w//2}] + b_w) for each width w],
        x       = dropout(E[id])

    `TextClassifier` with the maximum of these vectors over the steps is the convolutional
    classifier of Kim (2014): each filter finds a phrase, wherever it is in the text. Windows read 0
    beyond the text. Id 0 is padding, which changes nothing.

    Shapes: B batch, S steps, F filters, W widths.

    Args:
        vocabulary_size, embedding_units: Positive integers.
        widths: Different positive integers w, the tokens that a window covers.
        filters: Positive integer F, the number of filters of each width.
        dropout: Float in [0, 1), on embeddings.
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
        Dict of `steps` `(B, S, W F)`, and bool `mask` `(B, S)`, True where a token is real.

    Raises:
        ValueError: If a size is not positive, there is no width, or a width is given twice.

    Example:

    >>> encoder = ConvolutionalTextEncoder(20, embedding_units=4, widths=(2, 3), filters=5)
    >>> tuple(encoder({"source": keras.ops.array([[5, 6, 0]])})["steps"].shape)
    (1, 3, 10)

    Reference:
        Kim, "Convolutional Neural Networks for Sentence Classification", 2014,
        https://arxiv.org/abs/1408.5882
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding_units: int = 128,
        widths: Sequence[int] = (3, 4, 5),
        filters: int = 100,
        dropout: float = 0.3,
        character_filters: int = 0,
        form_units: int = 0,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        check_sizes(embedding_units=embedding_units, filters=filters)
        if not widths or len(set(widths)) < len(widths):
            raise ValueError(f"`widths` must be different integers, received {widths!r}.")
        check_sizes(**{f"widths[{i}]": width for i, width in enumerate(widths)})
        dtype = self._arguments.dtype
        inputs, x = embed_tokens(self._arguments, vocabulary_size, embedding_units)
        mask = ops.not_equal(inputs["source"], 0)
        x = Dropout(dropout, seed=seed, dtype=dtype, name="encoder_dropout")(x)
        x = zero_padding(x, mask)
        convolutions = [
            keras.layers.Conv1D(
                filters,
                width,
                padding="same",
                activation="relu",
                dtype=dtype,
                name=f"convolution_{width}",
            )(x)
            for width in widths
        ]
        steps = ops.concatenate(convolutions, axis=-1) if len(widths) > 1 else convolutions[0]
        super().__init__(inputs=inputs, outputs={"steps": steps, "mask": mask}, **kwargs)
