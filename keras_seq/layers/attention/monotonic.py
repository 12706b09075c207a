"""Monotonic attention: where a reader who never goes back comes to look."""

from abc import abstractmethod

import keras
from keras import ops

from keras_seq.layers.internal.attention_scores import check_call
from keras_seq.layers.internal.precision import at_least_float32
from keras_seq.layers.internal.scaled_dot_product import zero_padding
from keras_seq.layers.internal.step_loop import run_steps

# Shape letters: B batch, T target steps, S source steps.

MODES = ("parallel", "recursive", "hard")


def monotonic_attention(probabilities, previous, mode):
    """Attention weights of a reader who goes from left to right (Raffel et al., 2017).

    The reader starts where it looked last, k with probability previous[k],
    and at each place j stays with probability p[j], else goes on to the next:

        a[j] = p[j] * sum over k <= j of previous[k] * product over k <= l < j of (1 - p[l])
             = p[j] * q[j],  q[j] = (1 - p[j - 1]) * q[j - 1] + previous[j]

    Whoever stays nowhere falls off the end: the weights sum to 1 at most.

    Shapes: B batch, S source steps; other axes may stand between them.

    Args:
        probabilities: Tensor `(B, ..., S)`, p in [0, 1].
        previous: Tensor `(B, ..., S)`, the weights of the step before; before
            the first step 1 at place 0 and 0 elsewhere.
        mode: "recursive" goes through the places of the source one by one.
            "parallel" joins ever longer pieces of the same recurrence, in
            log2(S) operations over all places: the same weights, sooner. The
            paper's closed form by cumulative products divides by numbers that
            underflow where probabilities are near 1, and is not used. "hard"
            takes the first place that stays: `probabilities` must then be 0
            or 1 and `previous` 1 at one place at most. It has no gradient by
            p.

    Returns:
        Tensor `(B, ..., S)` in the dtype of `probabilities`.

    Raises:
        ValueError: If `mode` is none of the three, or the shapes differ.

    Example:

    >>> weights = monotonic_attention(
    ...     keras.ops.array([[0.5, 0.5, 1.0]]), keras.ops.array([[1.0, 0.0, 0.0]]), "parallel")
    >>> keras.ops.convert_to_numpy(weights).tolist()
    [[0.5, 0.25, 0.25]]

    Reference:
        Raffel, Luong, Liu, Weiss and Eck, "Online and Linear-Time Attention
        by Enforcing Monotonic Alignments", ICML 2017, sections 2.2 to 2.4,
        https://arxiv.org/abs/1704.00784
    """
    check_mode(mode)
    probabilities = ops.convert_to_tensor(probabilities)
    previous = ops.convert_to_tensor(previous)
    shapes = tuple(probabilities.shape), tuple(previous.shape)
    if len(shapes[0]) != len(shapes[1]) or any(
        None not in sizes and len(set(sizes)) > 1 for sizes in zip(*shapes, strict=True)
    ):
        raise ValueError(
            "`probabilities` and `previous` must have one shape (batch, ..., source steps), "
            f"received {shapes[0]} and {shapes[1]}: a weight for each probability."
        )
    dtype = probabilities.dtype
    chances = at_least_float32(probabilities)
    previous = ops.cast(previous, chances.dtype)
    if mode == "hard":
        # The chances at or behind the place of the step before, and of these the first.
        chances = chances * ops.cumsum(previous, axis=-1)
        before = ops.cumsum(chances, axis=-1) - chances
        return ops.cast(ops.where(before < 0.5, chances, 0.0), dtype)
    stay = ops.zeros_like(chances[..., :1])  # nothing comes from before the beginning
    passed = ops.concatenate([stay, 1.0 - chances[..., :-1]], axis=-1)
    accumulate = _in_parallel if mode == "parallel" else _one_by_one
    return ops.cast(chances * accumulate(passed, previous), dtype)


def check_mode(mode):
    """Raises ValueError unless there is such a mode."""
    if mode not in MODES:
        raise ValueError(f"`mode` must be one of {', '.join(MODES)}, received {mode!r}.")


def _in_parallel(decay, added):
    """q[j] = decay[j] * q[j - 1] + added[j] along the last axis, where decay[0] is 0.

    What is known of pieces of `length` places makes pieces of twice as many. At the beginning a
    piece reaches around to the end, but has the decay of place 0 in it and so multiplies by 0.
    """
    steps = decay.shape[-1]

    def double(length, decay, added):
        joined = added + decay * ops.roll(added, length, axis=-1)
        return length * 2, decay * ops.roll(decay, length, axis=-1), joined

    piece = (1, decay, added)
    if not isinstance(steps, int):
        # TensorFlow has gradients through a loop of unknown length. JAX, which has none, knows all
        # sizes but where it only finds out the shapes of a functional model.
        steps = ops.shape(decay)[-1]
        piece = (ops.convert_to_tensor(1, dtype="int32"), decay, added)
        # A bound, which XLA asks for: no axis has more places than 2 to that power.
        return ops.while_loop(
            lambda length, *_: length < steps, double, piece, maximum_iterations=31
        )[2]
    while piece[0] < steps:
        piece = double(*piece)
    return piece[2]


def _one_by_one(decay, added):
    """The same in a loop over the last axis."""
    shape = ops.shape(decay)
    pairs = ops.stack([decay, added], axis=-1)  # (B, ..., S, 2)
    pairs = ops.reshape(pairs, (-1, shape[-1], 2))

    def step(inputs, states):
        decay, added = inputs[:, :1], inputs[:, 1:]
        reached = decay * states[0] + added
        return reached, [reached]

    nothing = ops.zeros_like(pairs[:, 0, :1])
    policy = keras.DTypePolicy(keras.backend.standardize_dtype(decay.dtype))
    reached, _ = run_steps(step, pairs, [nothing], policy)
    return ops.reshape(reached, shape)


class MonotonicAttention(keras.layers.Layer):
    """Abstract monotonic attention: all but the scores, which a subclass computes.

    Args:
        sigmoid_noise: Standard deviation of the noise on the scores while
            training.
        score_bias_init: What the learned bias of the scores is at first.
        mode: As of `monotonic_attention`.
        seed: Optional integer, makes the noise reproducible.
    """

    def __init__(self, sigmoid_noise, score_bias_init, mode, seed, **kwargs):
        super().__init__(**kwargs)
        if not sigmoid_noise >= 0:
            raise ValueError(
                f"`sigmoid_noise` must be a standard deviation of 0 or more, "
                f"received {sigmoid_noise!r}."
            )
        check_mode(mode)
        self.sigmoid_noise = sigmoid_noise
        self.score_bias_init = score_bias_init
        self.mode = mode
        self.seed = seed
        self.supports_masking = True
        self.seed_generator = keras.random.SeedGenerator(seed) if sigmoid_noise else None

    @abstractmethod
    def _build_scores(self, query_shape, value_shape):
        """Makes the weights of the scores."""

    @abstractmethod
    def _scores(self, query, key):
        """e `(B, T, S)`, without the bias."""

    @abstractmethod
    def project(self, value, value_mask=None):
        """What `attend` needs of a source, computed once."""

    def build(self, query_shape, value_shape):
        self._build_scores(query_shape, value_shape)
        self.features = query_shape[-1], value_shape[-1]
        self.sigmoid_bias = self.add_weight(
            name="sigmoid_bias",
            shape=(),
            initializer=keras.initializers.Constant(self.score_bias_init),
        )

    def call(self, query, value, query_mask=None, value_mask=None, training=None):
        check_call(self.features, query, value, query_mask, value_mask)
        query = zero_padding(query, query_mask)
        context, weights, _ = self.attend_steps(
            query,
            **self.project(value, value_mask),
            state=self.initial_state(value),
            value_mask=value_mask,
            noise=self.draw_noise(ops.shape(query)[1], value, training),
        )
        return context, weights

    def initial_state(self, value):
        """Where a reader of `value` `(B, S, D_v)` starts, `(B, S)`: 1 at place 0, else 0."""
        # By counting, as S has no number in a functional model.
        places = ops.cumsum(ops.ones_like(value[..., 0], dtype="int32"), axis=1)
        return ops.cast(ops.equal(places, 1), self.compute_dtype)

    def attend(self, query, key, value, state, value_mask=None, noise=None):
        """One step, of one query or of several hypotheses. Draws no random numbers.

        Args:
            query: Float tensor `(B, K, D_q)`, hypotheses side by side.
            key: Tensor `(B, S, ...)` from `project`.
            value: Tensor `(B, S, D_v)` from `project`.
            state: Tensor `(B, K, S)`, the weights of the step before.
            value_mask: Optional bool tensor `(B, S)`.
            noise: Optional tensor `(B, K, S)` from `draw_noise`.

        Returns:
            context: Tensor `(B, K, D_v)`.
            weights: Tensor `(B, K, S)`.
            state: The new state, which is the weights.
        """
        chances = self._chances(query, key, value_mask, noise)
        weights = self._weights(chances, state)
        return ops.matmul(weights, value), weights, weights

    def attend_steps(self, query, key, value, state, value_mask=None, noise=None):
        """Steps one after the other.

        Args:
            query: Float tensor `(B, T, D_q)`.
            state: Tensor `(B, S)`, the weights before the first step.
            key, value, value_mask, noise: As in `attend`, T in the place of K.

        Returns:
            context: Tensor `(B, T, D_v)`.
            weights: Tensor `(B, T, S)`.
            state: Tensor `(B, S)`, the weights of the last step.
        """
        chances = self._chances(query, key, value_mask, noise)

        def step(chances, state):
            weights = self._weights(chances, state)
            return weights, weights

        weights, state = run_steps(step, chances, state, self.dtype_policy)
        return ops.matmul(weights, value), weights, state

    def draw_noise(self, steps, value, training=None):
        """The noise of `steps` rows of scores, for `attend`.

        Args:
            steps: Integer or scalar tensor T.
            value: Tensor `(B, S, D_v)`, for its shape.
            training: Whether there is noise.

        Returns:
            Tensor `(B, T, S)`, or None where nothing is added.
        """
        if not training or not self.sigmoid_noise:
            return None
        shape = (ops.shape(value)[0], steps, ops.shape(value)[1])
        return keras.random.normal(
            shape, stddev=self.sigmoid_noise, dtype=self.compute_dtype, seed=self.seed_generator
        )

    def _chances(self, query, key, value_mask, noise):
        """The probabilities `(B, T, S)` to stay, in float32 at least; 0 on padding."""
        scores = at_least_float32(self._scores(query, key))
        scores = scores + ops.cast(self.sigmoid_bias, scores.dtype)
        if noise is not None:
            scores = scores + ops.cast(noise, scores.dtype)
        if self.mode == "hard":
            chances = ops.cast(scores > 0, scores.dtype)
        else:
            chances = ops.sigmoid(scores)
        if value_mask is None:
            return chances
        return ops.where(ops.expand_dims(value_mask, 1), chances, 0.0)

    def _weights(self, chances, state):
        return ops.cast(monotonic_attention(chances, state, self.mode), self.compute_dtype)

    def compute_mask(self, query, mask=None):
        return None if mask is None else (mask, mask)

    def get_config(self):
        return {
            **super().get_config(),
            "sigmoid_noise": self.sigmoid_noise,
            "score_bias_init": self.score_bias_init,
            "mode": self.mode,
            "seed": self.seed,
        }
