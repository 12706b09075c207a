"""Ensembles of encoder-decoders that are trained together."""

import contextlib
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import keras
from keras import ops

from keras_seq.models.ensemble import Ensemble
from keras_seq.models.functional_model import FunctionalModel
from keras_seq.models.inputs import token_input
from keras_seq.models.members import make_members, members_from_configs


@keras.saving.register_keras_serializable(package="keras_seq")
class EnsembleSeq2Seq(FunctionalModel):
    """Deep ensemble of encoder-decoders, as one functional Keras model.

        P(y_t | y_<t, x) = mean_m P_m(y_t | y_<t, x)

    The members have the same shape and start from different random weights. On small corpora the
    mean of several members is right more often than any of them. Training minimizes the mean of
    the members' losses, not the loss of the mean, so that the members stay independent.

    Shapes: B batch, T target steps, V target vocabulary.

    Args:
        members: List of models of `keras_seq.models` that share source and target vocabularies.
            Their weights must have different paths: see `EnsembleSeq2Seq.of`.

    Call arguments:
        inputs: As of the members.

    Returns:
        Float32 log-probabilities `(B, T, V)`.

    For search and for attention weights the model has the same methods as its members.

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

    def __init__(self, members: Sequence[Any], **kwargs: Any) -> None:
        ensemble = Ensemble(members)
        inputs = {side: token_input(side) for side in ("source", "target")}
        super().__init__(inputs=inputs, outputs=ensemble(inputs), **kwargs)
        # The namespace keeps Keras from tracking the weights twice.
        self._parts = SimpleNamespace(ensemble=ensemble, with_attention={})

    @classmethod
    def of(cls, make: Callable[[str], Any], count: int) -> "EnsembleSeq2Seq":
        """Makes an ensemble of members whose weights have different paths.

        `make` is a function from a name to a new model of that name; `count` is their number.
        """
        return cls(make_members(make, count))

    @property
    def members(self) -> list[Any]:
        """The models of the ensemble."""
        return self._parts.ensemble.models

    @property
    def encoder(self) -> Any:
        """See `Ensemble.encoder`."""
        return self._parts.ensemble.encoder

    @property
    def decoder_step(self) -> Any:
        """See `Ensemble.decoder_step`."""
        return self._parts.ensemble.decoder_step

    @property
    def decoder_step_with_attention(self) -> Any:
        """See `Ensemble.decoder_step_with_attention`."""
        return self._parts.ensemble.decoder_step_with_attention

    def initial_state(self, memory: dict[str, Any], beam_size: int, length: Any) -> dict[str, Any]:
        """Returns the states of all members before the first step."""
        return self._parts.ensemble.initial_state(memory, beam_size, length)

    def grow_state(self, state: dict[str, Any], length: Any) -> dict[str, Any]:
        """Returns the states of all members with room for `length` more steps."""
        return self._parts.ensemble.grow_state(state, length)

    def cached_output_kernel(self) -> contextlib.AbstractContextManager[Any]:
        """See `Ensemble.cached_output_kernel`."""
        return self._parts.ensemble.cached_output_kernel()

    def with_attention(self, layer: int | None = -1, head: int | None = None) -> Any:
        """Returns this model with the mean attention of its members as a second output.

        Arguments and result are those of `with_attention` of the members.
        """
        models = self._parts.with_attention
        if (layer, head) not in models:
            attention = [
                member.with_attention(layer, head)(self.input)["attention"]
                for member in self.members
            ]
            models[layer, head] = keras.Model(
                self.input,
                {"logits": self.output, "attention": ops.mean(ops.stack(attention), axis=0)},
                name="with_attention",
            )
        return models[layer, head]

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> "EnsembleSeq2Seq":
        members = members_from_configs(config["members"], custom_objects)
        return cls(**{**config, "members": members})
