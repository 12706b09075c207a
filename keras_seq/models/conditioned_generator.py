"""The generator whose first state comes from any encoder."""

from collections.abc import Mapping
from typing import Any

import keras
from keras import ops

from keras_seq.models.checks import check_choice
from keras_seq.models.inputs import token_input
from keras_seq.models.recurrent_decoder import RecurrentDecoder
from keras_seq.models.searchable_model import SearchableModel


@keras.saving.register_keras_serializable(package="keras_seq")
class ConditionedGenerator(SearchableModel):
    """Recurrent generator of tokens from a vector, as a functional Keras model.

        c = encoder(source)                                      an image, features, a class
        s_ij = tanh(W_ij c + b_ij)                               first state j of layer i
        x_t = dropout(E[y_t]), or [dropout(E[y_t]); c]           with `context="every_step"`
        recurrent layers, residual from layer 2
        logits = W h + b, or E (P h) with a tied output

        P(y | source) = prod over t of P(y_t | y_<t, c)

    For captions and other texts about something that is not a text. The encoder is any Keras model
    that returns a vector: a network that is trained with the generator, or a pretrained one of
    `keras.applications` with `trainable = False`. Id 0 is padding.

    Shapes: B batch, T target steps, D vector, V vocabulary, U units.

    Args:
        encoder: Keras model or layer from its input to vectors `(B, D)`.
        vocabulary_size: Positive integer V.
        source_shape: Shape of one row of the encoder's input, or a dict of shapes. Only needed if
            the encoder does not know its input: a layer, or a model without inputs yet.
        cell: "gru" or "lstm".
        num_layers, embedding_units: Positive integers.
        units: Positive integer U.
        context: "init" or "every_step": whether the decoder sees the vector in its first states
            only, or also reads it with each token.
        dropout: Float in [0, 1), on embeddings, between layers and on the outputs of the last.
        tie_output: Whether the logits use the table of the embedding.
        seed: Optional integer, makes the dropout of the decoder reproducible.
        **kwargs: `name`, and `dtype`, the policy of the decoder's layers.

    Call arguments:
        inputs: Dict of `source`, the input of the encoder, a tensor or a dict of tensors; and
            `target`, int32 ids `(B, T)`, which begin with the start token.

    Returns:
        Float32 logits `(B, T, V)`; step t scores the token after `target[:, t]`.

    For search, as in `beam_search(model, images)`, the model offers `encoder`, `decoder_step`,
    `initial_state` and `grow_state`. Padding follows the real tokens and does not change their
    logits.

    Raises:
        ValueError: If an option is unknown, the input of the encoder is unknown, or its output is
            not a vector of known size.

    Example:

    >>> encoder = keras.Sequential([keras.Input((8, 8, 1)), keras.layers.Flatten()])
    >>> model = ConditionedGenerator(encoder, 20, embedding_units=4, units=8)
    >>> images, ids = keras.ops.ones((2, 8, 8, 1)), keras.ops.array([[2, 5, 6], [2, 7, 0]])
    >>> tuple(model({"source": images, "target": ids}).shape)
    (2, 3, 20)

    Reference:
        Vinyals et al., "Show and Tell: A Neural Image Caption Generator", 2015,
        https://arxiv.org/abs/1411.4555; the vector at every step: Cho et al., 2014,
        https://arxiv.org/abs/1406.1078
    """

    def __init__(
        self,
        encoder: Any,
        vocabulary_size: int,
        *,
        source_shape: Any = None,
        cell: str = "lstm",
        num_layers: int = 1,
        embedding_units: int = 256,
        units: int = 512,
        context: str = "init",
        dropout: float = 0.2,
        tie_output: bool = False,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        check_choice("context", context, ("init", "every_step"))
        decoder = RecurrentDecoder(self._arguments, num_layers, units, seed)
        source, target = _make_source(encoder, source_shape), token_input("target")
        vector = encoder(source)
        shape = getattr(vector, "shape", None)
        if shape is None or len(shape) != 2 or shape[-1] is None:
            raise ValueError(
                "`encoder` must give vectors (B, D) of known size D, received "
                f"{'a structure' if shape is None else f'shape {tuple(shape)}'}: end it with a "
                "layer that pools or flattens."
            )
        states = decoder.first_states(vector)
        vectors = {"vector": vector} if context == "every_step" else {}
        super().__init__(
            inputs={"source": source, "target": target},
            outputs=decoder.logits(target, states, **vectors),
            **kwargs,
        )
        # Search reads the length of the source from the mask: one step.
        mask = ops.ones_like(vector[:, :1], dtype="bool")
        memory = {"mask": mask, **states, **vectors}
        self._set_parts(keras.Model(source, memory, name="encoder"), decoder)


def _make_source(encoder: Any, source_shape: Any) -> Any:
    """Makes symbolic inputs of `source_shape` or, if it is None, like the encoder's inputs."""
    if isinstance(source_shape, Mapping):
        return {name: keras.Input(shape, name=name) for name, shape in source_shape.items()}
    if source_shape is not None:
        return keras.Input(source_shape, name="source")
    encoder_input = _find_input(encoder)
    if encoder_input is None:
        raise ValueError(
            f"The input of the encoder {encoder.name!r} is not known: give `source_shape`, such "
            "as source_shape=(28, 28, 1), or a model with a `keras.Input`."
        )

    def copy(tensor: Any, name: str) -> Any:
        return keras.Input(batch_shape=tensor.shape, dtype=tensor.dtype, name=name)

    # Keras expects the inputs in a dict to be named by their keys.
    if isinstance(encoder_input, Mapping):
        return {name: copy(tensor, name) for name, tensor in encoder_input.items()}
    return copy(encoder_input, "source")


def _find_input(encoder: Any) -> Any:
    if isinstance(encoder, keras.Sequential) and encoder.inputs:
        # A `Sequential` has an `input` only after its first call.
        return encoder.inputs[0]
    try:
        return encoder.input
    except (AttributeError, ValueError):
        return None
