"""Ensembles of classifiers that are trained together."""

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import keras
from keras import ops

from keras_seq.models.functional_model import FunctionalModel
from keras_seq.models.members import make_members, members_from_configs


@keras.saving.register_keras_serializable(package="keras_seq")
class EnsembleClassifier(FunctionalModel):
    """Deep ensemble of classifiers, as one functional Keras model.

        P(y | x) = mean_m P_m(y | x)

    The members have the same shape and start from different random weights. On small corpora the
    mean of several members is right more often than any of them, and its probabilities are better
    calibrated. Training minimizes the mean of the members' losses, not the loss of the mean, so
    that the members stay independent.

    Shapes: B batch, S steps, C classes.

    Args:
        members: List of `TextClassifier` with the same labels. Their weights must have different
            paths: see `EnsembleClassifier.of`.

    Call arguments:
        inputs: As of the members.

    Returns:
        Float32 log-probabilities `(B, C)`.

    Raises:
        ValueError: If there is no member, or they have different numbers of classes.

    Example:

    >>> from keras_seq.models import BagTextEncoder, TextClassifier
    >>> model = EnsembleClassifier.of(
    ...     lambda name: TextClassifier(BagTextEncoder(20, embedding_units=4), 3, name=name), 2)
    >>> tuple(model({"source": keras.ops.array([[5, 6, 0]])}).shape)
    (1, 3)

    Reference:
        Lakshminarayanan, Pritzel and Blundell, "Simple and Scalable Predictive Uncertainty
        Estimation using Deep Ensembles", 2017, https://arxiv.org/abs/1612.01474
    """

    def __init__(self, members: Sequence[Any], **kwargs: Any) -> None:
        members = list(members)
        if not members:
            raise ValueError("`members` must hold at least one model, received none.")
        sizes = [member.output.shape[-1] for member in members]
        if len(set(sizes)) > 1:
            raise ValueError(f"the members must have the same labels, received {sizes} labels.")
        inputs = {
            name: keras.Input(tensor.shape[1:], dtype=tensor.dtype, name=name)
            for name, tensor in members[0].input.items()
        }
        log_shares = ops.stack([ops.log_softmax(member(inputs)) for member in members])
        outputs = ops.logsumexp(log_shares, axis=0) - ops.log(float(len(members)))
        super().__init__(inputs=inputs, outputs=outputs, **kwargs)
        # The namespace keeps Keras from tracking the weights twice.
        self._parts = SimpleNamespace(members=members)

    @classmethod
    def of(cls, make: Callable[[str], Any], count: int) -> "EnsembleClassifier":
        """Makes an ensemble of members whose weights have different paths.

        `make` is a function from a name to a new model of that name; `count` is their number.
        """
        return cls(make_members(make, count))

    @property
    def members(self) -> list[Any]:
        """The models of the ensemble."""
        return self._parts.members

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Any = None
    ) -> "EnsembleClassifier":
        members = members_from_configs(config["members"], custom_objects)
        return cls(**{**config, "members": members})
