"""A recurrent cell that looks at a memory: one step."""

import keras
from keras import ops, tree

from keras_seq.layers.cells.cell_wrapper import CellWrapper
from keras_seq.layers.cells.dropout_cell import DropoutCell
from keras_seq.layers.cells.residual_cell import ResidualCell
from keras_seq.layers.internal.attention_scores import (
    STEPS,
    VECTORS,
    check_axes,
    check_mask,
    check_same_batch,
    check_tensor,
    tanh,
)
from keras_seq.layers.internal.loop_cell import join_summary

# Shape letters: B batch, K beam, S source steps, D input features, D_v value features,
# D_s summary features, U units.

HYPOTHESES = ("batch", "hypotheses", "features")


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
            or another whose first state is its output. Of keras_seq's own
            cells any; Keras' own without dropout, which would leave a mask on
            the cell between calls.
        attention: `BahdanauAttention`, `LuongAttention`,
            `LocationSensitiveAttention`, `BahdanauMonotonicAttention`,
            `LuongMonotonicAttention` or another layer with their methods.
        units: Positive integer U, the width of h~. Defaults to the cell's
            output size.
        input_feeding: Whether the cell reads what attention found. Defaults
            to True.
        query: "current" or "previous". Defaults to "current".

    Call arguments:
        inputs: Float tensor `(B, D)`, or `(B, K, D)` for K hypotheses of each
            source. The states then are `(B, K, ...)` likewise, and the memory
            is not copied.
        states: Dict of `cell`, the cell's own list of states; with input
            feeding of the current query `fed`, h~_{t-1}; with an attention
            that has a state `attention`, `(B, S)` or `(B, K, S)`. From
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
    steps, and scores have no noise; `AttentionDecoder` does both in training,
    and draws what its cell drops.

    Raises:
        ValueError: At construction if `query` is neither "current" nor
            "previous", `units` is not a positive integer, the cell is one of
            Keras with dropout or, with the previous query, one whose output
            is no state, or cell or attention lack the methods of one; at call
            if an argument has other axes, another width, no floats, a mask of
            another shape or dtype, or states are missing.

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
        if not hasattr(cell, "state_size"):
            raise ValueError(
                f"`cell` must be a recurrent cell, which has a `state_size`, received {cell!r}: "
                "pass what `keras.layers.RNN` takes, not a layer that runs over whole sequences."
            )
        if not hasattr(attention, "project") or not hasattr(attention, "attend"):
            raise ValueError(
                "`attention` must have the methods `project` and `attend`, received "
                f"{attention!r}: pass an attention of keras_seq.layers with one head."
            )
        for inner in getattr(cell, "cells", [cell]):
            drops = getattr(inner, "dropout", 0) or getattr(inner, "recurrent_dropout", 0)
            if drops and not hasattr(inner, "in_loop"):
                raise ValueError(
                    f"The cell must have no dropout of its own, received {inner.name!r} with "
                    f"dropout={inner.dropout} and recurrent_dropout={inner.recurrent_dropout}: "
                    "put a Dropout layer on its inputs or outputs, or take a cell of keras_seq, "
                    "which draws before the loop."
                )
        if query == "previous":
            _check_that_output_is_state(cell)
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

    def get_initial_state(self, batch_size, value=None):
        """States before the first step, as `call` takes them.

        Args:
            batch_size: Integer or scalar tensor B.
            value: Tensor `(B, S, D_v)`, the source. Only an attention with a
                state needs it: where it looked is a number for each of S.
        """
        states = {"cell": self.cell.get_initial_state(batch_size=batch_size)}
        if not isinstance(states["cell"], (list, tuple)):
            states["cell"] = [states["cell"]]
        if self.feeds_output:
            states["fed"] = ops.zeros((batch_size, self.output_size), dtype=self.compute_dtype)
        if has_state(self.attention):
            if value is None:
                raise ValueError(
                    f"{type(self.attention).__name__} has a state for each step of the source, "
                    "received no `value`: call `get_initial_state(batch_size, value)`."
                )
            states["attention"] = self.attention.initial_state(value)
        return states

    def build(self, inputs_shape, value_shape, summary_shape=None):
        check_axes("inputs", inputs_shape, VECTORS, HYPOTHESES)
        check_axes("value", value_shape, STEPS)
        self.features = {"inputs": inputs_shape[-1], "value": value_shape[-1]}
        if summary_shape is not None:
            check_axes("summary", summary_shape, VECTORS)
            self.features["summary"] = summary_shape[-1]
        for name, features in self.features.items():
            if features is None:
                raise ValueError(
                    f"The feature axis of `{name}` must be known, received None: "
                    "give it a size where the tensor is made."
                )
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
        check_tensor("inputs", inputs, self.features["inputs"], VECTORS, HYPOTHESES)
        self.check_memory(inputs, value, value_mask, summary)
        self.check_states(states, len(inputs.shape))
        beam = ops.shape(inputs)[1] if len(inputs.shape) == 3 else None
        if key is None:
            projected = self.attention.project(value, value_mask)
            key, value = projected["key"], projected["value"]
        memory = {"key": key, "value": value, "value_mask": value_mask}
        inputs = join_summary(inputs, summary)

        def attend(query):
            if beam is None:
                return attend_once(self.attention, query, memory, states)
            return attend_beside(self.attention, query, memory, states)

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
            context, weights, new_states = attend(hidden)
        else:
            context, weights, new_states = attend(self.hidden_of(states["cell"]))
            hidden, cell_states = advance(context if self.input_feeding else None, states["cell"])
        output = self.combine(context, hidden)
        new_states["cell"] = tree.pack_sequence_as(states["cell"], tree.flatten(cell_states))
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

    def check_memory(self, inputs, value, value_mask, summary):
        """Raises ValueError unless the cell can read this beside `inputs`."""
        check_tensor("value", value, self.features["value"], STEPS)
        check_same_batch("inputs", inputs, "value", value)
        check_mask("value_mask", value_mask, value)
        if (summary is None) != ("summary" not in self.features):
            raise ValueError(
                f"`summary` must be given {'never' if summary is not None else 'at every call'}, "
                "as when this layer was built: the cell's kernel has as many rows as it then read."
            )
        if summary is not None:
            check_tensor("summary", summary, self.features["summary"], VECTORS)
            check_same_batch("inputs", inputs, "summary", summary)

    def check_states(self, states, axes):
        """Raises ValueError unless there are all states, those of ours with so many axes."""
        advice = "start from `get_initial_state`, or from the states of the step before."
        kept = {"cell"}
        if self.feeds_output:
            kept.add("fed")
        if has_state(self.attention):
            kept.add("attention")
        if not isinstance(states, dict) or set(states) != kept:
            received = sorted(states) if isinstance(states, dict) else type(states).__name__
            raise ValueError(
                f"`states` must be a dict of {sorted(kept)}, received {received}: {advice}"
            )
        for name in kept - {"cell"}:
            shape = tuple(states[name].shape)
            if len(shape) != axes:
                raise ValueError(
                    f"The state `{name}` must have {axes} axes, received the shape {shape}: "
                    f"{advice} With hypotheses, (batch, hypotheses, ...), repeat it for each."
                )

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


def _check_that_output_is_state(cell):
    """Raises ValueError for a cell whose last output cannot be found among its states."""
    cell = getattr(cell, "cells", [cell])[-1]
    while isinstance(cell, CellWrapper):
        if isinstance(cell, ResidualCell) or (
            isinstance(cell, DropoutCell) and cell.rates["output"]
        ):
            raise ValueError(
                'With query="previous" the first state of the cell asks, which must be its last '
                f"output, received a {type(cell).__name__} {cell.name!r}, whose output is none of "
                'its states: use query="current".'
            )
        cell = cell.cell


def has_state(attention):
    """Whether an attention keeps something from step to step."""
    return hasattr(attention, "initial_state")


def attend_beside(attention, query, memory, states, noise=None):
    """One step of attention for hypotheses side by side.

    Args:
        attention: A layer with `attend`.
        query: Tensor `(B, K, U)`.
        memory: Dict of `key`, `value` and `value_mask`.
        states: Dict, with `attention` `(B, K, S)` if it has a state.
        noise: Optional tensor `(B, K, S)`.

    Returns:
        context: Tensor `(B, K, D_v)`.
        weights: Tensor `(B, K, S)`.
        states: Dict of the new `attention`, or empty.
    """
    if not has_state(attention):
        return *attention.attend(query, **memory, noise=noise), {}
    context, weights, state = attention.attend(
        query, **memory, state=states["attention"], noise=noise
    )
    return context, weights, {"attention": state}


def attend_once(attention, query, memory, states, noise=None):
    """The same for one hypothesis, all tensors without the axis K."""
    query, seen, noise = tree.map_structure(
        lambda tensor: ops.expand_dims(tensor, 1),
        (query, {name: states[name] for name in states if name == "attention"}, noise),
        none_is_leaf=False,
    )
    found = attend_beside(attention, query, memory, seen, noise)
    return tree.map_structure(lambda tensor: ops.squeeze(tensor, 1), found)


def _merge_beam(tensor):
    """`(B, K, U)` -> `(B * K, U)`."""
    return ops.reshape(tensor, (-1, tensor.shape[-1]))


def _split_beam(tensor, beam):
    """`(B * K, U)` -> `(B, K, U)`."""
    return ops.reshape(tensor, (-1, beam, tensor.shape[-1]))
