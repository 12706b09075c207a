"""Several encoder-decoders that are trained together and predict together."""

from types import SimpleNamespace

import keras
from keras import ops

from keras_seq.models.ensemble import Ensemble

# Shape letters: B batch, T target steps, S source steps, K beam, V words, M members.


@keras.saving.register_keras_serializable(package="keras_seq")
class EnsembleSeq2Seq(keras.Model):
    """A deep ensemble of encoder-decoders, as one functional Keras model.

        P(y_t | y_<t, x) = mean_m P_m(y_t | y_<t, x)

    The members have the same shape and start from different random weights. On small corpora
    the mean of several is right more often than any of them. Training minimizes the mean of
    the members' losses, not the loss of the mean, so that they stay independent.

    Shapes: B batch, T target steps, V target vocabulary.

    Args:
        members: Models of `keras_seq.models` that share source and target vocabularies. Their
            weights must have different paths: see `EnsembleSeq2Seq.of`.

    Call arguments:
        inputs: As of the members.

    Returns:
        Float32 log-probabilities `(B, T, V)`.

    Search uses the same methods as of `Ensemble`: `encoder`, `initial_state`, `decoder_step`, ...

    Raises:
        ValueError: If there is no member, or their vocabularies have different sizes.

    Example:

    >>> from keras_seq.models import RecurrentSeq2Seq
    >>> model = EnsembleSeq2Seq.of(
    ...     lambda name: RecurrentSeq2Seq(20, 20, embedding_units=4, encoder_units=4,
    ...         decoder_units=8, attention_units=8, name=name), 3)
    >>> ids = keras.ops.array([[5, 6, 3]])
    >>> tuple(model({"source": ids, "target": ids}).shape)
    (1, 3, 20)

    Reference:
        Lakshminarayanan, Pritzel and Blundell, "Simple and Scalable Predictive Uncertainty
        Estimation using Deep Ensembles", 2017, https://arxiv.org/abs/1612.01474
    """

    def __init__(self, members, name="ensemble_seq2seq", **kwargs):
        members = list(members)
        ensemble = Ensemble(members)
        inputs = {
            key: keras.Input((None,), dtype="int32", name=key) for key in ("source", "target")
        }
        super().__init__(inputs=inputs, outputs=ensemble(inputs), name=name, **kwargs)
        # In a namespace, which Keras does not track: the weights are the members'.
        self._parts = SimpleNamespace(ensemble=ensemble, with_attention={})

    @classmethod
    def of(cls, make, count):
        """Makes members whose weights have different paths.

        Args:
            make: Called with a name, gives a new model of that name.
            count: Positive integer M.
        """
        members = []
        for index in range(count):
            with keras.name_scope(f"member_{index}"):
                members.append(make(f"member_{index}"))
        return cls(members)

    @property
    def members(self):
        """The models."""
        return self._parts.ensemble.models

    def encoder(self, source, training=False):
        """The memories of all members."""
        return self._parts.ensemble.encoder(source, training=training)

    def step_scope(self):
        """A context for steps, with what all members compute once for theirs."""
        return self._parts.ensemble.step_scope()

    def initial_state(self, memory, beam_size, length):
        """The states of all members before the first step."""
        return self._parts.ensemble.initial_state(memory, beam_size, length)

    def grow_state(self, state, length):
        """The states of all members, with room for more steps."""
        return self._parts.ensemble.grow_state(state, length)

    def decoder_step(self, inputs, training=False):
        """One step of K hypotheses by all members: `logits` are log-probabilities."""
        return self._parts.ensemble.decoder_step(inputs, training=training)

    def attending_step(self, inputs, training=False):
        """As `decoder_step`, with the mean of the members' attention as `attention`."""
        return self._parts.ensemble.attending_step(inputs, training=training)

    def with_attention(self, layer=-1, head=None):
        """This model with a second output, the mean of the members' attention.

        Args:
            layer, head: As of the members.

        Returns:
            Functional model of the same inputs, with outputs `logits` and `attention`.
        """
        made = self._parts.with_attention
        if (layer, head) not in made:
            found = [member.with_attention(layer, head)(self.input) for member in self.members]
            attention = ops.mean(ops.stack([one["attention"] for one in found]), axis=0)
            made[layer, head] = keras.Model(
                self.input,
                {"logits": self.output, "attention": attention},
                name="with_attention",
            )
        return made[layer, head]

    def get_config(self):
        return {
            "members": [keras.saving.serialize_keras_object(member) for member in self.members],
            "name": self.name,
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        config = dict(config)
        members = []
        for index, member in enumerate(config.pop("members")):
            with keras.name_scope(f"member_{index}"):
                members.append(keras.saving.deserialize_keras_object(member, custom_objects))
        return cls(members, **config)
