"""What models with the decoder of a Transformer have in common, whatever their encoder."""

from types import SimpleNamespace

import keras
from keras import ops

from keras_seq.layers.embedding.token_embedding import cached_output_kernels
from keras_seq.models.attention_output import WithWeights, attending_step, attention_model
from keras_seq.models.cached_steps import (
    empty_state,
    like_inputs,
    longer_state,
    recorded_step,
    step_inputs,
)
from keras_seq.models.method import Method

# Shape letters: B batch, S source steps, T target steps, D units, H heads, V vocabulary.


class TransformerDecoderModel(keras.Model):
    """A functional model of any encoder and the decoder of a Transformer. Abstract."""

    def _connect(self, source, mask, encoded, decoder, config, dtype, **kwargs):
        """Makes the model of its parts; to be called in place of `super().__init__`.

        Args:
            source: Symbolic ids `(B, S)`.
            mask: True where they are no padding.
            encoded: Symbolic outputs of the encoder `(B, S, D)`.
            decoder: Namespace of layers: `embedding`, `position`, `dropout`, `blocks`, and
                `norm`, a layer or None.
            config: Dict of the constructor's arguments.
            dtype: Dtype policy of all layers, or None for the default.
            **kwargs: Of `keras.Model`.
        """
        target = keras.Input((None,), dtype="int32", name="target")
        final_norm = decoder.norm

        def decode(layers=()):
            """Logits, and the attention (B, H, T, S) of each of some blocks."""
            attention = []
            x = decoder.dropout(decoder.position(decoder.embedding(target)))
            for i, block in enumerate(decoder.blocks):
                if i in layers:
                    x, weights = WithWeights(block, name=f"weights_{i}")(
                        {"inputs": x, "memory": encoded, "memory_mask": mask}
                    )
                    attention.append(weights)
                else:
                    x = block(x, encoded, memory_mask=mask)
            x = final_norm(x) if final_norm else x
            return decoder.embedding(x, reverse=True), attention

        logits, _ = decode()
        super().__init__(inputs={"source": source, "target": target}, outputs=logits, **kwargs)
        # A functional model takes no `dtype`, and would have the global policy whatever its layers.
        if dtype is not None:
            self.dtype_policy = dtype
        self._config = config
        self._parts = SimpleNamespace(
            embedding=decoder.embedding,
            encoder=_encoder(source, mask, encoded, decoder.blocks),
            decoder_step=None,
            attending_step=None,
            decode=decode,
            with_attention={},
        )

        def make_step(attending=False):
            return _decoder_step(
                self._parts.encoder, decoder, config["units"], config["num_heads"], attending
            )

        self._parts.make_step = make_step
        self._parts.decoder_step = make_step()

    @property
    def encoder(self):
        """Functional model: ids `(B, S)` -> memory."""
        return self._parts.encoder

    @property
    def decoder_step(self):
        """Functional model: one step of K hypotheses."""
        return self._parts.decoder_step

    @property
    def attending_step(self):
        """As `decoder_step`, with `attention` `(B, K, S)`: the last block's, mean over heads."""
        return attending_step(self)

    def with_attention(self, layer=-1, head=None):
        """This model with a second output, what it looks at; weights are this model's own.

        Args:
            layer: Integer, the decoder block whose attention to the source is given; -1
                is the last. None: all, as `(B, blocks, H, T, S)`.
            head: Integer, the head whose attention it is; None for the mean over heads.

        Returns:
            Functional model of the same inputs: `logits` `(B, T, V)` and `attention`
            `(B, T, S)`, float32, 0 on padding; row t is of the step that scores the token
            after `target[:, t]`.

        Raises:
            ValueError: If there is no such block or head.
        """
        blocks, heads = self._config["num_decoder_layers"], self._config["num_heads"]
        return attention_model(self, layer, head, blocks, heads)

    def step_scope(self):
        """A context for steps, which score words by a table that is turned about once."""
        return cached_output_kernels([self._parts.embedding])

    def initial_state(self, memory, beam_size, length):
        """The state before the first step.

        Args:
            memory: What `encoder` gave.
            beam_size: Integer K.
            length: Integer or scalar tensor L, the steps the state must hold.

        Returns:
            Dict of `beam`, tensors `(B, K, ...)` that a search reorders with
            its hypotheses, and `shared`, tensors that it leaves alone.
        """
        return empty_state(
            self.decoder_step, ops.shape(memory["mask"])[0], beam_size, length, self.compute_dtype
        )

    def grow_state(self, state, length):
        """A state that holds `length` more steps than `state`.

        Args:
            state: From `initial_state` or `decoder_step`.
            length: Integer or scalar tensor.

        Returns:
            As `initial_state`; slots of the caches that are no hypothesis' past are given up.
        """
        return longer_state(state, length)

    def get_config(self):
        return {
            **self._config,
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(**config)


def _encoder(source, mask, encoded, decoder_blocks):
    memory = {"mask": mask}
    for i, block in enumerate(decoder_blocks):
        projected = Method(block, "project", name=f"project_{i}")(
            {"memory": encoded, "memory_mask": mask}
        )
        memory[f"key_{i}"], memory[f"value_{i}"] = projected["key"], projected["value"]
    return keras.Model(source, memory, name="encoder")


def _decoder_step(encoder, decoder, units, num_heads, attending):
    blocks = decoder.blocks
    memory = {
        name: keras.Input(batch_shape=tensor.shape, dtype=tensor.dtype, name=f"memory_{name}")
        for name, tensor in encoder.output.items()
    }
    inputs = step_inputs(len(blocks), num_heads, units // num_heads, blocks[0].compute_dtype)
    caches = inputs["state"]["shared"]
    recorded, bias = recorded_step(inputs)
    x = decoder.embedding(inputs["token"])  # (B, K, D)
    x = Method(decoder.position, "step", name="position_step")(
        {"inputs": x, "position": inputs["position"]}
    )
    shared = {"place": caches["place"] + 1}
    for i, block in enumerate(blocks):
        options = {"return_weights": attending and block is blocks[-1]}
        spec = None if options["return_weights"] else like_inputs
        x, cache, *weights = Method(block, "step", options, spec, name=f"step_{i}")(
            {
                "inputs": x,
                "position": inputs["position"],
                "bias": bias,
                "write_index": caches["place"],
                "cache": {"key": caches[f"key_{i}"], "value": caches[f"value_{i}"]},
                "memory": {"key": memory[f"key_{i}"], "value": memory[f"value_{i}"]},
                "memory_mask": memory["mask"],
            }
        )
        shared[f"key_{i}"], shared[f"value_{i}"] = cache["key"], cache["value"]
    x = decoder.norm(x) if decoder.norm else x
    outputs = {
        "logits": decoder.embedding(x, reverse=True),
        "state": {"beam": {"past": recorded}, "shared": shared},
    }
    if attending:
        outputs["attention"] = ops.mean(weights[0], axis=1)
    return keras.Model(inputs={**inputs, "memory": memory}, outputs=outputs, name="decoder_step")
