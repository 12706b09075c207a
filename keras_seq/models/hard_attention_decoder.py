"""The recurrent decoder with hard monotonic attention, over whole targets and in single steps."""

from types import SimpleNamespace
from typing import Any

import keras

from keras_seq.layers.attention.hard_monotonic_attention import HardMonotonicAttention
from keras_seq.layers.internal.dropout import Dropout
from keras_seq.models.attentive_model import call_with_weights
from keras_seq.models.bridged_states import BridgedStates
from keras_seq.models.call_method import CallMethod
from keras_seq.models.cell_step import CellStep, DropMask
from keras_seq.models.inputs import step_inputs
from keras_seq.models.output_mask import masked_logits
from keras_seq.models.recurrent_decoder import join_vector
from keras_seq.models.recurrent_encoder import RECURRENT_LAYERS

# Shape letters: B batch, S source steps, T target steps, K beam, U units, V vocabulary.


class HardAttentionDecoder(BridgedStates):
    """Layers of a decoder whose states read the target alone.

        recurrent layers over the embeddings, with residual sums from layer 2
        log-probabilities from `HardMonotonicAttention` over states and encoder outputs

    It is not a Keras layer: the layers belong to the functional model that is built with it.
    `arguments` are the constructor arguments of the model. The seeds of the dropout, as many as
    layers, are popped from `seeds`.
    """

    def __init__(
        self, embedding: Any, dropout: Any, arguments: SimpleNamespace, seeds: list[int | None]
    ) -> None:
        args, dtype = arguments, arguments.dtype
        super().__init__(args)
        count = args.num_decoder_layers
        self.embedding, self.dropout, self.dtype = embedding, dropout, dtype
        self.dropouts = [
            Dropout(args.dropout, seed=seeds.pop(), dtype=dtype, name=f"decoder_dropout_{i}")
            for i in range(1, count + 1)
        ]
        self.layers = [
            RECURRENT_LAYERS[args.cell](
                args.decoder_units, return_sequences=True, dtype=dtype, name=f"decoder_{i}"
            )
            for i in range(count)
        ]
        self.attention = HardMonotonicAttention(
            args.target_vocabulary_size,
            args.attention_units,
            args.attention_window,
            dtype=dtype,
            name="attention",
        )

    def logits(
        self,
        target: Any,
        source: dict[str, Any],
        states: dict[str, Any],
        attention_layers: Any = (),
    ) -> tuple[Any, list[Any]]:
        """Makes the log-probabilities of the next token after each token of targets `(B, T)`.

        Arguments and results are those of `AttentionalDecoder.logits`.
        """
        x = DropMask(dtype=self.dtype, name="unmasked")(self.dropout(self.embedding(target)))
        if "summary" in source:
            x = join_vector(x, source["summary"])
        for i, (layer, names) in enumerate(zip(self.layers, self.state_names, strict=True)):
            outputs = layer(x, initial_state=[states[name] for name in names])
            x = self.dropouts[i](x + outputs if i else outputs)
        read = {"value": source["value"], "target": target, "value_mask": source["value_mask"]}
        if not attention_layers:
            return masked_logits(self.attention(x, **read), target), []
        outputs, weights = call_with_weights(self.attention, x, read, name="weights")
        return masked_logits(outputs, target), [weights[:, None]]

    def project(self, source: dict[str, Any]) -> dict[str, Any]:
        """Makes the symbolic tensors of the source that `step` reads."""
        read = {name: source[name] for name in ("value", "value_mask")}
        return CallMethod(self.attention, "project", name="project")(read)

    def step(self, memory: dict[str, Any], return_attention: bool = False) -> Any:
        """Makes the functional model of one step; see `AttentionalDecoder.step`.

        The state has the states of the cells, and `alignment` `(B, K, S, V)`.
        """
        names = [name for layer_names in self.state_names for name in layer_names]
        beam = {
            name: keras.Input((None, self._units), dtype=self.attention.compute_dtype, name=name)
            for name in names
        }
        size = self.attention.vocabulary_size
        beam["alignment"] = keras.Input((None, None, size), dtype="float32", name="alignment")
        inputs = step_inputs(memory, beam)
        memory = inputs["memory"]
        x = self.embedding(inputs["token"])
        if "summary" in memory:
            x = join_vector(x, memory["summary"])
        new_beam: dict[str, Any] = {}
        for i, (layer, layer_names) in enumerate(zip(self.layers, self.state_names, strict=True)):
            outputs, states = CellStep(layer.cell, name=f"step_{i}")(
                x, [beam[name] for name in layer_names]
            )
            x = x + outputs if i else outputs
            new_beam.update(zip(layer_names, states, strict=True))
        logits, new_beam["alignment"], weights = CallMethod(
            self.attention, "step", name="attention_step"
        )(
            {
                "inputs": x,
                "token": inputs["token"],
                "state": beam["alignment"],
                "emission": memory["emission"],
                "move": memory["move"],
                "value_mask": memory["mask"],
            }
        )
        outputs = {"logits": logits, "state": {"beam": new_beam, "shared": {}}}
        if return_attention:
            outputs["attention"] = weights
        return keras.Model(inputs, outputs, name="decoder_step")

    def initial_state(
        self, decoder_step: Any, memory: dict[str, Any], beam_size: int, length: Any
    ) -> dict[str, Any]:
        """Adds the alignment `(B, K, S, V)` to the result of `RecurrentStates.initial_state`."""
        first = self.attention.initial_state(memory["emission"])[:, 0]
        return super().initial_state(
            decoder_step, {**memory, "alignment": first}, beam_size, length
        )
