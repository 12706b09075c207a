"""The decoder-only Transformer."""

from types import SimpleNamespace

import keras
from keras import ops

from keras_seq.layers.embedding.token_embedding import TokenEmbedding, cached_output_kernels
from keras_seq.layers.internal.dropout import Dropout
from keras_seq.layers.internal.layer_normalization import LayerNormalization
from keras_seq.layers.internal.seeds import split_seed
from keras_seq.layers.positions.sinusoidal_position import SinusoidalPosition
from keras_seq.layers.transformer.encoder_block import TransformerEncoderBlock
from keras_seq.models.cached_steps import (
    empty_state,
    like_inputs,
    longer_state,
    recorded_step,
    step_inputs,
)
from keras_seq.models.method import Method
from keras_seq.models.target_only import dummy_encoder, no_attention

# Shape letters: B batch, S source steps, T target steps, D units, H heads, K beam, V vocabulary.


@keras.saving.register_keras_serializable(package="keras_seq")
class TransformerLanguageModel(keras.Model):
    """Decoder-only Transformer over token ids, as a functional Keras model.

        x = dropout(sqrt(D) E[id] + position);  causal blocks;  logits = E h

        P(y) = prod over t of P(y_t | y_<t)

    The output layer shares the table of the embedding. Id 0 is padding.

    It has the contract of the encoder-decoder models with a source of which nothing is
    read, so that it is trained, searched and exported as they are: a prompt is
    what the target begins with.

    Shapes: B batch, S source steps, T target steps, D units, V vocabulary, K
    hypotheses.

    Args:
        vocabulary_size: Positive integer V.
        num_layers: Positive integer, blocks.
        units: Positive integer D, a multiple of `num_heads`.
        feedforward_units: Positive integer.
        num_heads: Positive integer.
        dropout: Float in [0, 1), on embeddings and on the output of each part
            of a block.
        attention_dropout: Float in [0, 1), on attention weights.
        activation_dropout: Float in [0, 1), on the feed-forward's hidden units.
        activation: Name of a Keras activation.
        norm: `"pre"` or `"post"`.
        seed: Optional integer, makes the dropout reproducible.

    Call arguments:
        inputs: Dict of int32 ids: `target` `(B, T)`, beginning with the start
            token; `source` `(B, S)`, whatever it holds.

    Returns:
        Float32 logits `(B, T, V)`; step t scores the token that follows
        `target[:, t]`.

    Besides itself the model offers, over the same weights, `encoder`,
    `decoder_step`, `initial_state` and `grow_state`, as `Transformer` does.

    Masks: taken from the ids; padding changes nothing.

    Raises:
        ValueError: If a size or rate is out of range.

    Example:

    >>> model = TransformerLanguageModel(20, 1, units=8, feedforward_units=16, num_heads=2)
    >>> ids = keras.ops.array([[2, 5, 6]])
    >>> tuple(model({"source": ids[:, :1], "target": ids}).shape)
    (1, 3, 20)

    Reference:
        Liu et al., "Generating Wikipedia by Summarizing Long Sequences", 2018,
        section 4.2.3, https://arxiv.org/abs/1801.10198; Radford et al.,
        "Improving Language Understanding by Generative Pre-Training", 2018
    """

    def __init__(
        self,
        vocabulary_size,
        num_layers,
        units,
        feedforward_units,
        num_heads,
        dropout=0.1,
        attention_dropout=0.0,
        activation_dropout=0.0,
        activation="relu",
        norm="pre",
        seed=None,
        name="transformer_language_model",
        **kwargs,
    ):
        if not isinstance(num_layers, int) or num_layers < 1:
            raise ValueError(f"`num_layers` must be a positive integer, received {num_layers!r}.")
        block_arguments = {
            "num_heads": num_heads,
            "feedforward_units": feedforward_units,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "activation_dropout": activation_dropout,
            "activation": activation,
            "norm": norm,
        }
        config = {
            "vocabulary_size": vocabulary_size,
            "num_layers": num_layers,
            "units": units,
            **block_arguments,
            "seed": seed,
        }
        dtype = kwargs.pop("dtype", None)
        embedding = TokenEmbedding(vocabulary_size, units, dtype=dtype, name="embedding")
        position = SinusoidalPosition(dtype=dtype, name="position")
        seeds = split_seed(seed, 1 + num_layers)
        embedding_dropout = Dropout(dropout, seed=seeds.pop(), dtype=dtype, name="dropout")
        blocks = [
            TransformerEncoderBlock(
                **block_arguments, causal=True, seed=seeds.pop(), dtype=dtype, name=f"block_{i}"
            )
            for i in range(num_layers)
        ]
        final_norm = None
        if norm == "pre":
            final_norm = LayerNormalization(epsilon=1e-5, dtype=dtype, name="norm")

        source = keras.Input((None,), dtype="int32", name="source")
        target = keras.Input((None,), dtype="int32", name="target")
        x = embedding_dropout(position(embedding(target)))
        for block in blocks:
            x = block(x)
        x = final_norm(x) if final_norm else x
        super().__init__(
            inputs={"source": source, "target": target},
            outputs=embedding(x, reverse=True),
            name=name,
            **kwargs,
        )
        # A functional model takes no `dtype`, and would have the global policy whatever its layers.
        if dtype is not None:
            self.dtype_policy = dtype
        self._config = config
        self._parts = SimpleNamespace(
            embedding=embedding,
            encoder=dummy_encoder(source),
            decoder_step=_decoder_step(embedding, position, blocks, final_norm, units, num_heads),
        )

    @property
    def encoder(self):
        """Functional model: ids `(B, S)` -> memory, which only says how many rows there are."""
        return self._parts.encoder

    @property
    def decoder_step(self):
        """Functional model: one step of K hypotheses."""
        return self._parts.decoder_step

    @property
    def attending_step(self):
        """None of a language model: there is no source to look at."""
        return no_attention()

    def step_scope(self):
        """A context for steps, which score words by a table that is turned about once."""
        return cached_output_kernels([self._parts.embedding])

    def initial_state(self, memory, beam_size, length):
        """The state before the first step; see `Transformer.initial_state`."""
        return empty_state(
            self.decoder_step, ops.shape(memory["mask"])[0], beam_size, length, self.compute_dtype
        )

    def grow_state(self, state, length):
        """A state that holds `length` more steps than `state`."""
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


def _decoder_step(embedding, position_layer, blocks, final_norm, units, num_heads):
    inputs = step_inputs(len(blocks), num_heads, units // num_heads, blocks[0].compute_dtype)
    caches = inputs["state"]["shared"]
    recorded, bias = recorded_step(inputs)
    x = Method(position_layer, "step", name="position_step")(
        {"inputs": embedding(inputs["token"]), "position": inputs["position"]}
    )
    shared = {"place": caches["place"] + 1}
    for i, block in enumerate(blocks):
        x, cache = Method(block, "step", spec=like_inputs, name=f"step_{i}")(
            {
                "inputs": x,
                "position": inputs["position"],
                "bias": bias,
                "write_index": caches["place"],
                "cache": {"key": caches[f"key_{i}"], "value": caches[f"value_{i}"]},
            }
        )
        shared[f"key_{i}"], shared[f"value_{i}"] = cache["key"], cache["value"]
    x = final_norm(x) if final_norm else x
    memory = {"mask": keras.Input((None,), dtype="bool", name="memory_mask")}
    return keras.Model(
        inputs={**inputs, "memory": memory},
        outputs={
            "logits": embedding(x, reverse=True),
            "state": {"beam": {"past": recorded}, "shared": shared},
        },
        name="decoder_step",
    )
