"""Where a decoder's next input comes from: the target, its own words, or some of both."""

import dataclasses

import keras
from keras import ops

# Shape letters: B batch, V vocabulary, D input features.


@dataclasses.dataclass(frozen=True)
class Sampler:
    """What `SampledDecoder` asks of a sampler. Holds numbers, and nothing of a batch."""

    def ids(self, outputs, uniform):
        """What the decoder says at one step: `(B, V)`, numbers in [0, 1) `(B,)` -> int32 `(B,)`."""
        return likeliest(outputs)

    def get_config(self):
        return dataclasses.asdict(self)

    @classmethod
    def from_config(cls, config):
        return cls(**config)


@keras.saving.register_keras_serializable(package="keras_seq")
@dataclasses.dataclass(frozen=True)
class TrainingSampler(Sampler):
    """Every step reads the true word before it: teacher forcing.

        x_{t+1} = E[y_{t+1}],  id_t = argmax o_t

    For `SampledDecoder`, as are the other samplers.

    Example:

    >>> TrainingSampler()
    TrainingSampler()

    Reference:
        Williams and Zipser, "A Learning Algorithm for Continually Running
        Fully Recurrent Neural Networks", 1989, section 4
    """


@keras.saving.register_keras_serializable(package="keras_seq")
@dataclasses.dataclass(frozen=True)
class ScheduledEmbeddingSampler(Sampler):
    """Some steps of training read what the decoder itself drew the step before.

        x_{t+1} = E[id_t] with probability p, else E[y_{t+1}],  id_t ~ softmax(o_t)

    Each row and step decides for itself. Outside training this is teacher
    forcing, as it is with p = 0. `keras_seq.training.ScheduledSampling` does
    it to whole models, in two passes instead of T steps.

    Args:
        probability: Float p in [0, 1], to start with. The decoder keeps it as
            its weight `probability`, which a schedule may assign.
        seed: Optional integer, makes the draws reproducible.

    Raises:
        ValueError: If `probability` is outside [0, 1].

    Example:

    >>> ScheduledEmbeddingSampler(0.25)
    ScheduledEmbeddingSampler(probability=0.25, seed=None)

    Reference:
        Bengio et al., "Scheduled Sampling for Sequence Prediction with
        Recurrent Neural Networks", 2015, https://arxiv.org/abs/1506.03099
    """

    probability: float
    seed: int | None = None

    def __post_init__(self):
        check_probability(self.probability)

    def ids(self, outputs, uniform):
        return draw(outputs, uniform)

    def feedback(self, embedding, width):
        """A function of a step's outputs `(B, V)` and ids to what the next may read, `(B, D)`."""
        return lambda outputs, ids: embed(embedding, ids)


@keras.saving.register_keras_serializable(package="keras_seq")
@dataclasses.dataclass(frozen=True)
class ScheduledOutputSampler(Sampler):
    """Some steps of training read what the step before gave, undrawn.

        x_{t+1} = softmax(o_t) E with probability p, else E[y_{t+1}]   of words
        x_{t+1} = o_t          with probability p, else y_{t+1}        of vectors

    For sequences of vectors, which have nothing to draw from; and of words
    where the gradient should go through what is fed back, which it cannot
    through a draw. Outside training this is teacher forcing, as it is with
    p = 0.

    Args:
        probability: Float p in [0, 1], to start with. The decoder keeps it as
            its weight `probability`, which a schedule may assign.
        seed: Optional integer, makes the choices reproducible.

    Raises:
        ValueError: If `probability` is outside [0, 1].

    Example:

    >>> ScheduledOutputSampler(0.25)
    ScheduledOutputSampler(probability=0.25, seed=None)

    Reference:
        Bengio et al., 2015, https://arxiv.org/abs/1506.03099; of words:
        Goyal, Dyer and Berg-Kirkpatrick, "Differentiable Scheduled Sampling
        for Credit Assignment", 2017, section 3,
        https://arxiv.org/abs/1704.06970
    """

    probability: float
    seed: int | None = None

    def __post_init__(self):
        check_probability(self.probability)

    def feedback(self, embedding, width):
        """A function of a step's outputs `(B, V)` and ids to what the next may read, `(B, D)`."""
        if embedding is None:
            return lambda outputs, ids: outputs
        table = embed(embedding, ops.arange(width))  # (V, D)
        return lambda outputs, ids: ops.matmul(
            ops.cast(ops.softmax(outputs, axis=-1), table.dtype), table
        )


@keras.saving.register_keras_serializable(package="keras_seq")
@dataclasses.dataclass(frozen=True)
class GreedySampler(Sampler):
    """Every step reads the likeliest word of the step before, until the end.

        id_t = argmax o_t,  x_{t+1} = E[id_t],  x_1 = E[start]

    `keras_seq.search.beam_search` finds better targets than this.

    Args:
        start: Integer, the id that the first step reads.
        end: Integer, the id after which a row is done.

    Example:

    >>> GreedySampler(start=2, end=3)
    GreedySampler(start=2, end=3)
    """

    start: int
    end: int


@keras.saving.register_keras_serializable(package="keras_seq")
@dataclasses.dataclass(frozen=True)
class CategoricalSampler(Sampler):
    """Every step reads a word drawn at the step before, until the end.

        id_t ~ softmax(o_t / temperature),  x_{t+1} = E[id_t],  x_1 = E[start]

    Args:
        start: Integer, the id that the first step reads.
        end: Integer, the id after which a row is done.
        temperature: Float above 0. Below 1 the likely words get likelier.
        seed: Optional integer, makes the draws reproducible.

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

    def __post_init__(self):
        if not self.temperature > 0:
            raise ValueError(
                f"`temperature` must be above 0, received {self.temperature!r}: "
                "for the likeliest words take `GreedySampler`."
            )

    def ids(self, outputs, uniform):
        return draw(outputs / self.temperature, uniform)


def embed(embedding, ids):
    """Vectors `(B, D)` of ids `(B,)`, by a layer that takes sequences of them."""
    return ops.squeeze(embedding(ops.expand_dims(ids, 1)), 1)


def likeliest(logits):
    """Ids `(...)`, int32, of logits `(..., V)`."""
    return ops.cast(ops.argmax(logits, axis=-1), "int32")


def draw(logits, uniform):
    """Ids drawn from softmax(logits), one for each uniform number.

    By the inverse of the cumulated probabilities, since a generator cannot
    be asked inside a loop.

    Args:
        logits: Float tensor `(..., V)`.
        uniform: Float tensor `(...)`, multiples of 2^-23 in [0, 1).

    Returns:
        Int32 tensor `(...)`.
    """
    cumulated = ops.cumsum(ops.softmax(logits, axis=-1), axis=-1)
    # The largest number, 1 - 2^-23, times the sum is below the sum in float32 too, so that some
    # word is always passed, and never one without weight.
    threshold = ops.cast(uniform, cumulated.dtype)[..., None] * cumulated[..., -1:]
    return likeliest(ops.cast(cumulated > threshold, "int32"))


def check_probability(probability):
    """Raises ValueError unless `probability` is in [0, 1]."""
    if not 0 <= probability <= 1:
        raise ValueError(f"`probability` must be in [0, 1], received {probability!r}.")
