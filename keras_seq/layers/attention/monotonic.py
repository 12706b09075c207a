"""Monotonic attention: weights that move along the source and never go back."""

from abc import abstractmethod
from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.layers.internal.checks import check_choice, same_shape
from keras_seq.layers.internal.precision import at_least_float32
from keras_seq.layers.internal.single_head_attention import RecurrentAttention, SingleHeadAttention
from keras_seq.layers.internal.step_loop import run_steps

MODES = ("parallel", "recursive", "hard")


def monotonic_attention(probabilities: Any, previous: Any, mode: str) -> Any:
    """Attention weights that move from left to right (Raffel et al., 2017).

    Attention starts at the position of the previous step, k with probability previous[k]. At each
    position j it stops with probability p[j], and otherwise moves on to j + 1:

        a[j] = p[j] * sum over k <= j of previous[k] * product over k <= l < j of (1 - p[l])
             = p[j] * q[j],  q[j] = (1 - p[j - 1]) * q[j - 1] + previous[j]

    Attention may run past the last position without a stop, so the weights sum to at most 1.

    Shapes: B batch, S source steps. Further axes may stand between the two.

    Args:
        probabilities: Tensor `(B, ..., S)`, p in [0, 1].
        previous: Tensor `(B, ..., S)`, the weights of the previous step. For the first step, 1 at
            position 0 and 0 elsewhere.
        mode: "recursive" loops over the source positions. "parallel" gives the same weights faster:
            it composes the recurrence over segments of doubling length, in log2(S) operations on
            the whole source. (The closed form of the paper divides by cumulative products, which
            underflow if probabilities are near 1.) "hard" stops at the first position with p = 1:
            `probabilities` must be 0 or 1, and `previous` 1 at no more than one position. "hard"
            has no gradient with respect to p.

    Returns:
        Tensor `(B, ..., S)` in the dtype of `probabilities`.

    Raises:
        ValueError: If `mode` is unknown or the shapes differ.

    Example:

    >>> weights = monotonic_attention(
    ...     keras.ops.array([[0.5, 0.5, 1.0]]), keras.ops.array([[1.0, 0.0, 0.0]]), "parallel")
    >>> keras.ops.convert_to_numpy(weights).tolist()
    [[0.5, 0.25, 0.25]]

    Reference:
        Raffel, Luong, Liu, Weiss and Eck, "Online and Linear-Time Attention by Enforcing Monotonic
        Alignments", ICML 2017, sections 2.2 to 2.4, https://arxiv.org/abs/1704.00784
    """
    check_choice("mode", mode, MODES)
    probabilities = ops.convert_to_tensor(probabilities)
    previous = ops.convert_to_tensor(previous)
    if not same_shape(probabilities.shape, previous.shape):
        raise ValueError(
            "`probabilities` and `previous` must have one shape (batch, ..., source steps), "
            f"received {tuple(probabilities.shape)} and {tuple(previous.shape)}: "
            "a weight for each probability."
        )
    dtype = probabilities.dtype
    stop = at_least_float32(probabilities)
    previous = ops.cast(previous, stop.dtype)
    if mode == "hard":
        # Attention moves to the first stop at or after the previous position.
        stop = stop * ops.cumsum(previous, axis=-1)
        stops_before = ops.cumsum(stop, axis=-1) - stop
        return ops.cast(ops.where(stops_before < 0.5, stop, 0.0), dtype)
    zero = ops.zeros_like(stop[..., :1])  # the first position has no predecessor
    passed = ops.concatenate([zero, 1.0 - stop[..., :-1]], axis=-1)
    accumulate = _accumulate_in_parallel if mode == "parallel" else _accumulate_in_loop
    return ops.cast(stop * accumulate(passed, previous), dtype)


def _accumulate_in_parallel(decay: Any, added: Any) -> Any:
    """q[j] = decay[j] * q[j - 1] + added[j] along the last axis, for decay[0] = 0.

    Two adjacent segments of the recurrence make one of twice the length. A segment that would
    begin before position 0 wraps around to the end, where decay[0] = 0 cancels it.
    """
    steps = decay.shape[-1]

    def double(length: Any, decay: Any, added: Any) -> tuple[Any, Any, Any]:
        joined = added + decay * ops.roll(added, length, axis=-1)
        return length * 2, decay * ops.roll(decay, length, axis=-1), joined

    segments = (1, decay, added)
    if not isinstance(steps, int):
        # TensorFlow differentiates loops of unknown length. JAX does not, but on JAX the length is
        # only unknown while Keras infers the shapes of a functional model.
        steps = backend.shape(decay)[-1]
        segments = (ops.convert_to_tensor(1, dtype="int32"), decay, added)
        # XLA requires a bound: no axis is longer than 2^31.
        return ops.while_loop(
            lambda length, *_: length < steps, double, segments, maximum_iterations=31
        )[2]
    while segments[0] < steps:
        segments = double(*segments)
    return segments[2]


def _accumulate_in_loop(decay: Any, added: Any) -> Any:
    """Computes `_accumulate_in_parallel` as a loop over the last axis."""
    shape = backend.shape(decay)
    pairs = ops.stack([decay, added], axis=-1)  # (B, ..., S, 2)
    pairs = ops.reshape(pairs, (-1, shape[-1], 2))

    def step(inputs: Any, states: Any) -> tuple[Any, Any]:
        decay, added = inputs[:, :1], inputs[:, 1:]
        sums = decay * states[0] + added
        return sums, [sums]

    zeros = ops.zeros_like(pairs[:, 0, :1])
    policy = keras.DTypePolicy(keras.backend.standardize_dtype(decay.dtype))
    sums, _ = run_steps(step, pairs, [zeros], policy)
    return ops.reshape(sums, shape)


class MonotonicAttention(RecurrentAttention):
    """Abstract monotonic attention; a subclass defines `_scorer`."""

    def __init__(
        self,
        sigmoid_noise: float = 0.0,
        score_bias_init: float = 0.0,
        mode: str = "parallel",
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if not sigmoid_noise >= 0:
            raise ValueError(
                f"`sigmoid_noise` must be a standard deviation of 0 or more, "
                f"received {sigmoid_noise!r}."
            )
        check_choice("mode", mode, MODES)
        self.sigmoid_noise = sigmoid_noise
        self.score_bias_init = score_bias_init
        self.mode = mode
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed) if sigmoid_noise else None

    @abstractmethod
    def _scorer(self) -> SingleHeadAttention:
        """The attention that computes the scores, apart from their bias."""

    def build(self, query_shape: Any, value_shape: Any) -> None:
        super().build(query_shape, value_shape)
        self._scorer().build(query_shape, value_shape)
        self._add_scalar("sigmoid_bias", self.score_bias_init)

    def _key(self, value: Any) -> Any:
        return self._scorer()._key(value)

    def scores(self, query: Any, key: Any) -> Any:
        return self._scorer().scores(query, key)

    def initial_state(self, value: Any) -> Any:
        # 1 at step 0, else 0. A cumulative sum works if S is unknown, as in a functional model.
        positions = ops.cumsum(ops.ones_like(value[..., 0], dtype="int32"), axis=1)
        return ops.cast(ops.equal(positions, 1), self.compute_dtype)

    def draw_noise(self, steps: Any, value: Any, training: bool | None = None) -> Any:
        if not training or not self.sigmoid_noise:
            return None
        shape = (backend.shape(value)[0], steps, backend.shape(value)[1])
        return keras.random.normal(
            shape, stddev=self.sigmoid_noise, dtype=self.compute_dtype, seed=self.seed_generator
        )

    def _prepare(self, query: Any, key: Any, value_mask: Any, noise: Any) -> Any:
        """Returns the stop probabilities `(B, T, S)` in float32 or float64, 0 on padding."""
        scores = at_least_float32(self.scores(query, key))
        scores = scores + ops.cast(self.sigmoid_bias, scores.dtype)
        if noise is not None:
            scores = scores + ops.cast(noise, scores.dtype)
        hard = self.mode == "hard"
        stop = ops.cast(scores > 0, scores.dtype) if hard else ops.sigmoid(scores)
        return stop if value_mask is None else ops.where(ops.expand_dims(value_mask, 1), stop, 0.0)

    def _align(self, prepared: Any, key: Any, state: Any, value_mask: Any) -> tuple[Any, Any]:
        weights = monotonic_attention(prepared, state, self.mode)
        weights = ops.cast(weights, self.compute_dtype)
        return weights, weights
