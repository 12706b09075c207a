"""The recurrent encoder-decoder with attention."""

from types import SimpleNamespace

import keras
from keras import ops

from keras_seq.models.attention_output import attending_step, attention_model
from keras_seq.models.method import Method
from keras_seq.models.recurrent_parts import (
    check,
    decode,
    encode,
    make_bridge,
    make_decoder_step,
    make_layers,
    name_states,
)

# Shape letters: B batch, S source steps, T target steps, K beam, U units, V words.


@keras.saving.register_keras_serializable(package="keras_seq")
class RecurrentSeq2Seq(keras.Model):
    """Recurrent encoder-decoder over token ids, as a functional Keras model.

        encoder:  bidirectional layers over dropout(E[id]), residual from layer 2;
                  or gated convolutions over dropout(E[id]) + position
        bridge:   first decoder state from the last encoder states
        decoder:  attention cell, then further layers with residual sums
        logits  = W h + b, or E_target (P h) with a tied output

    The first decoder layer looks at the source; the layers above it read what
    it found, so that they run outside the attention's loop. Id 0 is padding.

    Shapes: B batch, S source steps, T target steps, V target vocabulary, K
    hypotheses.

    Args:
        source_vocabulary_size: Positive integer.
        target_vocabulary_size: Positive integer V.
        encoder: "recurrent" or "convolutional" (`ConvolutionalEncoder`). The
            latter has no states: the mean of its outputs stands for them, and
            for the last outputs.
        cell: "gru" or "lstm", of the encoder too if that is recurrent.
        num_encoder_layers: Positive integer.
        num_decoder_layers: Positive integer.
        embedding_units: Positive integer.
        encoder_units: Positive integer, in each direction; a convolutional
            encoder is as wide as both together.
        decoder_units: Positive integer, also the width of the attentional
            vector.
        attention: "bahdanau" or "luong" (its score "general").
        attention_units: Positive integer, the width in which Bahdanau's
            attention compares; Luong's needs none.
        input_feeding: Whether the first decoder layer reads the attentional
            vector of the step before.
        context: "every_step": the first decoder layer reads the encoder's last
            outputs besides each token; "init": it meets them in its first
            state alone.
        bridge: "copy", "dense" (a layer with tanh) or "zero": how the first
            states of decoder layer i come from the last states, both
            directions joined, of encoder layer i or the topmost there is.
        dropout: Float in [0, 1), on embeddings, between layers and on the
            decoder's outputs.
        attention_dropout: Float in [0, 1), on attention weights.
        share_embeddings: Whether source and target use one table (one joint
            vocabulary).
        tie_output: Whether the logits use the table of the target embedding.
        seed: Optional integer, makes the dropout reproducible.

    Call arguments:
        inputs: Dict of int32 ids: `source` `(B, S)` and `target` `(B, T)`, the
            latter beginning with the start token.

    Returns:
        Float32 logits `(B, T, V)`; step t scores the token that follows
        `target[:, t]`.

    Besides itself the model offers, over the same weights, what search needs:

    * `encoder`: functional model, ids `(B, S)` -> memory, a dict of tensors;
    * `decoder_step`: functional model of `token` `(B, K)`, `position` `()`,
      `state` and `memory` -> `logits` `(B, K, V)` and the next `state`;
    * `initial_state(memory, beam_size, length)`, and `grow_state(state, length)`
      with room for more steps;
    * `with_attention()`: itself, with attention weights as a second output.

    Masks: taken from the ids; padding changes nothing.

    Raises:
        ValueError: If an option is none of those named, vocabularies differ
            while embeddings are shared, or the bridge is "copy" and
            `decoder_units` is not twice `encoder_units`.

    Example:

    >>> model = RecurrentSeq2Seq(20, 20, embedding_units=4, encoder_units=4,
    ...     decoder_units=8, attention_units=8)
    >>> ids = keras.ops.array([[5, 6, 3]])
    >>> tuple(model({"source": ids, "target": ids}).shape)
    (1, 3, 20)

    Reference:
        Bahdanau, Cho and Bengio, 2015, https://arxiv.org/abs/1409.0473; Luong,
        Pham and Manning, 2015, https://arxiv.org/abs/1508.04025; Wu et al.,
        "Google's Neural Machine Translation System", 2016, section 3,
        https://arxiv.org/abs/1609.08144; Gehring et al., "A Convolutional
        Encoder Model for Neural Machine Translation", 2017,
        https://arxiv.org/abs/1611.02344
    """

    def __init__(
        self,
        source_vocabulary_size,
        target_vocabulary_size,
        *,
        encoder="recurrent",
        cell="gru",
        num_encoder_layers=1,
        num_decoder_layers=1,
        embedding_units=256,
        encoder_units=256,
        decoder_units=512,
        attention="bahdanau",
        attention_units=256,
        input_feeding=True,
        context="every_step",
        bridge="dense",
        dropout=0.2,
        attention_dropout=0.0,
        share_embeddings=False,
        tie_output=False,
        seed=None,
        name="recurrent_seq2seq",
        **kwargs,
    ):
        dtype = kwargs.pop("dtype", None)
        config = {
            "source_vocabulary_size": source_vocabulary_size,
            "target_vocabulary_size": target_vocabulary_size,
            "encoder": encoder,
            "cell": cell,
            "num_encoder_layers": num_encoder_layers,
            "num_decoder_layers": num_decoder_layers,
            "embedding_units": embedding_units,
            "encoder_units": encoder_units,
            "decoder_units": decoder_units,
            "attention": attention,
            "attention_units": attention_units,
            "input_feeding": input_feeding,
            "context": context,
            "bridge": bridge,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "share_embeddings": share_embeddings,
            "tie_output": tie_output,
            "seed": seed,
        }
        check(config)
        parts = make_layers(SimpleNamespace(**config), dtype)

        source = keras.Input((None,), dtype="int32", name="source")
        target = keras.Input((None,), dtype="int32", name="target")
        mask = ops.not_equal(source, 0)
        encoded, summary, last_states = encode(parts, source, mask)
        states = make_bridge(parts, last_states, bridge)
        read = {"summary": summary} if context == "every_step" else {}

        seen = {"value": encoded, "value_mask": mask, **read}
        logits, _ = decode(parts, target, seen, states)
        super().__init__(
            inputs={"source": source, "target": target}, outputs=logits, name=name, **kwargs
        )
        # A functional model takes no `dtype`, and would have the global policy whatever its layers.
        if dtype is not None:
            self.dtype_policy = dtype
        self._config = config
        projected = Method(parts.attention, "project", name="project")(
            {"value": encoded, "value_mask": mask}
        )
        memory = {"mask": mask, **projected, **read, **name_states(states)}
        # In a namespace, which Keras does not track: the weights are this model's own.
        self._parts = SimpleNamespace(
            encoder=keras.Model(source, memory, name="encoder"),
            decoder_step=make_decoder_step(parts, memory),
            attending_step=None,
            make_step=lambda attending: make_decoder_step(parts, memory, attending),
            decode=lambda layers: decode(parts, target, seen, states, layers),
            with_attention={},
        )

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
        """As `decoder_step`, with `attention` `(B, K, S)`, the step's weights."""
        return attending_step(self)

    def with_attention(self, layer=-1, head=None):
        """This model with a second output, what it looks at; weights are this model's own.

        Args:
            layer: 0 or -1: the first decoder layer is the one that looks at the source.
                None: as `(B, 1, 1, T, S)`, layers and heads as a Transformer has them.
            head: 0 or None: it has one head.

        Returns:
            Functional model of the same inputs: `logits` `(B, T, V)` and `attention`
            `(B, T, S)`, float32, 0 on padding; row t is of the step that scores the token
            after `target[:, t]`.

        Raises:
            ValueError: If `layer` or `head` is another.
        """
        return attention_model(self, layer, head, 1, 1)

    def initial_state(self, memory, beam_size, length):
        """The state before the first step.

        Args:
            memory: What `encoder` gave.
            beam_size: Integer K.
            length: Unused: a recurrent state does not grow.

        Returns:
            Dict of `beam`, tensors `(B, K, U)` that a search reorders with its
            hypotheses, and `shared`, empty.
        """
        batch = ops.shape(memory["mask"])[0]
        beam = {}
        for name in self._parts.decoder_step.input["state"]["beam"]:
            # The attentional vector starts at 0, as wide as the cell's state.
            state = (
                ops.zeros_like(memory["state_0_0"]) if name == "attentional_state" else memory[name]
            )
            beam[name] = ops.broadcast_to(state[:, None], (batch, beam_size, state.shape[-1]))
        return {"beam": beam, "shared": {}}

    def grow_state(self, state, length):
        """The state itself, which has room for any number of steps."""
        return state

    def get_config(self):
        return {
            **self._config,
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(**config)
