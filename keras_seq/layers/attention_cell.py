"""A recurrent cell that looks at a memory: one step."""

import keras
from keras import ops, tree

from keras_seq.layers.attention_scores import tanh
from keras_seq.layers.cell_in_loop import join_summary

# Shape letters: B batch, K beam, S source steps, D input features, D_v value features,
# D_s summary features, U units.


@keras.saving.register_keras_serializable(package="keras_seq")
class AttentionCell(keras.layers.Layer):
    """One step of any recurrent cell with any attention.

    With `query="current"` (Luong et al., 2015) the new state asks:

        s_t = cell([x_t; h~_{t-1}], s_{t-1})
        c_t = attention(s_t, value)
        h~_t = tanh(W [c_t; s_t])

    With `query="previous"` (Bahdanau et al., 2015) the old state asks, and
    the cell reads the answer:

        c_t = attention(s_{t-1}, value)
        s_t = cell([x_t; c_t], s_{t-1})
        h~_t = tanh(W [c_t; s_t])

    Without input feeding the cell reads x_t alone. With a `summary` of the
    source, x_t is [x_t; summary] at every step (Cho et al., 2014).

    The memory is an argument of the call and never state of the layer, so one
    cell serves any number of sources at a time and can be exported.
    `AttentionDecoder` runs a cell over a whole target.

    Shapes: B batch, K hypotheses, S source steps, D input features, D_v
    value features, D_s summary features, U units.

    Args:
        cell: A Keras cell: GRUCell, LSTMCell, SimpleRNNCell, StackedRNNCells
            or another whose first state is its output. Without dropout of its
            own, which would leave a mask on the cell between calls.
        attention: `BahdanauAttention`, `LuongAttention` or another layer with
            their `project` and `attend`.
        units: Positive integer U, the width of h~. Defaults to the cell's
            output size.
        input_feeding: Whether the cell reads what attention found. Defaults
            to True.
        query: "current" or "previous". Defaults to "current".

    Call arguments:
        inputs: Float tensor `(B, D)`, or `(B, K, D)` for K hypotheses of each
            source. The states then are `(B, K, ...)` likewise, and the memory
            is not copied.
        states: Dict of `cell`, the cell's own list of states, and with input
            feeding of the current query `fed`, h~_{t-1}; from
            `get_initial_state` or the step before.
        value: Float tensor `(B, S, D_v)`, encoder outputs.
        value_mask: Optional bool tensor `(B, S)`, True where the source is
            real. Filled in by Keras from `value` when not given.
        key: Optional tensor `(B, S, ...)`. `attention.project` gives `key` and
            `value` once for all steps; without `key` every call projects.
        summary: Optional float tensor `(B, D_s)`.

    Returns:
        output: h~_t, tensor `(B, U)` or `(B, K, U)` in the compute dtype.
        states: The new states, structured as the old ones.
        weights: Attention weights `(B, S)` or `(B, K, S)`; exactly 0 on masked
            steps of the source.

    Masks: `value_mask` ends here. Attention weights are not dropped in single
    steps; `AttentionDecoder` drops them in training.

    Raises:
        ValueError: If `query` is neither "current" nor "previous", `units`
            is not a positive integer, or the cell has dropout of its own.

    Example:

    >>> cell = AttentionCell(keras.layers.GRUCell(4), BahdanauAttention(8))
    >>> states = cell.get_initial_state(batch_size=2)
    >>> output, states, weights = cell(
    ...     keras.ops.ones((2, 3)), states, keras.ops.ones((2, 5, 6)))
    >>> tuple(output.shape), tuple(weights.shape)
    ((2, 4), (2, 5))

    Reference:
        Luong, Pham and Manning, "Effective Approaches to Attention-based
        Neural Machine Translation", EMNLP 2015, sections 3.1 and 3.3,
        https://arxiv.org/abs/1508.04025; Bahdanau, Cho and Bengio, 2015,
        appendix A.1.2, https://arxiv.org/abs/1409.0473; Cho et al., 2014,
        https://arxiv.org/abs/1406.1078
    """

    def __init__(self, cell, attention, units=None, input_feeding=True, query="current", **kwargs):
        super().__init__(**kwargs)
        if query not in ("current", "previous"):
            raise ValueError(f'`query` must be "current" or "previous", received {query!r}.')
        if units is not None and (not isinstance(units, int) or units < 1):
            raise ValueError(f"`units` must be a positive integer or None, received {units!r}.")
        for inner in getattr(cell, "cells", [cell]):
            if getattr(inner, "dropout", 0) or getattr(inner, "recurrent_dropout", 0):
                raise ValueError(
                    f"The cell must have no dropout of its own, received {inner.name!r} with "
                    f"dropout={inner.dropout} and recurrent_dropout={inner.recurrent_dropout}: "
                    "put a Dropout layer on its inputs or outputs."
                )
        self.cell = cell
        self.attention = attention
        self.units = units
        self.input_feeding = input_feeding
        self.query = query
        self.supports_masking = True

    @property
    def output_size(self):
        """Integer U."""
        return self.cell.output_size if self.units is None else self.units

    @property
    def feeds_output(self):
        """Whether h~ goes into the next step."""
        return self.input_feeding and self.query == "current"

    def get_initial_state(self, batch_size):
        """States of zeros, as `call` takes them."""
        states = {"cell": self.cell.get_initial_state(batch_size=batch_size)}
        if not isinstance(states["cell"], (list, tuple)):
            states["cell"] = [states["cell"]]
        if self.feeds_output:
            states["fed"] = ops.zeros((batch_size, self.output_size), dtype=self.compute_dtype)
        return states

    def build(self, inputs_shape, value_shape, summary_shape=None):
        batch, value_features = inputs_shape[0], value_shape[-1]
        state_features = self.cell.output_size
        features = inputs_shape[-1]
        if summary_shape is not None:
            features += summary_shape[-1]
        if self.input_feeding:
            features += self.output_size if self.query == "current" else value_features
        if not self.cell.built:
            self.cell.build((batch, features))
        if not self.attention.built:
            self.attention.build((batch, 1, state_features), tuple(value_shape))
        self.kernel = self.add_weight(
            name="kernel",
            shape=(value_features + state_features, self.output_size),
            initializer="glorot_uniform",
        )

    def call(self, inputs, states, value, value_mask=None, key=None, summary=None):
        beam = ops.shape(inputs)[1] if len(inputs.shape) == 3 else None
        if key is None:
            projected = self.attention.project(value, value_mask)
            key, value = projected["key"], projected["value"]
        inputs = join_summary(inputs, summary)

        def attend(query):
            if beam is None:
                query = query[:, None]
            context, weights = self.attention.attend(query, key, value, value_mask)
            return (context[:, 0], weights[:, 0]) if beam is None else (context, weights)

        def advance(fed, cell_states):
            if fed is not None:
                joined = ops.concatenate([inputs, fed], axis=-1)
            else:
                joined = inputs
            if beam is None:
                return self.cell(joined, cell_states)
            joined, cell_states = tree.map_structure(_merge_beam, (joined, cell_states))
            return tree.map_structure(
                lambda tensor: _split_beam(tensor, beam), self.cell(joined, cell_states)
            )

        if self.query == "current":
            hidden, cell_states = advance(states.get("fed"), states["cell"])
            context, weights = attend(hidden)
        else:
            context, weights = attend(self.hidden_of(states["cell"]))
            hidden, cell_states = advance(context if self.input_feeding else None, states["cell"])
        output = self.combine(context, hidden)
        new_states = {"cell": tree.pack_sequence_as(states["cell"], tree.flatten(cell_states))}
        if self.feeds_output:
            new_states["fed"] = output
        return output, new_states, weights

    def combine(self, context, hidden):
        """h~ of contexts `(..., D_v)` and cell outputs."""
        return tanh(ops.matmul(ops.concatenate([context, hidden], axis=-1), self.kernel))

    def hidden_of(self, cell_states):
        """The cell's last output, which is the first state of its last layer."""
        last = cell_states[-1] if isinstance(cell_states[-1], (list, tuple)) else cell_states
        return last[0]

    def compute_mask(self, inputs, *args, **kwargs):
        return None

    def get_config(self):
        return {
            **super().get_config(),
            "cell": keras.saving.serialize_keras_object(self.cell),
            "attention": keras.saving.serialize_keras_object(self.attention),
            "units": self.units,
            "input_feeding": self.input_feeding,
            "query": self.query,
        }

    @classmethod
    def from_config(cls, config):
        parts = {
            name: keras.saving.deserialize_keras_object(config[name])
            for name in ("cell", "attention")
        }
        return cls(**{**config, **parts})


def _merge_beam(tensor):
    """`(B, K, U)` -> `(B * K, U)`."""
    return ops.reshape(tensor, (-1, tensor.shape[-1]))


def _split_beam(tensor, beam):
    """`(B * K, U)` -> `(B, K, U)`."""
    return ops.reshape(tensor, (-1, beam, tensor.shape[-1]))
