"""A recurrent decoder with attention over a whole target."""

from typing import Any

import keras
from keras import ops, tree

from keras_seq import backend
from keras_seq.layers.attention.attention_cell import AttentionCell, attend, has_state
from keras_seq.layers.internal.checks import STEPS, check_axes, check_tensor
from keras_seq.layers.internal.configured_layer import ConfiguredLayer
from keras_seq.layers.internal.loop_cell import loop_cell
from keras_seq.layers.internal.single_head_attention import tanh
from keras_seq.layers.internal.step_loop import LoopMatmul, run_steps


@keras.saving.register_keras_serializable(package="keras_seq")
class AttentionDecoder(ConfiguredLayer):
    """Runs an `AttentionCell` over a whole target, as in teacher forcing.

    The outputs equal those of the cell step by step:

        h~_t, states_t = cell(x_t, states_{t-1}, value),  t = 1 .. T

    The loop over steps contains only what depends on the previous step. The products of all inputs
    with the kernel of the cell are computed at once, and without input feeding the attention too,
    unless it has a state. `keras.layers.RNN` cannot pass a source to its cell.

    Shapes: B batch, T target steps, S source steps, D input features, D_v value features, D_s
    summary features, U units.

    Args:
        cell: An `AttentionCell`.

    Call arguments:
        inputs: Float tensor `(B, T, D)`.
        value: Float tensor `(B, S, D_v)`, encoder outputs.
        value_mask: Optional bool tensor `(B, S)`, True at real steps; by default that of `value`.
        states: Optional states before the first step. Defaults to `cell.get_initial_state`.
        summary: Optional float tensor `(B, D_s)`, an additional input of each step.
        return_weights: Whether to return the attention weights too.
        training: Whether to apply the dropout and noise of cell and attention.

    Returns:
        outputs: h~, tensor `(B, T, U)` in the compute dtype.
        states: The states after the last step.
        weights: With `return_weights=True`, tensor `(B, T, S)`, exactly 0 on masked steps.

    Masks: the outputs carry no mask, and the mask of `inputs` is unused, because padding follows
    the real steps. Masked steps of `value`, even NaN, affect neither outputs nor gradients.

    Raises:
        ValueError: At construction if `cell` is not an `AttentionCell`. At call if an argument has
            the wrong shape or dtype, or a state is missing.

    Example:

    >>> decoder = AttentionDecoder(
    ...     AttentionCell(keras.layers.LSTMCell(4), LuongAttention("general")))
    >>> outputs, states = decoder(keras.ops.ones((2, 7, 3)), keras.ops.ones((2, 5, 6)))
    >>> tuple(outputs.shape)
    (2, 7, 4)

    Reference:
        Luong et al., 2015, section 3.3, https://arxiv.org/abs/1508.04025
    """

    def __init__(self, cell: AttentionCell, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(cell, AttentionCell):
            raise ValueError(
                f"`cell` must be an AttentionCell, received {cell!r}: "
                "wrap a recurrent cell, as in AttentionCell(cell, attention)."
            )
        self.cell = cell

    def build(self, inputs_shape: Any, value_shape: Any, summary_shape: Any = None) -> None:
        check_axes("inputs", inputs_shape, STEPS)
        if not self.cell.built:
            self.cell.build((inputs_shape[0], inputs_shape[2]), value_shape, summary_shape)
            self.cell.built = True

    def call(
        self,
        inputs: Any,
        value: Any,
        value_mask: Any = None,
        states: Any = None,
        summary: Any = None,
        return_weights: bool = False,
        training: bool | None = None,
    ) -> Any:
        check_tensor("inputs", inputs, self.cell.features["inputs"], STEPS)
        self.cell.check_memory(inputs, value, value_mask, summary)
        if states is None:
            states = self.cell.get_initial_state(backend.shape(inputs)[0], value)
        self.cell.check_states(states, 2)
        states = tree.map_structure(lambda state: ops.cast(state, self.compute_dtype), states)
        attention = self.cell.attention
        memory = {**attention.project(value, value_mask), "value_mask": value_mask}
        noise = attention.draw_noise(backend.shape(inputs)[1], value, training)  # (B, T, S)
        inner = loop_cell(
            self.cell.cell,
            inputs.shape[-1],
            0 if summary is None else summary.shape[-1],
            noise_shape=backend.shape(inputs)[:2] if training else None,
        )
        projected = inner.project(inputs, summary)
        run = self._run_with_feeding if self.cell.input_feeding else self._run_without_feeding
        outputs, states, weights = run(inner, projected, states, memory, noise, return_weights)
        return (outputs, states, weights) if return_weights else (outputs, states)

    def _run_without_feeding(
        self, inner: Any, projected: Any, states: Any, memory: Any, noise: Any, return_weights: bool
    ) -> Any:
        """Runs the cell in the loop, then the attention for all steps at once."""

        def step(inputs: Any, cell_states: Any) -> Any:
            return inner.step(inputs, None, cell_states)

        first = self.cell.hidden_of(states["cell"])
        hidden, last = run_steps(step, projected, states["cell"], self.dtype_policy)
        query = hidden
        if self.cell.query == "previous":
            query = ops.concatenate([first[:, None], hidden[:, :-1]], axis=1)  # (B, T, U)
        attention, new_states = self.cell.attention, {"cell": last}
        if has_state(attention):
            context, weights, new_states["attention"] = attention.attend_steps(
                query, **memory, noise=noise, state=states["attention"]
            )
        else:
            context, weights = attention.attend(query, **memory, noise=noise)
        return self.cell.combine(context, hidden), new_states, weights

    def _run_with_feeding(
        self, inner: Any, projected: Any, states: Any, memory: Any, noise: Any, return_weights: bool
    ) -> Any:
        """Runs cell and attention in the loop."""
        attention, current = self.cell.attention, self.cell.query == "current"
        gates = projected.shape[-1]
        if noise is not None:
            # The loop slices a single tensor by time, so the noise is appended to it.
            projected = ops.concatenate([projected, ops.cast(noise, projected.dtype)], axis=-1)
        combine = LoopMatmul(self.cell.kernel)

        def step(inputs: Any, states: dict[str, Any]) -> Any:
            step_noise = None
            if noise is not None:
                inputs, step_noise = inputs[:, :gates], inputs[:, gates:]
            if current:
                hidden, cell_states = inner.step(
                    inputs, states["attentional_state"], states["cell"]
                )
                context, weights, new = attend(attention, hidden, memory, states, step_noise)
                outputs = tanh(combine(ops.concatenate([context, hidden], axis=-1)))
                states = {"cell": cell_states, "attentional_state": outputs, **new}
            else:
                query = self.cell.hidden_of(states["cell"])
                context, weights, new = attend(attention, query, memory, states, step_noise)
                hidden, cell_states = inner.step(inputs, context, states["cell"])
                outputs = ops.concatenate([context, hidden], axis=-1)
                states = {"cell": cell_states, **new}
            if return_weights:
                outputs = ops.concatenate([outputs, weights], axis=-1)
            return outputs, states

        outputs, states = run_steps(step, projected, states, self.dtype_policy)
        width = self.cell.output_size if current else self.cell.kernel.shape[0]
        weights = None
        if return_weights:
            outputs, weights = outputs[..., :width], outputs[..., width:]
            # If S is unknown, so is the size of the slice.
            outputs = ops.reshape(outputs, (*backend.shape(outputs)[:2], width))
        if not current:
            outputs = tanh(ops.matmul(outputs, self.cell.kernel))
        return outputs, states, weights

    def compute_mask(self, inputs: Any, mask: Any = None) -> None:
        return None
