"""Output layer of a decoder that sums over all monotonic alignments with the source."""

from typing import Any

import keras
from keras import ops

from keras_seq.layers.internal.checks import (
    STEPS,
    check_mask,
    check_minimum,
    check_positive,
    check_same_batch,
    check_tensor,
    known_features,
)
from keras_seq.layers.internal.scaled_dot_product import zero_padding
from keras_seq.layers.internal.step_loop import run_steps
from keras_seq.layers.internal.weight_arguments import WeightArguments

# Stands for log 0: finite, so that differences of two of them are no NaN.
_LOG_ZERO = -1e9


@keras.saving.register_keras_serializable(package="keras_seq")
class HardMonotonicAttention(WeightArguments):
    """Exact likelihood of a target whose tokens each come from one source step, left to right.

        P(y_t | y_<t) = sum over j of P(a_t = j | y_<t) P(y_t | a_t = j, s_t)
        P(y_t | a_t = j, s_t) = softmax(C tanh(A s_t + B value_j + b) + c)

    s_t is the state of a decoder that has read y_<t. The aligned steps a_t are a Markov chain that
    begins before the first move at step 0 and never moves left:

        window = 0:  P(a_t = j | a_{t-1} = k) = exp(e_j) / sum over i >= k of exp(e_i)
        window > 0:  P(a_t = k + m | a_{t-1} = k) = softmax(M [s_t; value_k] + d)_m

    Here e_j = s_t W value_j, j >= k and m <= window.

    All alignments are summed by dynamic programming, which needs memory for T x S x (S + V)
    numbers: use the layer for short sequences of few symbols, such as inflection or pronunciation.
    Unlike `BahdanauMonotonicAttention` the source is not averaged, so training optimizes the
    likelihood that search uses.

    Shapes: B batch, T target steps, K hypotheses, S source steps, U units of the decoder, D value
    features, V vocabulary.

    Args:
        vocabulary_size: Positive integer V.
        units: Positive integer, the rows of A and B.
        window: Non-negative integer, the largest move, which depends on the last source step; 0
            for moves of any length, which depend on where they lead.
        use_bias: Whether to add b, c and d. Defaults to True.
        kernel_initializer, kernel_regularizer: Of the matrices. Default to "glorot_uniform" and
            none.
        bias_initializer, bias_regularizer: Of b, c and d. Default to "zeros" and none.

    Call arguments:
        inputs: Float tensor s `(B, T, U)`.
        value: Float tensor `(B, S, D)`, encoder outputs.
        target: Integer ids `(B, T)`, the start token and the target without its last token, as the
            decoder read them.
        value_mask: Optional bool tensor `(B, S)`, True at real steps; the first one must be real.
        return_weights: Whether to return P(a_t | y_<t) as well.

    Returns:
        Log-probabilities `(B, T, V)` in float32, and the weights `(B, T, S)` if requested.

    Masks: the output has the mask of `inputs`.

    Raises:
        ValueError: If a size is not positive, `window` is negative, or an argument of the call has
            the wrong shape or dtype.

    Example:

    >>> layer = HardMonotonicAttention(vocabulary_size=7, units=4)
    >>> log_probabilities = layer(keras.ops.ones((2, 3, 5)), keras.ops.ones((2, 4, 6)),
    ...     keras.ops.array([[2, 4, 5], [2, 6, 4]]))
    >>> tuple(log_probabilities.shape)
    (2, 3, 7)

    Reference:
        Wu and Cotterell, "Exact Hard Monotonic Attention for Character-Level Transduction", 2019,
        https://arxiv.org/abs/1905.06319
    """

    def __init__(self, vocabulary_size: int, units: int, window: int = 0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_positive(vocabulary_size=vocabulary_size, units=units)
        check_minimum(0, window=window)
        self.vocabulary_size = vocabulary_size
        self.units = units
        self.window = window

    def build(self, inputs_shape: Any, value_shape: Any, **shapes: Any) -> None:
        state, value = (
            known_features(name, shape, STEPS)
            for name, shape in (("inputs", inputs_shape), ("value", value_shape))
        )
        self._add_kernel("state_kernel", (state, self.units))
        self._add_kernel("value_kernel", (value, self.units))
        self._add_bias("bias", (self.units,))
        self._add_kernel("output_kernel", (self.units, self.vocabulary_size))
        self._add_bias("output_bias", (self.vocabulary_size,))
        if self.window:
            self._add_kernel("state_move_kernel", (state, self.window + 1))
            self._add_kernel("value_move_kernel", (value, self.window + 1))
            self._add_bias("move_bias", (self.window + 1,))
        else:
            self._add_kernel("score_kernel", (value, state))

    def call(
        self,
        inputs: Any,
        value: Any,
        target: Any,
        value_mask: Any = None,
        return_weights: bool = False,
    ) -> Any:
        check_tensor("inputs", inputs, self.state_kernel.shape[0], STEPS)
        check_tensor("value", value, self.value_kernel.shape[0], STEPS)
        check_same_batch("inputs", inputs, "value", value)
        check_mask("value_mask", value_mask, value)
        projected = self.project(value, value_mask)
        emissions = self._emissions(inputs, projected["emission"])
        moves = self._moves(inputs, projected["move"], value_mask)
        # The last token of the target is not known, and no later step needs it.
        known = ops.cast(target, "int32")[:, 1:, None, None]
        chosen = ops.take_along_axis(emissions[:, :-1], known, axis=3)[..., 0]  # (B, T - 1, S)
        chosen = ops.pad(chosen, [[0, 0], [0, 1], [0, 0]])
        prior = self._forward(moves, chosen)
        outputs = ops.logsumexp(prior[..., None] + emissions, axis=2)
        return (outputs, ops.exp(prior)) if return_weights else outputs

    def project(self, value: Any, value_mask: Any = None) -> dict[str, Any]:
        """Returns what `step` reads of the source: `emission` and `move`, `(B, S, ...)`."""
        if value_mask is not None:
            value = zero_padding(value, value_mask)
        move = self.value_move_kernel if self.window else self.score_kernel
        return {
            "emission": _add(ops.matmul(value, self.value_kernel), self.bias),
            "move": ops.matmul(value, move),
        }

    def initial_state(self, value: Any, beam_size: int = 1) -> Any:
        """Returns the state before the first step, float32 `(B, K, S, V)`.

        It is log P(a_t = j, y_t = v | y_<t) of the last step t, for all j and v.
        """
        positions = ops.cumsum(ops.ones_like(value[..., 0], dtype="int32"), axis=1)
        first = ops.where(ops.equal(positions, 1), 0.0, _LOG_ZERO)  # (B, S)
        return ops.tile(
            ops.cast(first, "float32")[:, None, :, None], (1, beam_size, 1, self.vocabulary_size)
        )

    def step(
        self, inputs: Any, token: Any, state: Any, emission: Any, move: Any, value_mask: Any = None
    ) -> tuple[Any, Any, Any]:
        """Computes one step of K hypotheses.

        `inputs` is `(B, K, U)`, `token` `(B, K)` the token that the decoder read at this step, and
        `emission` and `move` are from `project`. Returns log-probabilities `(B, K, V)`, the new
        state, and the weights `(B, K, S)`.
        """
        last = ops.take_along_axis(state, ops.cast(token, "int32")[:, :, None, None], axis=3)
        last = last[..., 0]  # (B, K, S)
        last = last - ops.logsumexp(last, axis=-1, keepdims=True)
        prior = _advance(last, self._moves(inputs, move, value_mask))
        state = prior[..., None] + self._emissions(inputs, emission)
        return ops.logsumexp(state, axis=2), state, ops.exp(prior)

    def _emissions(self, inputs: Any, emission: Any) -> Any:
        """Returns log P(y_t = v | a_t = j, s_t), float32 `(B, T, S, V)`."""
        state = ops.matmul(inputs, self.state_kernel)
        hidden = ops.tanh(state[:, :, None] + emission[:, None])
        logits = _add(ops.matmul(hidden, self.output_kernel), self.output_bias)
        return ops.log_softmax(ops.cast(logits, "float32"), axis=-1)

    def _moves(self, inputs: Any, move: Any, value_mask: Any) -> Any:
        """Returns log P(a_t = j | a_{t-1} = k), float32 `(B, T, S, S)`, with k before j."""
        positions = ops.cumsum(ops.ones_like(move[..., 0], dtype="int32"), axis=1)
        distance = positions[:, None] - positions[:, :, None]  # (B, S, S)
        allowed = distance >= 0
        if value_mask is not None:
            allowed = ops.logical_and(allowed, ops.cast(value_mask, "bool")[:, None])
        if self.window:
            allowed = ops.logical_and(allowed, distance <= self.window)
            state = _add(ops.matmul(inputs, self.state_move_kernel), self.move_bias)
            scores = ops.cast(state[:, :, None] + move[:, None], "float32")  # (B, T, S, W + 1)
            # Other distances are excluded below.
            distance = ops.where(allowed, distance, 0)
            of_distance = ops.one_hot(distance, self.window + 1, dtype="float32")
            scores = ops.einsum("btkw,bkjw->btkj", scores, of_distance)
        else:
            scores = ops.matmul(inputs, ops.transpose(move, (0, 2, 1)))  # (B, T, S)
            scores = ops.cast(scores, "float32")[:, :, None]
        scores = ops.where(allowed[:, None], scores, _LOG_ZERO)
        return ops.log_softmax(scores, axis=-1)

    def _forward(self, moves: Any, chosen: Any) -> Any:
        """Returns log P(a_t = j | y_<t), `(B, T, S)`.

        `chosen` `(B, T, S)` is the log-probability of the token of each step.
        """

        def step(inputs: Any, states: Any) -> tuple[Any, Any]:
            prior = _advance(states[0], inputs[:, :-1])
            last = prior + inputs[:, -1]
            return prior, [last - ops.logsumexp(last, axis=-1, keepdims=True)]

        first = self.initial_state(moves[:, 0])[:, 0, :, 0]
        inputs = ops.concatenate([moves, chosen[:, :, None]], axis=2)  # (B, T, S + 1, S)
        prior, _ = run_steps(step, inputs, [first], keras.DTypePolicy("float32"))
        return prior

    def compute_output_spec(
        self,
        inputs: Any,
        value: Any,
        target: Any,
        value_mask: Any = None,
        return_weights: bool = False,
    ) -> Any:
        steps = inputs.shape[:2]
        outputs = keras.KerasTensor((*steps, self.vocabulary_size), dtype="float32")
        weights = keras.KerasTensor((*steps, value.shape[1]), dtype="float32")
        return (outputs, weights) if return_weights else outputs


def _add(tensor: Any, bias: Any) -> Any:
    return tensor if bias is None else tensor + bias


def _advance(last: Any, moves: Any) -> Any:
    """Returns log P(a_t = j) `(..., S)` from log P(a_{t-1} = k) and the moves `(..., S, S)`."""
    return ops.logsumexp(last[..., None] + moves, axis=-2)
