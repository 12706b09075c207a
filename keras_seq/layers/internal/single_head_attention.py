"""Bases of the attentions with one head, and their scores."""

from abc import abstractmethod
from typing import Any

import keras
from keras import activations, ops

from keras_seq import backend
from keras_seq.layers.internal.adaptable_layer import AdaptableLayer
from keras_seq.layers.internal.checks import STEPS, check_call, check_rates, known_features
from keras_seq.layers.internal.precision import at_least_float32
from keras_seq.layers.internal.projection import Projection
from keras_seq.layers.internal.scaled_dot_product import NEG_INF, zero_padding
from keras_seq.layers.internal.step_loop import run_steps
from keras_seq.layers.internal.weight_arguments import KernelArguments, new_initializer

# Shape letters: B batch, K hypotheses, T target steps, S source steps, U units.


class SingleHeadAttention(AdaptableLayer, KernelArguments):
    """Abstract attention with one head; a subclass defines `build`, `scores` and `_key`.

    a[b, t] = softmax over the unmasked s of scores(query, key)[b, t]
    c[b, t] = sum over s of a[b, t, s] * value[b, s]
    """

    # Made by the subclasses that use them.
    projection: Any
    query_projection: Any
    value_projection: Any

    def build(self, query_shape: Any, value_shape: Any) -> None:
        self.features = (
            known_features("query", query_shape, STEPS),
            known_features("value", value_shape, STEPS),
        )

    def _projection(self, name: str) -> Projection:
        """Returns a new projection without bias."""
        return Projection(
            use_bias=False, **self.kernel_arguments(), dtype=self.dtype_policy, name=name
        )

    def _build_additive_projections(self, units: int) -> None:
        query_features, value_features = self.features
        self.query_projection.build_sizes(query_features, units)
        self.value_projection.build_sizes(value_features, units)

    def _add_score_vector(self, units: int) -> None:
        """Adds the vector of additive scores, initialized as a matrix of one column."""
        if self.kernel_initializer == "glorot_uniform":
            limit = (6 / (units + 1)) ** 0.5
            initializer = keras.initializers.RandomUniform(-limit, limit)
        else:
            of_matrix = new_initializer(self.kernel_initializer)

            def initializer(shape: Any, dtype: Any = None) -> Any:
                return of_matrix((*shape, 1), dtype=dtype)[:, 0]

        self._add_kernel("score_vector", (units,), initializer)

    def _add_scalar(self, name: str, initial: float) -> None:
        initializer = keras.initializers.Constant(initial)
        setattr(self, name, self.add_weight(name=name, shape=(), initializer=initializer))

    @abstractmethod
    def scores(self, query: Any, key: Any) -> Any:
        """Returns scores `(B, T, S)` of `query` `(B, T, D_q)` against the `key` of `project`."""

    @abstractmethod
    def _key(self, value: Any) -> Any:
        """Computes the part of the scores that depends only on the source `(B, S, D_v)`."""

    @abstractmethod
    def draw_noise(self, steps: Any, value: Any, training: bool | None = None) -> Any:
        """Draws the `noise` `(B, T, S)` of T decoding steps, or returns None.

        The noise is drawn before the loop, so that the loop does not carry the generator's state.
        """

    def call(
        self,
        query: Any,
        value: Any,
        query_mask: Any = None,
        value_mask: Any = None,
        training: bool | None = None,
    ) -> Any:
        check_call(self.features, query, value, query_mask, value_mask)
        query = zero_padding(query, query_mask)
        memory = {**self.project(value, value_mask), "value_mask": value_mask}
        noise = self.draw_noise(backend.shape(query)[1], value, training)
        if not has_state(self):
            return self.attend(query, **memory, noise=noise)
        state = self.initial_state(value)
        context, weights, _ = self.attend_steps(query, **memory, state=state, noise=noise)
        return context, weights

    def project(self, value: Any, value_mask: Any = None) -> dict[str, Any]:
        """Projects a source `(B, S, D_v)` for `attend`, once for all decoding steps.

        Returns a dict of `key` `(B, S, ...)`, and of `value` `(B, S, D_v)` with 0 on masked steps.
        """
        value = zero_padding(ops.cast(value, self.compute_dtype), value_mask)
        return {"key": self._key(value), "value": value}

    def attend(
        self, query: Any, key: Any, value: Any, value_mask: Any = None, noise: Any = None
    ) -> tuple[Any, Any]:
        """Attends with queries `(B, T, D_q)` to a projected source. Draws no random numbers.

        While decoding, T is the beam. `noise` is from `draw_noise`. Returns the context `(B, T,
        D_v)` and the weights `(B, T, S)`.
        """
        weights = masked_softmax(self.scores(query, key), value_mask)
        # Casts last, because a decoder returns the weights of each step as outputs.
        return self._read(ops.cast(weights, value.dtype), value, noise)

    def _read(self, weights: Any, value: Any, noise: Any) -> tuple[Any, Any]:
        """Returns the context `(B, T, D_v)` and the weights `(B, T, S)`."""
        return ops.matmul(weights, value), weights

    def compute_mask(self, query: Any, mask: Any = None) -> Any:
        return None if mask is None else (mask, mask)


class DroppingAttention(SingleHeadAttention):
    """Abstract attention whose noise is a dropout of the weights."""

    def __init__(self, dropout: float = 0.0, seed: int | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check_rates(dropout=dropout)
        self.dropout = dropout
        self.seed = seed
        self.dropout_layer = keras.layers.Dropout(dropout, seed=seed, dtype=self.dtype_policy)

    def draw_noise(self, steps: Any, value: Any, training: bool | None = None) -> Any:
        if not training or not self.dropout:
            return None
        shape = (backend.shape(value)[0], steps, backend.shape(value)[1])
        return self.dropout_layer(ops.ones(shape, dtype=value.dtype), training=training)

    def _read(self, weights: Any, value: Any, noise: Any) -> tuple[Any, Any]:
        if noise is not None:
            weights = weights * ops.cast(noise, weights.dtype)
        return super()._read(weights, value, noise)


class RecurrentAttention(SingleHeadAttention):
    """Abstract attention whose weights depend on the weights of the previous step.

    A subclass defines `initial_state`, `_prepare` and `_align`.
    """

    @abstractmethod
    def initial_state(self, value: Any) -> Any:
        """Returns the state `(B, S)` before the first step over `value` `(B, S, D_v)`."""

    @abstractmethod
    def _prepare(self, query: Any, key: Any, value_mask: Any, noise: Any) -> Any:
        """Computes a tensor `(B, T, ...)` for `_align` from the queries, outside the loop."""

    @abstractmethod
    def _align(self, prepared: Any, key: Any, state: Any, value_mask: Any) -> tuple[Any, Any]:
        """Returns the weights `(B, K, S)` and the new state `(B, K, S)` of one step."""

    def attend(  # type: ignore[override]
        self,
        query: Any,
        key: Any,
        value: Any,
        state: Any,
        value_mask: Any = None,
        noise: Any = None,
    ) -> tuple[Any, Any, Any]:
        """Runs a step of K hypotheses, with queries `(B, K, D_q)`. Draws no random numbers.

        `state` `(B, K, S)` is from `initial_state` or the previous step. Returns the context
        `(B, K, D_v)`, the weights `(B, K, S)` and the new state.
        """
        prepared = self._prepare(query, key, value_mask, noise)
        weights, state = self._align(prepared, key, state, value_mask)
        return *self._read(weights, value, noise), state

    def attend_steps(
        self,
        query: Any,
        key: Any,
        value: Any,
        state: Any,
        value_mask: Any = None,
        noise: Any = None,
    ) -> Any:
        """Runs T consecutive decoding steps of one hypothesis.

        The arguments are those of `attend`, with T instead of K and a state `(B, S)`. Returns the
        context `(B, T, D_v)`, the weights `(B, T, S)` and the state `(B, S)` after the last step.
        """

        def step(prepared: Any, state: Any) -> tuple[Any, Any]:
            prepared, state = ops.expand_dims(prepared, 1), ops.expand_dims(state, 1)
            weights, state = self._align(prepared, key, state, value_mask)
            return ops.squeeze(weights, 1), ops.squeeze(state, 1)

        prepared = self._prepare(query, key, value_mask, noise)
        weights, state = run_steps(step, prepared, state, self.dtype_policy)
        return *self._read(weights, value, noise), state


def has_state(attention: keras.layers.Layer) -> bool:
    """Returns True if an attention layer has a state that it updates at each step."""
    return hasattr(attention, "initial_state")


def tanh(inputs: Any) -> Any:
    """Computes tanh in the dtype of its inputs. On JAX, Keras returns float32 for float64."""
    return ops.cast(ops.tanh(inputs), inputs.dtype)


def additive_scores(query: Any, key: Any, vector: Any, pair: Any = None) -> Any:
    """vector . tanh(query + key + pair) for each query step and value step: `(B, T, S)`.

    `query` `(B, T, U)` and `key` `(B, S, U)` are projected; `pair` is `(B, T, S, U)`.
    """
    # Not by indexing with None, because its gradient copies the tensor at each step of a loop.
    hidden = ops.expand_dims(query, 2) + ops.expand_dims(key, 1)  # (B, T, S, U)
    if pair is not None:
        hidden = hidden + pair
    return ops.tensordot(tanh(hidden), vector, axes=1)


def masked_softmax(scores: Any, mask: Any = None) -> Any:
    """Softmax of `(B, T, S)` over the real steps, computed in float32 or float64.

    The result is exactly 0 on steps where `mask` `(B, S)` is False, and all 0 if no step is real.
    """
    scores = at_least_float32(scores)
    if mask is None:
        return activations.softmax(scores, axis=-1)
    mask = ops.expand_dims(mask, 1)  # (B, 1, S)
    weights = activations.softmax(ops.where(mask, scores, NEG_INF), axis=-1)
    return ops.where(mask, weights, 0.0)
