"""Bases of the attentions with one head."""

from abc import abstractmethod
from typing import Any

import keras
from keras import ops

from keras_seq.layers.internal.attention_scores import masked_softmax
from keras_seq.layers.internal.checks import check_call, check_dropout, check_features
from keras_seq.layers.internal.configured_layer import ConfiguredLayer
from keras_seq.layers.internal.scaled_dot_product import zero_padding
from keras_seq.layers.internal.step_loop import run_steps

# Shape letters: B batch, K hypotheses, T target steps, S source steps, U units.


class SingleHeadAttention(ConfiguredLayer):
    """Abstract attention with one head; a subclass defines `build`, `scores` and `_key`.

    a[b, t] = softmax over the unmasked s of scores(query, key)[b, t]
    c[b, t] = sum over s of a[b, t, s] * value[b, s]
    """

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True

    def _add_dropout(self, dropout: float, seed: int | None) -> None:
        check_dropout(dropout)
        self.dropout = dropout
        self.seed = seed
        self.dropout_layer = keras.layers.Dropout(dropout, seed=seed, dtype=self.dtype_policy)

    def build(self, query_shape: Any, value_shape: Any) -> None:
        self.features = check_features(query_shape, value_shape)

    def _add_additive_weights(self, units: int) -> None:
        """Adds the projections and the vector of additive scores."""
        query_features, value_features = self.features
        self._add_variable("query_kernel", (query_features, units))
        self._add_variable("value_kernel", (value_features, units))
        self._add_score_vector(units)

    def _add_score_vector(self, units: int) -> None:
        limit = (6 / (units + 1)) ** 0.5  # Glorot's limit for a matrix of one column
        self._add_variable(
            "score_vector", (units,), keras.initializers.RandomUniform(-limit, limit)
        )

    def _add_variable(self, name, shape, initializer="glorot_uniform"):
        setattr(self, name, self.add_weight(name=name, shape=shape, initializer=initializer))

    @abstractmethod
    def scores(self, query: Any, key: Any) -> Any:
        """Scores `(B, T, S)` of `query` `(B, T, D_q)` against the `key` of `project`."""

    @abstractmethod
    def _key(self, value: Any) -> Any:
        """The part of the scores that depends on the source `(B, S, D_v)` alone."""

    def call(self, query, value, query_mask=None, value_mask=None, training=None):
        check_call(self.features, query, value, query_mask, value_mask)
        query = zero_padding(query, query_mask)
        memory = {**self.project(value, value_mask), "value_mask": value_mask}
        noise = self.draw_noise(ops.shape(query)[1], value, training)
        if not has_state(self):
            return self.attend(query, **memory, noise=noise)
        state = self.initial_state(value)
        context, weights, _ = self.attend_steps(query, **memory, state=state, noise=noise)
        return context, weights

    def project(self, value: Any, value_mask: Any = None) -> dict[str, Any]:
        """Computes what `attend` needs of a source `(B, S, D_v)`, once for all decoding steps.

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
        # Rounded only now: in a decoder's loop the weights are part of the outputs.
        return self._read(ops.cast(weights, value.dtype), value, noise)

    def _read(self, weights: Any, value: Any, noise: Any) -> tuple[Any, Any]:
        """Context `(B, T, D_v)` and the weights `(B, T, S)` after dropout."""
        if noise is not None:
            weights = weights * ops.cast(noise, weights.dtype)
        return ops.matmul(weights, value), weights

    def draw_noise(self, steps: Any, value: Any, training: bool | None = None) -> Any:
        """Draws the `noise` `(B, T, S)` of T decoding steps, before a loop over the steps, or None.

        Random numbers inside a loop would carry the state of their generator through it.
        """
        if not training or not self.dropout:
            return None
        shape = (ops.shape(value)[0], steps, ops.shape(value)[1])
        return self.dropout_layer(ops.ones(shape, dtype=value.dtype), training=training)

    def compute_mask(self, query: Any, mask: Any = None) -> Any:
        return None if mask is None else (mask, mask)


class RecurrentAttention(SingleHeadAttention):
    """Abstract attention whose weights depend on the weights of the step before.

    A subclass defines `initial_state`, `_prepare` and `_align`.
    """

    @abstractmethod
    def initial_state(self, value: Any) -> Any:
        """The state `(B, S)` before the first step over `value` `(B, S, D_v)`."""

    @abstractmethod
    def _prepare(self, query: Any, key: Any, value_mask: Any, noise: Any) -> Any:
        """Computes what `_align` needs of a query, `(B, T, ...)`, outside the loop."""

    @abstractmethod
    def _align(self, prepared: Any, key: Any, state: Any, value_mask: Any) -> tuple[Any, Any]:
        """Weights `(B, K, S)` and new state `(B, K, S)` of one step."""

    def attend(self, query, key, value, state, value_mask=None, noise=None):  # type: ignore[override]
        """One decoding step of K hypotheses, with queries `(B, K, D_q)`. Draws no random numbers.

        `state` `(B, K, S)` is from `initial_state` or the step before. Returns the context `(B, K,
        D_v)`, the weights `(B, K, S)` and the new state.
        """
        prepared = self._prepare(query, key, value_mask, noise)
        weights, state = self._align(prepared, key, state, value_mask)
        return *self._read(weights, value, noise), state

    def attend_steps(self, query, key, value, state, value_mask=None, noise=None):
        """Runs T decoding steps of one hypothesis, one after another.

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
    """Returns True if an attention carries a state from step to step."""
    return hasattr(attention, "initial_state")
