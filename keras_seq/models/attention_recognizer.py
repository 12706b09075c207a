"""Speech to tokens by attention: listen, attend and spell."""

from types import SimpleNamespace

import keras
from keras import ops

from keras_seq.layers.attention.attention_cell import has_state
from keras_seq.layers.embedding.token_embedding import TokenEmbedding
from keras_seq.layers.internal.layer_normalization import LayerNormalization
from keras_seq.layers.internal.seeds import split_seed
from keras_seq.models.attention_output import attending_step, attention_model
from keras_seq.models.checks import check_choice, check_sizes
from keras_seq.models.listener import listen, sound_inputs
from keras_seq.models.method import Method
from keras_seq.models.recurrent_parts import (
    add_decoder,
    bidirectional_layers,
    decode,
    make_bridge,
    make_decoder_step,
    name_states,
)

# Shape letters: B batch, N samples, S steps of features, P steps of the listener, T target steps,
# K beam, U units, V tokens.


@keras.saving.register_keras_serializable(package="keras_seq")
class AttentionRecognizer(keras.Model):
    """Listens to speech and spells it, token by token, as a functional Keras model.

        features:  x_s, log-mel or given, normalized over each step's features
        listener:  h^1 = BiRNN(x)
                   h^i_p = BiRNN([h^{i-1}_{2p}; h^{i-1}_{2p+1}]), i = 2 ... L
        first decoder state = tanh(W [last states of h^L] + b)
        speller:   attention cell over h^L, then further layers with residual sums
        logits   = W h + b

    Each layer of the listener above the first has half the steps of the one
    below, so that the speller has few to choose from: P = S / 2^(L - 1),
    rounded up at each layer. Of an odd number of steps the last has 0 beside
    it. Token 0 is padding.

    Shapes: B batch, N samples, S steps of features, P steps of the listener, T
    target steps, K hypotheses, V tokens.

    Args:
        vocabulary_size: Positive integer V.
        features: Layer that makes features and their mask of a dict of `samples`
            and `lengths`, such as `LogMelSpectrogram`; or a positive integer, the
            number of features where the source has them already.
        cell: "gru" or "lstm", of listener and speller.
        num_encoder_layers: Positive integer L.
        num_decoder_layers: Positive integer.
        embedding_units: Positive integer.
        encoder_units: Positive integer, in each direction.
        decoder_units: Positive integer, also the width of the attentional
            vector.
        attention: "location" (`LocationSensitiveAttention`) or "bahdanau".
        attention_units: Positive integer, the width in which attention compares.
        dropout: Float in [0, 1), on what each layer of the listener reads, on
            embeddings, between layers of the speller and on its outputs.
        attention_dropout: Float in [0, 1), on attention weights.
        seed: Optional integer, makes the dropout reproducible.

    Call arguments:
        inputs: Dict of `source`, a dict of `lengths` `(B,)` and float `samples`
            `(B, N)`, or `features` `(B, S, D)`; and of `target`, int32 ids
            `(B, T)` beginning with the start token.

    Returns:
        Float32 logits `(B, T, V)`; step t scores the token that follows
        `target[:, t]`.

    Besides itself the model offers, over the same weights, what search needs;
    see `RecurrentSeq2Seq`. The memory's `mask` is that of the listener's P steps:
    they are what attention, alignments and a penalty on coverage are about.

    Masks: taken from the lengths and the ids; padding changes nothing, whatever
    samples or features hold there.

    Raises:
        ValueError: If an option is none of those named or a size is not
            positive.

    Example:

    >>> from keras_seq.layers import LogMelSpectrogram
    >>> model = AttentionRecognizer(14, LogMelSpectrogram(8000, num_mels=20),
    ...     num_encoder_layers=2, embedding_units=4, encoder_units=4, decoder_units=8,
    ...     attention_units=8)
    >>> source = {"samples": keras.ops.zeros((1, 4000)), "lengths": keras.ops.array([3000])}
    >>> tuple(model({"source": source, "target": keras.ops.array([[2, 7, 9]])}).shape)
    (1, 3, 14)

    Reference:
        Chan, Jaitly, Le and Vinyals, "Listen, Attend and Spell", ICASSP 2016,
        sections 3.1 and 3.2, https://arxiv.org/abs/1508.01211; Chorowski et al.,
        "Attention-Based Models for Speech Recognition", NeurIPS 2015,
        https://arxiv.org/abs/1506.07503
    """

    def __init__(
        self,
        vocabulary_size,
        features,
        *,
        cell="gru",
        num_encoder_layers=3,
        num_decoder_layers=1,
        embedding_units=64,
        encoder_units=128,
        decoder_units=256,
        attention="location",
        attention_units=128,
        dropout=0.2,
        attention_dropout=0.0,
        seed=None,
        name="attention_recognizer",
        **kwargs,
    ):
        dtype = kwargs.pop("dtype", None)
        sizes = {
            "num_encoder_layers": num_encoder_layers,
            "num_decoder_layers": num_decoder_layers,
            "embedding_units": embedding_units,
            "encoder_units": encoder_units,
            "decoder_units": decoder_units,
        }
        config = {
            "vocabulary_size": vocabulary_size,
            "features": features,
            "cell": cell,
            **sizes,
            "attention": attention,
            "attention_units": attention_units,
            "dropout": dropout,
            "attention_dropout": attention_dropout,
            "seed": seed,
        }
        check_choice("cell", cell, ("gru", "lstm"))
        check_choice("attention", attention, ("location", "bahdanau"))
        check_sizes(vocabulary_size=vocabulary_size, **sizes)

        seeds = split_seed(seed, num_encoder_layers + num_decoder_layers + 2)
        dropouts = [
            keras.layers.Dropout(dropout, seed=seeds.pop(), dtype=dtype, name=f"{place}_dropout")
            for place in ("target", *(f"encoder_{i}" for i in range(num_encoder_layers)))
        ]
        parts = SimpleNamespace(
            target_embedding=TokenEmbedding(
                vocabulary_size, embedding_units, dtype=dtype, name="target_embedding"
            ),
            target_dropout=dropouts.pop(0),
        )
        chosen = {"target_vocabulary_size": vocabulary_size, "input_feeding": True}
        add_decoder(parts, SimpleNamespace(**config, **chosen, tie_output=False), seeds, dtype)
        listener = bidirectional_layers(cell, num_encoder_layers, encoder_units, dtype)

        source, x, mask = sound_inputs(features)
        target = keras.Input((None,), dtype="int32", name="target")
        x = LayerNormalization(epsilon=1e-3, dtype=dtype, name="normalization")(x)
        encoded, mask, last_states = listen(listener, dropouts, x, mask)
        states = make_bridge(parts, last_states[-1:], "dense")
        seen = {"value": encoded, "value_mask": mask}
        logits, _ = decode(parts, target, seen, states)
        super().__init__(
            inputs={"source": source, "target": target}, outputs=logits, name=name, **kwargs
        )
        # A functional model takes no `dtype`, and would have the global policy whatever its layers.
        if dtype is not None:
            self.dtype_policy = dtype
        memory = {
            "mask": mask,
            **Method(parts.attention, "project", name="project")(seen),
            **name_states(states),
        }
        # In a namespace, which Keras does not track: the weights are this model's own.
        self._parts = SimpleNamespace(
            config=config,
            attention=parts.attention,
            encoder=keras.Model(source, memory, name="encoder"),
            decoder_step=make_decoder_step(parts, memory),
            attending_step=None,
            make_step=lambda attending: make_decoder_step(parts, memory, attending),
            decode=lambda layers: decode(parts, target, seen, states, layers),
            with_attention={},
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
        """As `decoder_step`, with `attention` `(B, K, P)`, the step's weights."""
        return attending_step(self)

    def with_attention(self, layer=-1, head=None):
        """This model with its attention `(B, T, P)` as a second output; see `RecurrentSeq2Seq`."""
        return attention_model(self, layer, head, 1, 1)

    def initial_state(self, memory, beam_size, length):
        """The state before the first step; see `RecurrentSeq2Seq.initial_state`.

        With location-sensitive attention its `attention` `(B, K, P)` is what was looked at.
        """
        names = self.decoder_step.input["state"]["beam"]
        first = {name: memory[name] for name in names if name in memory}
        # The attentional vector starts at 0, as wide as the cell's state.
        first["attentional_state"] = ops.zeros_like(memory["state_0_0"])
        if has_state(self._parts.attention):
            first["attention"] = self._parts.attention.initial_state(memory["value"])
        return {
            "beam": {
                name: ops.repeat(first[name][:, None], beam_size, axis=1)  # (B, K, U)
                for name in names
            },
            "shared": {},
        }

    def grow_state(self, state, length):
        """The state itself, which has room for any number of steps."""
        return state

    def get_config(self):
        config = self._parts.config
        return {
            **config,
            "features": keras.saving.serialize_keras_object(config["features"]),
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        features = keras.saving.deserialize_keras_object(
            config["features"], custom_objects=custom_objects
        )
        return cls(**config | {"features": features})
