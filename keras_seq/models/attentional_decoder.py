"""The recurrent decoder with attention, over whole targets and in single steps."""

from types import SimpleNamespace
from typing import Any

import keras
from keras import ops

from keras_seq.layers.attention.attention_cell import AttentionCell, has_state
from keras_seq.layers.attention.attention_decoder import AttentionDecoder
from keras_seq.layers.attention.bahdanau_attention import BahdanauAttention
from keras_seq.layers.attention.bahdanau_monotonic_attention import BahdanauMonotonicAttention
from keras_seq.layers.attention.location_sensitive_attention import LocationSensitiveAttention
from keras_seq.layers.attention.luong_attention import LuongAttention
from keras_seq.layers.attention.luong_monotonic_attention import LuongMonotonicAttention
from keras_seq.models.attentive_model import call_with_weights
from keras_seq.models.bridged_states import BridgedStates
from keras_seq.models.call_method import CallMethod
from keras_seq.models.cell_step import CellStep
from keras_seq.models.inputs import step_inputs
from keras_seq.models.output_mask import masked_logits
from keras_seq.models.pointer import make_pointer
from keras_seq.models.recurrent_decoder import make_output
from keras_seq.models.recurrent_encoder import RECURRENT_LAYERS

# Shape letters: B batch, S source steps, T target steps, K beam, U units, V vocabulary.

# Initial score bias of monotonic attention; the paper uses -1 to -4, higher for shorter sources.
_SCORE_BIAS = -1.0
_CELLS = {"gru": keras.layers.GRUCell, "lstm": keras.layers.LSTMCell}


class AttentionalDecoder(BridgedStates):
    """Layers of a decoder whose first layer attends to the source.

        attention cell over the embeddings, then recurrent layers with residual sums
        logits = W h + b, or E (P h) with a tied output
        with a pointer: log-probabilities of a mixture with copies of source tokens

    It is not a Keras layer: the layers belong to the functional model that is built with it.
    `arguments` are the constructor arguments of the model. The seeds of the dropout, one more than
    layers, are popped from `seeds`.
    """

    def __init__(
        self,
        embedding: Any,
        dropout: Any,
        arguments: SimpleNamespace,
        seeds: list[int | None],
    ) -> None:
        args, units, dtype = arguments, arguments.decoder_units, arguments.dtype
        super().__init__(args)

        def make_dropout(name: str) -> Any:
            return keras.layers.Dropout(args.dropout, seed=seeds.pop(), dtype=dtype, name=name)

        self.embedding, self.dropout = embedding, dropout
        self.attention = _make_attention(args, seeds.pop())
        self.cell = AttentionCell(
            _CELLS[args.cell](units, dtype=dtype, name=args.cell),
            self.attention,
            input_feeding=getattr(args, "input_feeding", True),
            dtype=dtype,
            name="cell",
        )
        self.first_layer = AttentionDecoder(self.cell, dtype=dtype, name="decoder_0")
        upper = range(1, args.num_decoder_layers)
        self.upper_layers = [
            RECURRENT_LAYERS[args.cell](
                units, return_sequences=True, dtype=dtype, name=f"decoder_{i}"
            )
            for i in upper
        ]
        self.upper_dropouts = [make_dropout(f"decoder_dropout_{i}") for i in upper]
        self.output_dropout = make_dropout("output_dropout")
        self.to_logits = make_output(embedding, units, getattr(args, "tie_output", False), dtype)
        self.pointer = make_pointer(args)

    def logits(
        self,
        target: Any,
        source: dict[str, Any],
        states: dict[str, Any],
        attention_layers: Any = (),
    ) -> tuple[Any, list[Any]]:
        """Makes the logits of the next token after each token of targets `(B, T)`.

        `source` has the encoder outputs `value` `(B, S, D_v)`, `value_mask`, `summary` if the
        decoder reads it at every step, and with a pointer the ids `source`. Returns float32 logits
        `(B, T, V)` with the mask of the target, and the attention weights `(B, 1, T, S)` of each of
        `attention_layers`, which is empty or (0,).
        """
        first = {"cell": [states[name] for name in self.state_names[0]]}
        if self.cell.feeds_attentional_state:
            first["attentional_state"] = ops.zeros_like(first["cell"][0])
        if has_state(self.attention):
            first["attention"] = self.attention.initial_state(source["value"])
        inputs = {**source, "states": first}
        ids = inputs.pop("source", None)
        x = self.dropout(self.embedding(target))
        weights = None
        if attention_layers or self.pointer is not None:
            x, weights = call_with_weights(self.first_layer, x, inputs, name="weights")
        else:
            x, _ = self.first_layer(x, **inputs)
        for layer, dropout, names in zip(
            self.upper_layers, self.upper_dropouts, self.state_names[1:], strict=True
        ):
            x = x + layer(dropout(x), initial_state=[states[name] for name in names])
        logits = masked_logits(self._output(self.output_dropout(x), weights, ids), target)
        return logits, [ops.cast(weights, "float32")[:, None] for _ in attention_layers]

    def _output(self, x: Any, attention: Any, source: Any) -> Any:
        """Makes logits from outputs of the last layer and, with a pointer, from attention."""
        logits = self.to_logits(x)
        if self.pointer is None:
            return logits
        return self.pointer(x, logits=logits, attention=attention, source=source)

    def project(self, source: dict[str, Any]) -> dict[str, Any]:
        """Makes the symbolic keys and values of the source, which `step` reads."""
        source = {name: source[name] for name in ("value", "value_mask")}
        return CallMethod(self.attention, "project", name="project")(source)

    def step(self, memory: dict[str, Any], return_attention: bool = False) -> Any:
        """Makes the functional model of one step, after `logits` has built the layers.

        `memory` has the symbolic outputs of the encoder: `mask`, the outputs of `project`, the
        first states, and `summary` if the decoder reads it. With `return_attention` the model has
        a further output `attention` `(B, K, S)`.
        """
        units, dtype = self.cell.output_size, self.cell.compute_dtype
        names = [name for layer_names in self.state_names for name in layer_names]
        cell_states = []
        if self.cell.feeds_attentional_state:
            cell_states.append("attentional_state")
        beam = {
            name: keras.Input((None, units), dtype=dtype, name=name) for name in names + cell_states
        }
        if has_state(self.attention):
            cell_states.append("attention")
            beam["attention"] = keras.Input((None, None), dtype=dtype, name="attention")
        inputs = step_inputs(memory, beam)
        memory = inputs["memory"]

        states = {name: beam[name] for name in cell_states}
        states["cell"] = [beam[name] for name in self.state_names[0]]
        x, states, weights = self.cell(
            self.embedding(inputs["token"]),
            states,
            memory["value"],
            value_mask=memory["mask"],
            key=memory["key"],
            summary=memory.get("summary"),
        )
        new_states = states["cell"]
        for layer, layer_names in zip(self.upper_layers, self.state_names[1:], strict=True):
            outputs, upper_states = CellStep(layer.cell, name=f"{layer.name}_step")(
                x, [beam[name] for name in layer_names]
            )
            x = x + outputs
            new_states = [*new_states, *upper_states]
        new_beam = dict(zip(names, new_states, strict=True))
        new_beam |= {name: states[name] for name in cell_states}
        logits = self._output(x, weights, memory.get("source"))
        outputs = {"logits": logits, "state": {"beam": new_beam, "shared": {}}}
        if return_attention:
            outputs["attention"] = ops.cast(weights, "float32")
        return keras.Model(inputs, outputs, name="decoder_step")

    def initial_state(
        self, decoder_step: Any, memory: dict[str, Any], beam_size: int, length: Any
    ) -> dict[str, Any]:
        """Adds the attention state `(B, K, S)` to the result of `RecurrentStates.initial_state`."""
        if has_state(self.attention):
            memory = {**memory, "attention": self.attention.initial_state(memory["value"])}
        return super().initial_state(decoder_step, memory, beam_size, length)


def _make_attention(arguments: SimpleNamespace, seed: int | None) -> Any:
    options = {
        "dropout": arguments.attention_dropout,
        "seed": seed,
        "dtype": arguments.dtype,
        "name": "attention",
    }
    if arguments.attention == "luong":
        return LuongAttention("general", **options)
    additive = {"bahdanau": BahdanauAttention, "location": LocationSensitiveAttention}
    if arguments.attention in additive:
        return additive[arguments.attention](arguments.attention_units, **options)
    # Monotonic attention has no dropout of weights, which would lose the position.
    del options["dropout"]
    options |= {"sigmoid_noise": 1.0, "score_bias_init": _SCORE_BIAS}
    if arguments.attention == "luong_monotonic":
        return LuongMonotonicAttention(**options)
    return BahdanauMonotonicAttention(arguments.attention_units, **options)
