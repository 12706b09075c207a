"""The decoder of Transformer models, over whole targets and in single steps."""

from dataclasses import dataclass
from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.attention.beam_cache import beam_cache_mask, compact_cache, update_ancestors
from keras_seq.models.attentive_model import call_with_weights
from keras_seq.models.call_method import CallMethod
from keras_seq.models.inputs import step_inputs

# Shape letters: B batch, H heads, K beam, L cache entries of each of K slots, S source steps,
# T target steps, D units, V vocabulary.


@dataclass
class TransformerDecoder:
    """Layers of a decoder with tied embeddings, and the KV cache of its steps.

    `position` adds positions to embeddings, or is None if the attention of the blocks has them.

    It is not a Keras layer: the layers belong to the functional model that is built with it.
    `blocks` are `TransformerDecoderBlock` layers; or causal `TransformerEncoderBlock` layers for a
    decoder without a source. `norm` follows the last block, or is None. `pointer` is a
    `PointerGenerator`, which copies source tokens by the attention of the last block, averaged over
    its heads; or None.
    """

    embedding: Any
    position: Any
    dropout: Any
    blocks: list[Any]
    norm: Any
    num_heads: int
    pointer: Any = None

    @property
    def tied_embeddings(self) -> list[Any]:
        """The embeddings that compute logits."""
        return [self.embedding]

    def logits(
        self, target: Any, source: dict[str, Any] | None = None, attention_layers: Any = ()
    ) -> tuple[Any, list[Any]]:
        """Makes the logits of the next token after each token of targets `(B, T)`.

        `source` has the encoder outputs `memory` `(B, S, D)` and `memory_mask`, and with a pointer
        the ids `source` `(B, S)`. Returns float32 logits `(B, T, V)`, and the attention weights
        `(B, H, T, S)` of each of `attention_layers`, which are block indices.
        """
        source = dict(source or {})
        ids = source.pop("source", None)
        copied_from = () if self.pointer is None else (len(self.blocks) - 1,)
        x = self.embedding(target)
        x = self.dropout(x if self.position is None else self.position(x))
        weights: dict[int, Any] = {}
        for i, block in enumerate(self.blocks):
            if i in (*attention_layers, *copied_from):
                x, weights[i] = call_with_weights(block, x, source, name=f"weights_{i}")
            else:
                x = block(x, **source)
        outputs = self._output(x, weights.get(len(self.blocks) - 1), ids)
        return outputs, [weights[i] for i in attention_layers]

    def project(self, memory: Any, memory_mask: Any, source: Any = None) -> dict[str, Any]:
        """Makes the symbolic memory of `step`: the mask, and each block's keys and values.

        With a pointer it also has the ids `source`.
        """
        projected = {"mask": memory_mask}
        if self.pointer is not None:
            projected["source"] = source
        for i, block in enumerate(self.blocks):
            parts = CallMethod(block, "project", name=f"project_{i}")(
                {"memory": memory, "memory_mask": memory_mask}
            )
            projected[f"key_{i}"], projected[f"value_{i}"] = parts["key"], parts["value"]
        return projected

    def step(self, memory: dict[str, Any], return_attention: bool = False) -> Any:
        """Makes the functional model of one step, after `logits` has built the layers.

        `memory` has the symbolic outputs of `project`, or `mask` alone for a decoder without a
        source. `return_attention` adds the attention of the last block as an output.
        """
        inputs = self._step_inputs(memory)
        memory = inputs["memory"]
        caches = inputs["state"]["shared"]
        write_index = caches["write_index"]
        ancestors, bias = _TrackAncestors(name="track_ancestors")(
            inputs["state"]["beam"]["ancestors"], write_index
        )
        x = self.embedding(inputs["token"])
        if self.position is not None:
            x = CallMethod(self.position, "step", name="position_step")(
                {"inputs": x, "position": inputs["position"]}
            )
        shared = {"write_index": write_index + 1}
        for i, block in enumerate(self.blocks):
            last = block is self.blocks[-1]
            attends = last and (return_attention or self.pointer is not None)
            options = {"return_weights": True} if attends else None
            spec = None if attends else _step_outputs
            arguments = {
                "inputs": x,
                "position": inputs["position"],
                "bias": bias,
                "write_index": write_index,
                "cache": {"key": caches[f"key_{i}"], "value": caches[f"value_{i}"]},
            }
            if f"key_{i}" in memory:
                arguments["memory"] = {"key": memory[f"key_{i}"], "value": memory[f"value_{i}"]}
                arguments["memory_mask"] = memory["mask"]
            x, cache, *weights = CallMethod(block, "step", options, spec, name=f"step_{i}")(
                arguments
            )
            shared[f"key_{i}"], shared[f"value_{i}"] = cache["key"], cache["value"]
        outputs = {
            "logits": self._output(x, weights[0] if weights else None, memory.get("source")),
            "state": {"beam": {"ancestors": ancestors}, "shared": shared},
        }
        if return_attention:
            outputs["attention"] = ops.mean(weights[0], axis=1)
        return keras.Model(inputs, outputs, name="decoder_step")

    def initial_state(
        self, decoder_step: Any, memory: dict[str, Any], beam_size: int, length: Any
    ) -> dict[str, Any]:
        """An empty KV cache for `length` steps; see `SearchableModel.initial_state`."""
        batch = backend.shape(memory["mask"])[0]
        caches = dict(decoder_step.input["state"]["shared"])
        del caches["write_index"]
        size = self.embedding.units // self.num_heads
        empty = ops.zeros(
            (batch, self.num_heads, length, beam_size, size), dtype=self.blocks[0].compute_dtype
        )
        return {
            "beam": {"ancestors": ops.zeros((batch, beam_size, length, beam_size), dtype="bool")},
            "shared": {
                "write_index": ops.zeros((batch,), dtype="int32"),
                **dict.fromkeys(caches, empty),
            },
        }

    def grow_state(self, state: dict[str, Any], length: Any) -> dict[str, Any]:
        """A larger cache without unused entries; see `SearchableModel.grow_state`."""
        caches = dict(state["shared"])
        write_index = caches.pop("write_index")
        ancestors, write_index, caches = compact_cache(
            state["beam"]["ancestors"], write_index, caches, length
        )
        return {"beam": {"ancestors": ancestors}, "shared": {"write_index": write_index, **caches}}

    def _output(self, x: Any, attention: Any, source: Any) -> Any:
        """Makes logits from outputs of the last block and, with a pointer, from its attention."""
        x = self.norm(x) if self.norm else x
        logits = self.embedding(x, reverse=True)
        if self.pointer is None:
            return logits
        mean = ops.mean(attention, axis=1)
        return self.pointer(x, logits=logits, attention=mean, source=source)

    def _step_inputs(self, memory: dict[str, Any]) -> dict[str, Any]:
        size, dtype = self.embedding.units // self.num_heads, self.blocks[0].compute_dtype
        caches = {
            f"{part}_{i}": keras.Input(
                (self.num_heads, None, None, size), dtype=dtype, name=f"cache_{part}_{i}"
            )
            for i in range(len(self.blocks))
            for part in ("key", "value")
        }
        return step_inputs(
            memory,
            beam={"ancestors": keras.Input((None, None, None), dtype="bool", name="ancestors")},
            shared={"write_index": keras.Input((), dtype="int32", name="write_index"), **caches},
        )


def _step_outputs(inputs: dict[str, Any]) -> Any:
    """Returns the symbolic outputs of a block's `step`, in the shapes of its inputs and cache."""
    return keras.tree.map_structure(
        lambda tensor: keras.KerasTensor(tensor.shape, dtype=tensor.dtype),
        (inputs["inputs"], inputs["cache"]),
    )


class _TrackAncestors(keras.layers.Layer):
    """`update_ancestors` and `beam_cache_mask` as one operation of a functional model."""

    def call(self, ancestors: Any, write_index: Any) -> Any:
        ancestors = update_ancestors(ancestors, write_index)
        return ancestors, beam_cache_mask(ancestors)
