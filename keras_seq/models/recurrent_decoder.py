"""A recurrent decoder over tokens, whose first states may come from a vector."""

import keras
from keras import ops

from keras_seq.layers.embedding.token_embedding import TokenEmbedding
from keras_seq.layers.internal.dropout import Dropout
from keras_seq.layers.internal.exact_dense import ExactDense
from keras_seq.layers.internal.seeds import split_seed
from keras_seq.models.cell_step import CellStep, DropMask
from keras_seq.models.output_mask import masked_logits

# Shape letters: B batch, T target steps, K beam, D vector, E embedding, U units, V vocabulary.

_RECURRENT = {
    "gru": (keras.layers.GRU, 1),
    "lstm": (keras.layers.LSTM, 2),
}


class RecurrentDecoder:
    """The layers of a decoder without attention, for whole targets and for single steps.

        x = dropout(E[id]), with c beside it where it is read at every step
        recurrent layers, residual from layer 2
        logits = W h + b, or E (P h) with a tied output

        first state j of layer i = tanh(W_ij c + b_ij), where there is a vector c

    Not a Keras layer: the models that hold one are functional, and the layers are theirs. Its
    methods are called on symbolic tensors.

    Args:
        vocabulary_size: Positive integer V.
        cell: "gru" or "lstm".
        num_layers: Positive integer.
        embedding_units: Positive integer E.
        units: Positive integer U.
        dropout: Float in [0, 1), on embeddings, between layers and on the outputs of the last.
        tie_output: Whether the logits use the table of the embedding.
        seed: Optional integer.
        dtype: Dtype policy of all layers, or None for the default.

    Raises:
        ValueError: If `cell` is neither of these, or `num_layers` is no positive integer.
    """

    def __init__(
        self,
        vocabulary_size,
        *,
        cell,
        num_layers,
        embedding_units,
        units,
        dropout,
        tie_output,
        seed,
        dtype,
    ):
        if cell not in _RECURRENT:
            raise ValueError(f"`cell` must be 'gru' or 'lstm', received {cell!r}.")
        if not isinstance(num_layers, int) or num_layers < 1:
            raise ValueError(f"`num_layers` must be a positive integer, received {num_layers!r}.")
        recurrent, num_states = _RECURRENT[cell]
        self.dtype = dtype
        self.embedding = TokenEmbedding(
            vocabulary_size, embedding_units, dtype=dtype, name="embedding"
        )
        self.dropouts = [
            Dropout(dropout, seed=seed, dtype=dtype, name=f"dropout_{i}")
            for i, seed in enumerate(split_seed(seed, num_layers + 1))
        ]
        self.layers = [
            recurrent(units, return_sequences=True, dtype=dtype, name=f"{cell}_{i}")
            for i in range(num_layers)
        ]
        self.to_logits = _output(
            self.embedding, vocabulary_size, embedding_units, units, tie_output, dtype
        )
        # Names of the states of each layer, from which models name the tensors of their memory.
        self.names = [[f"state_{i}_{j}" for j in range(num_states)] for i in range(num_layers)]

    def first_states(self, vector):
        """The first state of each layer out of a vector, by a dense layer with tanh.

        Args:
            vector: Symbolic `(B, D)`.

        Returns:
            Dict of `state_LAYER_PART` `(B, U)`.
        """
        return {
            name: ExactDense(
                layer.units, activation="tanh", dtype=self.dtype, name=f"first_{name}"
            )(vector)
            for layer, names in zip(self.layers, self.names, strict=True)
            for name in names
        }

    def logits(self, target, states=None, vector=None):
        """Scores of what follows each token of whole targets.

        Args:
            target: Symbolic ids `(B, T)`, beginning with the start token.
            states: From `first_states`; None for zeros.
            vector: Symbolic `(B, D)` that the first layer reads besides each token, or None.

        Returns:
            Float32 logits `(B, T, V)`, with the mask of the target.
        """
        x = DropMask(dtype=self.dtype, name="unmasked")(self.embedding(target))
        for i, (layer, names) in enumerate(zip(self.layers, self.names, strict=True)):
            inputs = self.dropouts[i](x)
            if i == 0 and vector is not None:
                inputs = _beside(inputs, vector)
            first = None if states is None else [states[name] for name in names]
            outputs = layer(inputs, initial_state=first)
            x = x + outputs if i else outputs
        return masked_logits(self.to_logits(self.dropouts[-1](x)), target)

    def step(self, memory):
        """One step of K hypotheses, after `logits` has built the layers.

        Args:
            memory: Dict of the symbolic tensors that an encoder gives: `mask`, and `vector`
                `(B, D)` if that is read at every step; others are not looked at.

        Returns:
            Functional model, the `decoder_step` of the contract.
        """
        memory = {
            name: keras.Input(batch_shape=tensor.shape, dtype=tensor.dtype, name=f"memory_{name}")
            for name, tensor in memory.items()
        }
        token = keras.Input((None,), dtype="int32", name="token")
        position = keras.Input(batch_shape=(), dtype="int32", name="position")
        beam = {
            name: keras.Input((None, layer.units), dtype=layer.compute_dtype, name=name)
            for layer, names in zip(self.layers, self.names, strict=True)
            for name in names
        }
        x = self.embedding(token)
        after: dict = {}
        for i, (layer, names) in enumerate(zip(self.layers, self.names, strict=True)):
            inputs = _beside(x, memory["vector"]) if i == 0 and "vector" in memory else x
            outputs, states = CellStep(layer.cell, name=f"step_{i}")(
                inputs, [beam[name] for name in names]
            )
            x = x + outputs if i else outputs
            after.update(zip(names, states, strict=True))
        return keras.Model(
            inputs={
                "token": token,
                "position": position,
                "state": {"beam": beam, "shared": {}},
                "memory": memory,
            },
            outputs={"logits": self.to_logits(x), "state": {"beam": after, "shared": {}}},
            name="decoder_step",
        )


def initial_state(decoder_step, memory, beam_size):
    """The state before the first step: what the memory has of that name, else zeros.

    Args:
        decoder_step: From `RecurrentDecoder.step`.
        memory: Dict of the tensors that an encoder gave, `mask` among them.
        beam_size: Integer K.

    Returns:
        Dict of `beam`, tensors `(B, K, U)`, and `shared`, empty.
    """
    batch = ops.shape(memory["mask"])[0]
    beam = {}
    for name, tensor in decoder_step.input["state"]["beam"].items():
        shape = (batch, beam_size, tensor.shape[-1])
        if name in memory:
            beam[name] = ops.broadcast_to(memory[name][:, None], shape)
        else:
            beam[name] = ops.zeros(shape, dtype=tensor.dtype)
    return {"beam": beam, "shared": {}}


def _beside(x, vector):
    """`(B, T, E)` and `(B, D)` -> `(B, T, E + D)`."""
    # Not by a sum: of one row, with as many steps as units, Keras takes the vector for a bias.
    at_every_step = ops.ones_like(x[..., :1]) * ops.cast(vector, x.dtype)[:, None]
    return ops.concatenate([x, at_every_step], axis=-1)


def _output(embedding, vocabulary_size, embedding_units, units, tie_output, dtype):
    """Outputs of the last layer -> float32 logits."""
    if not tie_output:
        dense = ExactDense(vocabulary_size, dtype=dtype, name="logits")
        return lambda x: ops.cast(dense(x), "float32")
    if embedding_units == units:
        return lambda x: embedding(x, reverse=True)
    narrow = ExactDense(embedding_units, use_bias=False, dtype=dtype, name="output_projection")
    return lambda x: embedding(narrow(x), reverse=True)
