"""The generator whose first state comes from any encoder."""

from collections.abc import Mapping
from types import SimpleNamespace

import keras
from keras import ops

from keras_seq.models.recurrent_decoder import RecurrentDecoder, initial_state

# Shape letters: B batch, T target steps, D vector, U units, K beam, V vocabulary.

CONTEXTS = ("init", "every_step")


@keras.saving.register_keras_serializable(package="keras_seq")
class ConditionedGenerator(keras.Model):
    """Recurrent generator of tokens about anything that becomes a vector: one to many.

        c = encoder(source)                                      an image, features, a class
        s_ij = tanh(W_ij c + b_ij)                               first state j of layer i
        x_t = dropout(E[y_t]), or [dropout(E[y_t]); c]           with `context="every_step"`
        recurrent layers, residual from layer 2
        logits = W h + b, or E (P h) with a tied output

        P(y | source) = prod over t of P(y_t | y_<t, c)

    Any Keras model that gives a vector is an encoder: a network of one's own, trained along
    with the rest, or one of `keras.applications` with `trainable = False`. Id 0 is padding.

    Shapes: B batch, T target steps, D vector, V vocabulary, K hypotheses.

    Args:
        encoder: Keras model or layer from its input to vectors `(B, D)`.
        vocabulary_size: Positive integer V.
        source_shape: The shape of one row of the encoder's input, or a dict of such. Only
            for an encoder that does not know it: a layer, or a model without inputs yet.
        cell: "gru" or "lstm".
        num_layers: Positive integer.
        embedding_units: Positive integer.
        units: Positive integer U.
        context: "init": the decoder meets the vector in its first states alone;
            "every_step": it reads it besides each token, too.
        dropout: Float in [0, 1), on embeddings, between layers and on the
            outputs of the last.
        tie_output: Whether the logits use the table of the embedding.
        seed: Optional integer, makes the decoder's dropout reproducible.

    Call arguments:
        inputs: Dict of `source`, what the encoder reads, a tensor or a dict of tensors; and
            `target`, int32 ids `(B, T)`, beginning with the start token.

    Returns:
        Float32 logits `(B, T, V)`; step t scores the token that follows
        `target[:, t]`.

    Besides itself the model offers, over the same weights, `encoder`,
    `decoder_step`, `initial_state` and `grow_state`, as `RecurrentSeq2Seq` does, so that
    `keras_seq.search` takes it: `beam_search(model, images)`.

    Masks: padding follows what is real and cannot change it.

    Raises:
        ValueError: If an option is none of those named, or the encoder's input is not known,
            or what it gives is no vector of known size.

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
        encoder,
        vocabulary_size,
        *,
        source_shape=None,
        cell="lstm",
        num_layers=1,
        embedding_units=256,
        units=512,
        context="init",
        dropout=0.2,
        tie_output=False,
        seed=None,
        name="conditioned_generator",
        **kwargs,
    ):
        if context not in CONTEXTS:
            raise ValueError(f"`context` must be 'init' or 'every_step', received {context!r}.")
        dtype = kwargs.pop("dtype", None)
        decoder = RecurrentDecoder(
            vocabulary_size,
            cell=cell,
            num_layers=num_layers,
            embedding_units=embedding_units,
            units=units,
            dropout=dropout,
            tie_output=tie_output,
            seed=seed,
            dtype=dtype,
        )
        source = _inputs_of(encoder, source_shape)
        target = keras.Input((None,), dtype="int32", name="target")
        vector = encoder(source)
        shape = getattr(vector, "shape", None)
        if shape is None or len(shape) != 2 or shape[-1] is None:
            raise ValueError(
                "`encoder` must give vectors (B, D) of known size D, received "
                f"{'a structure' if shape is None else f'shape {tuple(shape)}'}: end it with a "
                "layer that pools or flattens."
            )
        states = decoder.first_states(vector)
        read = {"vector": vector} if context == "every_step" else {}
        super().__init__(
            inputs={"source": source, "target": target},
            outputs=decoder.logits(target, states, **read),
            name=name,
            **kwargs,
        )
        # A functional model takes no `dtype`, and would have the global policy whatever its layers.
        if dtype is not None:
            self.dtype_policy = dtype
        # One step, the vector: all that a search may look at.
        memory = {"mask": ops.ones_like(vector[:, :1], dtype="bool"), **states, **read}
        # In a namespace, which Keras does not track: the weights are this model's own.
        self._parts = SimpleNamespace(
            encoder=keras.Model(source, memory, name="encoder"),
            decoder_step=decoder.step(memory),
            config={
                "encoder": encoder,
                "vocabulary_size": vocabulary_size,
                "source_shape": _as_lists(source_shape),
                "cell": cell,
                "num_layers": num_layers,
                "embedding_units": embedding_units,
                "units": units,
                "context": context,
                "dropout": dropout,
                "tie_output": tie_output,
                "seed": seed,
            },
        )

    @property
    def encoder(self):
        """Functional model: source -> memory."""
        return self._parts.encoder

    @property
    def decoder_step(self):
        """Functional model: one step of K hypotheses."""
        return self._parts.decoder_step

    @property
    def attending_step(self):
        """None: the source is one vector, so there is nothing to choose from."""
        raise ValueError(
            "A conditioned generator reads one vector: it has no attention to show, to guide or "
            "to measure coverage by."
        )

    def initial_state(self, memory, beam_size, length):
        """The state before the first step; see `RecurrentSeq2Seq.initial_state`."""
        return initial_state(self.decoder_step, memory, beam_size)

    def grow_state(self, state, length):
        """The state itself, which has room for any number of steps."""
        return state

    def get_config(self):
        config = self._parts.config
        return {
            **config,
            "encoder": keras.saving.serialize_keras_object(config["encoder"]),
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        encoder = keras.saving.deserialize_keras_object(
            config["encoder"], custom_objects=custom_objects
        )
        return cls(**config | {"encoder": encoder})


def _as_lists(shape):
    """A shape, or a dict of such, as JSON has it; None stays."""
    if isinstance(shape, Mapping):
        return {name: list(sizes) for name, sizes in shape.items()}
    return None if shape is None else list(shape)


def _inputs_of(encoder, source_shape):
    """Symbolic inputs like those that the encoder has, or of the shapes that are given."""
    if source_shape is not None:
        if isinstance(source_shape, Mapping):
            return {name: keras.Input(shape, name=name) for name, shape in source_shape.items()}
        return keras.Input(source_shape, name="source")
    if isinstance(encoder, keras.Sequential) and encoder.inputs:
        # Its `input` is known after a call only.
        (given,) = encoder.inputs
    else:
        try:
            given = encoder.input
        except (AttributeError, ValueError):
            given = None
    if given is None:
        raise ValueError(
            f"The input of the encoder {encoder.name!r} is not known: give `source_shape`, such "
            "as source_shape=(28, 28, 1), or a model with a `keras.Input`."
        )

    def alike(tensor, name):
        return keras.Input(batch_shape=tensor.shape, dtype=tensor.dtype, name=name)

    # Keras wants the inputs of a dict to be called as their keys.
    if isinstance(given, Mapping):
        return {name: alike(tensor, name) for name, tensor in given.items()}
    return alike(given, "source")
