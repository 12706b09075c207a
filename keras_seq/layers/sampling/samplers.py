"""Samplers: where a decoder gets its next input from."""

import dataclasses
from collections.abc import Callable
from typing import Any

import keras
from keras import ops

# Shape letters: B batch, V vocabulary, D input features.


@dataclasses.dataclass(frozen=True)
class Sampler:
    """Abstract sampler of a `SampledDecoder`. It holds settings and no state."""

    def ids(self, outputs: Any, uniform: Any) -> Any:
        """Returns int32 ids `(B,)` for outputs `(B, V)` of one step and random numbers `(B,)`."""
        return most_likely(outputs)

    def get_config(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> "Sampler":
        return cls(**config)


@dataclasses.dataclass(frozen=True)
class ScheduledSampler(Sampler):
    """Abstract sampler that feeds the previous output back with a given probability."""

    probability: float
    seed: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.probability <= 1:
            raise ValueError(f"`probability` must be in [0, 1], received {self.probability!r}.")

    def feedback(self, embedding: Any, width: int) -> Callable[[Any, Any], Any]:
        """Returns a function from outputs `(B, V)` and ids `(B,)` to the next input `(B, D)`."""
        raise NotImplementedError


@keras.saving.register_keras_serializable(package="keras_seq")
@dataclasses.dataclass(frozen=True)
class TrainingSampler(Sampler):
    """Teacher forcing: every step reads the true previous token.

        x_{t+1} = E[y_{t+1}],  id_t = argmax o_t

    All samplers are arguments of `SampledDecoder`.

    Example:

    >>> TrainingSampler()
    TrainingSampler()

    Reference:
        Williams and Zipser, "A Learning Algorithm for Continually Running Fully Recurrent Neural
        Networks", 1989, section 4
    """


@keras.saving.register_keras_serializable(package="keras_seq")
@dataclasses.dataclass(frozen=True)
class ScheduledEmbeddingSampler(ScheduledSampler):
    """Scheduled sampling: some training steps read a token sampled at the previous step.

        x_{t+1} = E[id_t] with probability p, else E[y_{t+1}],  id_t ~ softmax(o_t)

    Each row and step is decided independently. Outside training this is teacher forcing.
    `keras_seq.training.ScheduledSampling` samples for whole models in two passes instead of T
    steps.

    Args:
        probability: Initial p, a float in [0, 1]. The decoder stores it in its weight
            `probability`, which a schedule may assign.
        seed: Optional integer that makes the samples reproducible.

    Raises:
        ValueError: If `probability` is outside [0, 1].

    Example:

    >>> ScheduledEmbeddingSampler(0.25)
    ScheduledEmbeddingSampler(probability=0.25, seed=None)

    Reference:
        Bengio et al., "Scheduled Sampling for Sequence Prediction with Recurrent Neural Networks",
        2015, https://arxiv.org/abs/1506.03099
    """

    def ids(self, outputs: Any, uniform: Any) -> Any:
        return sample(outputs, uniform)

    def feedback(self, embedding: Any, width: int) -> Callable[[Any, Any], Any]:
        return lambda outputs, ids: embed(embedding, ids)


@keras.saving.register_keras_serializable(package="keras_seq")
@dataclasses.dataclass(frozen=True)
class ScheduledOutputSampler(ScheduledSampler):
    """Scheduled sampling without discrete samples: some steps read the previous output itself.

        x_{t+1} = softmax(o_t) E with probability p, else E[y_{t+1}]   for tokens
        x_{t+1} = o_t          with probability p, else y_{t+1}        for vectors

    Use it for sequences of vectors, or for tokens if gradients should pass through what is fed
    back. Outside training this is teacher forcing.

    Args:
        probability, seed: As in `ScheduledEmbeddingSampler`.

    Example:

    >>> ScheduledOutputSampler(0.25)
    ScheduledOutputSampler(probability=0.25, seed=None)

    Reference:
        Bengio et al., 2015, https://arxiv.org/abs/1506.03099; for tokens: Goyal, Dyer and
        Berg-Kirkpatrick, "Differentiable Scheduled Sampling for Credit Assignment", 2017,
        section 3, https://arxiv.org/abs/1704.06970
    """

    def feedback(self, embedding: Any, width: int) -> Callable[[Any, Any], Any]:
        if embedding is None:
            return lambda outputs, ids: outputs
        table = embed(embedding, ops.arange(width))  # (V, D)
        return lambda outputs, ids: ops.matmul(
            ops.cast(ops.softmax(outputs, axis=-1), table.dtype), table
        )


@keras.saving.register_keras_serializable(package="keras_seq")
@dataclasses.dataclass(frozen=True)
class GreedySampler(Sampler):
    """Greedy decoding: every step reads the most likely token of the previous step.

        id_t = argmax o_t,  x_{t+1} = E[id_t],  x_1 = E[start]

    `keras_seq.search.beam_search` finds better targets.

    Args:
        start, end: Integer ids: the first step reads `start`, and `end` ends a row.

    Example:

    >>> GreedySampler(start=2, end=3)
    GreedySampler(start=2, end=3)
    """

    start: int
    end: int


@keras.saving.register_keras_serializable(package="keras_seq")
@dataclasses.dataclass(frozen=True)
class CategoricalSampler(Sampler):
    """Random decoding: every step reads a token sampled at the previous step.

        id_t ~ softmax(o_t / temperature),  x_{t+1} = E[id_t],  x_1 = E[start]

    Args:
        start, end: As in `GreedySampler`.
        temperature: Float above 0. Values below 1 favor likely tokens. Defaults to 1.
        seed: Optional integer that makes the samples reproducible.

    Raises:
        ValueError: If `temperature` is not above 0.

    Example:

    >>> CategoricalSampler(start=2, end=3, temperature=0.5)
    CategoricalSampler(start=2, end=3, temperature=0.5, seed=None)
    """

    start: int
    end: int
    temperature: float = 1.0
    seed: int | None = None

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise ValueError(
                f"`temperature` must be above 0, received {self.temperature!r}: "
                "for the most likely tokens use `GreedySampler`."
            )

    def ids(self, outputs: Any, uniform: Any) -> Any:
        return sample(outputs / self.temperature, uniform)


def embed(embedding: Any, ids: Any) -> Any:
    """Embeds ids `(B,)` as `(B, D)` with a layer that expects sequences."""
    return ops.squeeze(embedding(ops.expand_dims(ids, 1)), 1)


def most_likely(logits: Any) -> Any:
    """Returns int32 ids `(...)` of the largest logits `(..., V)`."""
    return ops.cast(ops.argmax(logits, axis=-1), "int32")


def sample(logits: Any, uniform: Any) -> Any:
    """Samples an id from softmax(logits) for each uniform random number.

    Inverts the cumulative distribution, because a loop cannot use a random generator. `logits` are
    `(..., V)` and `uniform` `(...)`, multiples of 2^-23 in [0, 1). Returns int32 `(...)`.
    """
    cumulative = ops.cumsum(ops.softmax(logits, axis=-1), axis=-1)
    # As `uniform` <= 1 - 2^-23, float32 rounds the threshold to less than the sum. So the result is
    # always a valid id with a probability above 0.
    threshold = ops.cast(uniform, cumulative.dtype)[..., None] * cumulative[..., -1:]
    return most_likely(ops.cast(cumulative > threshold, "int32"))
