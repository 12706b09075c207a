"""One step of a recurrent cell with attention."""

from typing import Any

import keras
from keras import ops, tree

from keras_seq import backend
from keras_seq.layers.cells.cell_wrapper import CellWrapper
from keras_seq.layers.cells.dropout_cell import DropoutCell
from keras_seq.layers.cells.residual_cell import ResidualCell
from keras_seq.layers.internal.checks import (
    STEPS,
    VECTORS,
    check_choice,
    check_mask,
    check_positive,
    check_same_batch,
    check_tensor,
    known_features,
)
from keras_seq.layers.internal.loop_cell import join_summary
from keras_seq.layers.internal.single_head_attention import has_state, tanh
from keras_seq.layers.internal.weight_arguments import KernelArguments

HYPOTHESES = ("batch", "hypotheses", "features")


@keras.saving.register_keras_serializable(package="keras_seq")
class AttentionCell(KernelArguments):
    """One step of a recurrent cell with attention.

    With `query="current"` (Luong et al., 2015) the new state is the query:

        s_t = cell([x_t; h~_{t-1}], s_{t-1});  c_t = attention(s_t, value)
        h~_t = tanh(W [c_t; s_t])

    With `query="previous"` (Bahdanau et al., 2015) the old state is the query, and the cell reads
    the context:

        c_t = attention(s_{t-1}, value);  s_t = cell([x_t; c_t], s_{t-1})
        h~_t = tanh(W [c_t; s_t])

    Without input feeding the cell reads x_t alone. With a `summary` of the source, x_t is
    [x_t; summary] at each step (Cho et al., 2014).

    The source is an argument of the call and not a state of the layer, so one cell serves several
    sources and can be exported. `AttentionDecoder` runs a cell over a whole target.

    Shapes: B batch, K hypotheses, S source steps, D input features, D_v value features, D_s summary
    features, U units.

    Args:
        cell: A recurrent cell whose first state is its output: any cell of keras_seq, or
            `keras.layers.GRUCell`, `LSTMCell`, `SimpleRNNCell` or `StackedRNNCells`. Cells of Keras
            must not have dropout, because they keep the dropout mask between calls.
        attention: `BahdanauAttention`, `LuongAttention`, one of their monotonic forms,
            `LocationSensitiveAttention` or another layer with their methods.
        units: Positive integer U, the width of h~. Defaults to the output size of the cell.
        input_feeding: Whether the cell reads h~_{t-1} or c_t.
        query: "current" or "previous".
        kernel_initializer, kernel_regularizer: Of W. Default to "glorot_uniform" and none.

    Call arguments:
        inputs: Float tensor `(B, D)`, or `(B, K, D)` for K hypotheses of each source. All states
            then are `(B, K, ...)`, and the source is not copied.
        states: Dict from `get_initial_state` or the last step, with `cell`, the list of states of
            the cell; with input feeding of the current query `attentional_state`, h~_{t-1};
            and with an attention that has a state `attention`, `(B, S)` or `(B, K, S)`.
        value: Float tensor `(B, S, D_v)`, encoder outputs.
        value_mask: Optional bool tensor `(B, S)`, True at real steps; by default that of `value`.
        key: Optional tensor `(B, S, ...)`. Pass the `key` and `value` of `attention.project` to
            project the source once for all steps.
        summary: Optional float tensor `(B, D_s)`.

    Returns:
        output: h~_t, tensor `(B, U)` or `(B, K, U)` in the compute dtype.
        states: The new states, structured as the old ones.
        weights: Attention weights `(B, S)` or `(B, K, S)`, exactly 0 on masked steps.

    Masks: none of the outputs carries a mask. A single step applies neither the dropout nor the
    noise of the attention; `AttentionDecoder` applies both in training.

    Raises:
        ValueError: If `query` is unknown, `units` is not a positive integer, `cell` or `attention`
            lacks methods, a Keras cell has dropout, the output of the cell is not a state with
            `query="previous"`, a call argument has the wrong shape or dtype, or a state is missing.

    Example:

    >>> cell = AttentionCell(keras.layers.GRUCell(4), BahdanauAttention(8))
    >>> states = cell.get_initial_state(batch_size=2)
    >>> output, states, weights = cell(
    ...     keras.ops.ones((2, 3)), states, keras.ops.ones((2, 5, 6)))
    >>> tuple(output.shape), tuple(weights.shape)
    ((2, 4), (2, 5))

    Reference:
        Luong et al., 2015, sections 3.1 and 3.3, https://arxiv.org/abs/1508.04025; Bahdanau, Cho
        and Bengio, 2015, appendix A.1.2, https://arxiv.org/abs/1409.0473; Cho et al., 2014,
        https://arxiv.org/abs/1406.1078
    """

    def __init__(
        self,
        cell: keras.layers.Layer,
        attention: keras.layers.Layer,
        units: int | None = None,
        input_feeding: bool = True,
        query: str = "current",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choice("query", query, ("current", "previous"))
        check_positive(optional=True, units=units)
        if not hasattr(attention, "project") or not hasattr(attention, "attend"):
            raise ValueError(
                "`attention` must have the methods `project` and `attend`, received "
                f"{attention!r}: pass an attention of keras_seq.layers with one head."
            )
        _check_cell(cell)
        if query == "previous":
            _check_output_is_state(cell)
        self.cell = cell
        self.attention = attention
        self.units = units
        self.input_feeding = input_feeding
        self.query = query

    @property
    def output_size(self) -> int:
        """Number of output units U."""
        return self.cell.output_size if self.units is None else self.units

    @property
    def feeds_attentional_state(self) -> bool:
        """True if the attentional state h~ is an input of the next step."""
        return self.input_feeding and self.query == "current"

    def get_initial_state(self, batch_size: Any, value: Any = None) -> dict[str, Any]:
        """Returns the states before the first step.

        `batch_size` is an integer or scalar tensor B, and `value` `(B, S, D_v)` the source, which
        an attention with a state needs.
        """
        states = {"cell": self.cell.get_initial_state(batch_size=batch_size)}
        if not isinstance(states["cell"], (list, tuple)):
            states["cell"] = [states["cell"]]
        if self.feeds_attentional_state:
            states["attentional_state"] = ops.zeros(
                (batch_size, self.output_size), dtype=self.compute_dtype
            )
        if has_state(self.attention):
            if value is None:
                raise ValueError(
                    f"{type(self.attention).__name__} has a state for each step of the source, "
                    "received no `value`: call `get_initial_state(batch_size, value)`."
                )
            states["attention"] = self.attention.initial_state(value)
        return states

    def build(self, inputs_shape: Any, value_shape: Any, summary_shape: Any = None) -> None:
        inputs_features = known_features("inputs", inputs_shape, VECTORS, HYPOTHESES)
        value_features = known_features("value", value_shape, STEPS)
        self.features = {"inputs": inputs_features, "value": value_features}
        if summary_shape is not None:
            self.features["summary"] = known_features("summary", summary_shape, VECTORS)
        batch, state_features = inputs_shape[0], self.cell.output_size
        cell_features = inputs_features + self.features.get("summary", 0)
        if self.input_feeding:
            cell_features += self.output_size if self.query == "current" else value_features
        if not self.cell.built:
            self.cell.build((batch, cell_features))
        if not self.attention.built:
            self.attention.build((batch, 1, state_features), tuple(value_shape))
        self._add_kernel("kernel", (value_features + state_features, self.output_size))

    def call(
        self,
        inputs: Any,
        states: Any,
        value: Any,
        value_mask: Any = None,
        key: Any = None,
        summary: Any = None,
    ) -> Any:
        check_tensor("inputs", inputs, self.features["inputs"], VECTORS, HYPOTHESES)
        self.check_memory(inputs, value, value_mask, summary)
        self.check_states(states, len(inputs.shape))
        if key is None:
            projected = self.attention.project(value, value_mask)
            key, value = projected["key"], projected["value"]
        memory = {"key": key, "value": value, "value_mask": value_mask}
        attend_step = attend if len(inputs.shape) == 2 else attend_with_beam
        inputs = join_summary(inputs, summary)
        if self.query == "current":
            hidden, cell_states = self._advance(
                inputs, states.get("attentional_state"), states["cell"]
            )
            context, weights, new_states = attend_step(self.attention, hidden, memory, states)
        else:
            query = self.hidden_of(states["cell"])
            context, weights, new_states = attend_step(self.attention, query, memory, states)
            extra = context if self.input_feeding else None
            hidden, cell_states = self._advance(inputs, extra, states["cell"])
        output = self.combine(context, hidden)
        new_states["cell"] = tree.pack_sequence_as(states["cell"], tree.flatten(cell_states))
        if self.feeds_attentional_state:
            new_states["attentional_state"] = output
        return output, new_states, weights

    def _advance(self, inputs: Any, extra: Any, cell_states: Any) -> Any:
        """Runs the cell on inputs `(B, D)` or `(B, K, D)`, concatenated with `extra` if given."""
        if extra is not None:
            inputs = ops.concatenate([inputs, extra], axis=-1)
        if len(inputs.shape) == 2:
            return self.cell(inputs, cell_states)
        beam = backend.shape(inputs)[1]
        inputs, cell_states = tree.map_structure(
            lambda tensor: ops.reshape(tensor, (-1, tensor.shape[-1])), (inputs, cell_states)
        )
        return tree.map_structure(
            lambda tensor: ops.reshape(tensor, (-1, beam, tensor.shape[-1])),
            self.cell(inputs, cell_states),
        )

    def combine(self, context: Any, hidden: Any) -> Any:
        """Returns the attentional state h~ of contexts `(..., D_v)` and outputs of the cell."""
        return tanh(ops.matmul(ops.concatenate([context, hidden], axis=-1), self.kernel))

    def hidden_of(self, cell_states: Any) -> Any:
        """The last output of the cell, which is the first state of its last layer."""
        last = cell_states[-1] if isinstance(cell_states[-1], (list, tuple)) else cell_states
        return last[0]

    def check_memory(self, inputs: Any, value: Any, value_mask: Any, summary: Any) -> None:
        """Raises ValueError unless source and summary fit the cell and `inputs`."""
        check_tensor("value", value, self.features["value"], STEPS)
        check_same_batch("inputs", inputs, "value", value)
        check_mask("value_mask", value_mask, value)
        if (summary is None) != ("summary" not in self.features):
            raise ValueError(
                f"`summary` must be given {'never' if summary is not None else 'at every call'}, "
                "as when this layer was built: the size of the cell's kernel depends on it."
            )
        if summary is not None:
            check_tensor("summary", summary, self.features["summary"], VECTORS)
            check_same_batch("inputs", inputs, "summary", summary)

    def check_states(self, states: Any, axes: int) -> None:
        """Raises ValueError unless `states` is complete and its tensors have `axes` axes."""
        advice = "start from `get_initial_state`, or from the states of the step before."
        names = {"cell"}
        if self.feeds_attentional_state:
            names.add("attentional_state")
        if has_state(self.attention):
            names.add("attention")
        if not isinstance(states, dict) or set(states) != names:
            received = sorted(states) if isinstance(states, dict) else type(states).__name__
            raise ValueError(
                f"`states` must be a dict of {sorted(names)}, received {received}: {advice}"
            )
        for name in names - {"cell"}:
            shape = tuple(states[name].shape)
            if len(shape) != axes:
                raise ValueError(
                    f"The state `{name}` must have {axes} axes, received the shape {shape}: "
                    f"{advice} With hypotheses, (batch, hypotheses, ...), repeat it for each."
                )

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        return None


def _check_cell(cell: Any) -> None:
    """Raises ValueError unless `cell` is a recurrent cell that can run in a loop."""
    if not hasattr(cell, "state_size"):
        raise ValueError(
            f"`cell` must be a recurrent cell, which has a `state_size`, received {cell!r}: "
            "pass what `keras.layers.RNN` takes, not a layer that runs over whole sequences."
        )
    for inner in getattr(cell, "cells", [cell]):
        drops = getattr(inner, "dropout", 0) or getattr(inner, "recurrent_dropout", 0)
        if drops and not hasattr(inner, "in_loop"):
            raise ValueError(
                f"The cell must have no dropout of its own, received {inner.name!r} with "
                f"dropout={inner.dropout} and recurrent_dropout={inner.recurrent_dropout}: "
                "put a Dropout layer on its inputs or outputs, or use a cell of keras_seq, "
                "which draws before the loop."
            )


def _check_output_is_state(cell: Any) -> None:
    """Raises ValueError if the output of a cell is not among its states."""
    cell = getattr(cell, "cells", [cell])[-1]
    while isinstance(cell, CellWrapper):
        if isinstance(cell, ResidualCell) or (
            isinstance(cell, DropoutCell) and cell.rates["output"]
        ):
            raise ValueError(
                'With query="previous" the first state of the cell is the query and must be its '
                f"last output, received a {type(cell).__name__} {cell.name!r}, whose output is "
                'none of its states: use query="current".'
            )
        cell = cell.cell


def attend_with_beam(
    attention: Any, query: Any, memory: Any, states: Any, noise: Any = None
) -> Any:
    """Runs a step of attention for K hypotheses, with queries `(B, K, U)`.

    `memory` has `key`, `value` and `value_mask`. `states` has `attention` `(B, K, S)` if the
    attention has a state. Returns the context `(B, K, D_v)`, the weights `(B, K, S)`, and a dict of
    the new `attention`, which is empty without a state.
    """
    if not has_state(attention):
        return *attention.attend(query, **memory, noise=noise), {}
    context, weights, state = attention.attend(
        query, **memory, state=states["attention"], noise=noise
    )
    return context, weights, {"attention": state}


def attend(attention: Any, query: Any, memory: Any, states: Any, noise: Any = None) -> Any:
    """Runs `attend_with_beam` for one hypothesis. No tensor has the axis K."""
    query, attention_states, noise = tree.map_structure(
        lambda tensor: ops.expand_dims(tensor, 1),
        (query, {name: states[name] for name in states if name == "attention"}, noise),
        none_is_leaf=False,
    )
    results = attend_with_beam(attention, query, memory, attention_states, noise)
    return tree.map_structure(lambda tensor: ops.squeeze(tensor, 1), results)
