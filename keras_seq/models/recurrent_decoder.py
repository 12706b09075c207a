"""The recurrent decoder without attention, over whole targets and in single steps."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.embedding.token_embedding import TokenEmbedding
from keras_seq.layers.internal.dropout import Dropout
from keras_seq.layers.internal.exact_dense import ExactDense
from keras_seq.layers.internal.seeds import split_seed
from keras_seq.models.cell_step import CellStep, DropMask
from keras_seq.models.checks import check_choice, check_sizes
from keras_seq.models.inputs import step_inputs
from keras_seq.models.output_mask import masked_logits
from keras_seq.models.recurrent_encoder import NUM_STATES, RECURRENT_LAYERS

# Shape letters: B batch, T target steps, K beam, D vector, E embedding, U units, V vocabulary.


class RecurrentStates:
    """Abstract recurrent decoder, with the states of decoder steps."""

    def __init__(self, cell: str, num_layers: int) -> None:
        # State j of layer i is called `state_i_j`, in memories and in states.
        self.state_names = [
            [f"state_{i}_{j}" for j in range(NUM_STATES[cell])] for i in range(num_layers)
        ]

    def initial_state(
        self, decoder_step: Any, memory: dict[str, Any], beam_size: int, length: Any
    ) -> dict[str, Any]:
        """Returns the states: memory tensors of the same names, or zeros if there are none.

        See `SearchableModel.initial_state`.
        """
        batch = backend.shape(memory["mask"])[0]
        beam = {}
        for name, tensor in decoder_step.input["state"]["beam"].items():
            if name in memory:
                beam[name] = ops.repeat(memory[name][:, None], beam_size, axis=1)
            else:
                beam[name] = ops.zeros((batch, beam_size, tensor.shape[-1]), dtype=tensor.dtype)
        return {"beam": beam, "shared": {}}

    def grow_state(self, state: dict[str, Any], length: Any) -> dict[str, Any]:
        """Returns `state`, because its size does not depend on the number of steps."""
        return state


class RecurrentDecoder(RecurrentStates):
    """Layers of a decoder without attention.

        x = dropout(E[id]), joined with a vector c if the decoder reads it at every step
        recurrent layers, residual from layer 2;  logits = W h + b, or E (P h) with a tied output

        first state j of layer i = tanh(W_ij c + b_ij), if there is a vector c

    It is not a Keras layer: the layers belong to the functional model that is built with it.
    `arguments` are the constructor arguments of the model.
    """

    def __init__(
        self, arguments: SimpleNamespace, num_layers: int, units: int, seed: int | None
    ) -> None:
        args, dtype = arguments, arguments.dtype
        check_choice("cell", args.cell, tuple(RECURRENT_LAYERS))
        check_sizes(num_layers=num_layers)
        super().__init__(args.cell, num_layers)
        self.dtype = dtype
        self.embedding = TokenEmbedding(
            args.vocabulary_size, args.embedding_units, dtype=dtype, name="embedding"
        )
        self.dropouts = [
            Dropout(args.dropout, seed=seed, dtype=dtype, name=f"dropout_{i}")
            for i, seed in enumerate(split_seed(seed, num_layers + 1))
        ]
        self.layers = [
            RECURRENT_LAYERS[args.cell](
                units,
                return_sequences=True,
                return_state=True,
                dtype=dtype,
                name=f"{args.cell}_{i}",
            )
            for i in range(num_layers)
        ]
        self.to_logits = make_output(self.embedding, units, args.tie_output, dtype)

    def first_states(self, vector: Any) -> dict[str, Any]:
        """Makes symbolic first states `(B, U)` of all layers from a vector `(B, D)`, by name."""
        return {
            name: ExactDense(
                layer.units, activation="tanh", dtype=self.dtype, name=f"first_{name}"
            )(vector)
            for layer, names in zip(self.layers, self.state_names, strict=True)
            for name in names
        }

    def logits(self, target: Any, states: dict[str, Any] | None = None, vector: Any = None) -> Any:
        """Makes float32 logits `(B, T, V)` of the next token after each token of targets `(B, T)`.

        The targets begin with the start token. The states are zeros if None. The first layer reads
        `vector` `(B, D)` with each token.
        """
        return self.logits_and_states(target, states, vector)[0]

    def logits_and_states(
        self, target: Any, states: dict[str, Any] | None = None, vector: Any = None
    ) -> tuple[Any, dict[str, Any]]:
        """Makes the logits of `logits`, and the states `(B, U)` after the last step, by name."""
        last: dict[str, Any] = {}
        x = DropMask(dtype=self.dtype, name="unmasked")(self.embedding(target))
        for i, (layer, names) in enumerate(zip(self.layers, self.state_names, strict=True)):
            inputs = self.dropouts[i](x)
            if i == 0 and vector is not None:
                inputs = join_vector(inputs, vector)
            initial_state = None if states is None else [states[name] for name in names]
            outputs, *new = layer(inputs, initial_state=initial_state)
            last.update(zip(names, new, strict=True))
            x = x + outputs if i else outputs
        return masked_logits(self.to_logits(self.dropouts[-1](x)), target), last

    def step(self, memory: dict[str, Any]) -> Any:
        """Makes the functional model of one step, after `logits` has built the layers.

        `memory` has the symbolic `mask`, `vector` `(B, D)` if the decoder reads it at every step,
        and other tensors, which the step ignores.
        """
        beam = {
            name: keras.Input((None, layer.units), dtype=layer.compute_dtype, name=name)
            for layer, names in zip(self.layers, self.state_names, strict=True)
            for name in names
        }
        inputs = step_inputs(memory, beam)
        x = self.embedding(inputs["token"])
        new_beam: dict[str, Any] = {}
        for i, (layer, names) in enumerate(zip(self.layers, self.state_names, strict=True)):
            joined = x
            if i == 0 and "vector" in memory:
                joined = join_vector(x, inputs["memory"]["vector"])
            old_states = [beam[name] for name in names]
            outputs, states = CellStep(layer.cell, name=f"step_{i}")(joined, old_states)
            x = x + outputs if i else outputs
            new_beam.update(zip(names, states, strict=True))
        outputs = {"logits": self.to_logits(x), "state": {"beam": new_beam, "shared": {}}}
        return keras.Model(inputs, outputs, name="decoder_step")


def make_output(embedding: Any, units: int, tie_output: bool, dtype: Any) -> Callable[[Any], Any]:
    """Makes the output layer, a function from decoder outputs `(..., U)` to float32 logits.

    The logits use the table of `embedding` if `tie_output`.
    """
    if not tie_output:
        dense = ExactDense(embedding.vocabulary_size, dtype=dtype, name="logits")
        return lambda x: ops.cast(dense(x), "float32")
    if embedding.units == units:
        return lambda x: embedding(x, reverse=True)
    project = ExactDense(embedding.units, use_bias=False, dtype=dtype, name="output_projection")
    return lambda x: embedding(project(x), reverse=True)


def join_vector(x: Any, vector: Any) -> Any:
    """Appends a vector `(B, D)` to each step of `x` `(B, T, E)`; returns `(B, T, E + D)`."""
    # Not `x + vector`: if B = 1 and T = E, Keras takes the vector for a bias.
    repeated = ops.ones_like(x[..., :1]) * ops.cast(vector, x.dtype)[:, None]
    return ops.concatenate([x, repeated], axis=-1)
