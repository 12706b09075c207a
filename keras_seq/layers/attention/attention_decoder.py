"""An attention cell over a whole target."""

import keras
from keras import ops, tree

from keras_seq.layers.attention.attention_cell import AttentionCell, attend_once, has_state
from keras_seq.layers.internal.attention_scores import STEPS, check_axes, check_tensor, tanh
from keras_seq.layers.internal.loop_cell import loop_cell
from keras_seq.layers.internal.step_loop import LoopMatmul, run_steps

# Shape letters: B batch, T target steps, S source steps, D input features, D_v value features,
# D_s summary features, U units.


@keras.saving.register_keras_serializable(package="keras_seq")
class AttentionDecoder(keras.layers.Layer):
    """Runs an `AttentionCell` over a sequence of known inputs.

    Gives what the cell would give step by step, for teacher forcing. Only what
    a step needs from the step before is computed in the loop: the product of
    all inputs with the cell's kernel is not, nor is h~ unless it is fed, and
    without input feeding attention looks from all steps at once, unless it has
    a state and so must go from one to the next.
    `keras.layers.RNN` cannot hand a memory to its cell.

    Shapes: B batch, T target steps, S source steps, D input features, D_v
    value features, D_s summary features, U units.

    Args:
        cell: An `AttentionCell`.

    Call arguments:
        inputs: Float tensor `(B, T, D)`.
        value: Float tensor `(B, S, D_v)`, encoder outputs.
        value_mask: Optional bool tensor `(B, S)`, True where the source is
            real. Filled in by Keras from `value` when not given.
        states: Optional states before the first step, as the cell takes them.
            Those of its `get_initial_state` when not given.
        summary: Optional float tensor `(B, D_s)`, which every step reads
            besides its input.
        return_weights: Whether to return the attention weights too.
        training: Whether to apply the dropout or noise of cell and attention.

    Returns:
        outputs: h~, tensor `(B, T, U)` in the compute dtype.
        states: The states after the last step.
        weights: With `return_weights=True`, tensor `(B, T, S)`; exactly 0 on
            masked steps of the source.

    Masks: `value_mask` ends here; what a masked step of `value` holds, NaN
    included, reaches neither the outputs nor the gradients. The mask of
    `inputs` ends here too, unused: padding after the real steps cannot change
    them.

    Raises:
        ValueError: At construction if `cell` is no `AttentionCell`; at call if
            an argument has other axes, another width, no floats, a mask of
            another shape or dtype, or states are missing.

    Example:

    >>> decoder = AttentionDecoder(
    ...     AttentionCell(keras.layers.LSTMCell(4), LuongAttention("general")))
    >>> outputs, states = decoder(keras.ops.ones((2, 7, 3)), keras.ops.ones((2, 5, 6)))
    >>> tuple(outputs.shape)
    (2, 7, 4)

    Reference:
        As `AttentionCell`.
    """

    def __init__(self, cell, **kwargs):
        super().__init__(**kwargs)
        if not isinstance(cell, AttentionCell):
            raise ValueError(
                f"`cell` must be an AttentionCell, received {cell!r}: "
                "wrap a recurrent cell, as in AttentionCell(cell, attention)."
            )
        self.cell = cell
        self.supports_masking = True

    def build(self, inputs_shape, value_shape, summary_shape=None):
        check_axes("inputs", inputs_shape, STEPS)
        if not self.cell.built:
            self.cell.build((inputs_shape[0], inputs_shape[2]), value_shape, summary_shape)
            self.cell.built = True

    def call(
        self,
        inputs,
        value,
        value_mask=None,
        states=None,
        summary=None,
        return_weights=False,
        training=None,
    ):
        check_tensor("inputs", inputs, self.cell.features["inputs"], STEPS)
        self.cell.check_memory(inputs, value, value_mask, summary)
        if states is None:
            states = self.cell.get_initial_state(ops.shape(inputs)[0], value)
        self.cell.check_states(states, 2)
        states = tree.map_structure(lambda state: ops.cast(state, self.compute_dtype), states)
        attention = self.cell.attention
        memory = {**attention.project(value, value_mask), "value_mask": value_mask}
        noise = attention.draw_noise(ops.shape(inputs)[1], value, training)  # (B, T, S)
        inner = loop_cell(
            self.cell.cell,
            inputs.shape[-1],
            0 if summary is None else summary.shape[-1],
            noise_shape=ops.shape(inputs)[:2] if training else None,
        )
        projected = inner.project(inputs, summary)
        run = self._run_fed if self.cell.input_feeding else self._run_unfed
        outputs, states, weights = run(inner, projected, states, memory, noise, return_weights)
        return (outputs, states, weights) if return_weights else (outputs, states)

    def _run_unfed(self, inner, projected, states, memory, noise, return_weights):
        """The cell alone in the loop, then attention from all steps at once."""

        def step(inputs, cell_states):
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

    def _run_fed(self, inner, projected, states, memory, noise, return_weights):
        """Attention in the loop."""
        attention, current = self.cell.attention, self.cell.query == "current"
        gates = projected.shape[-1]
        if noise is not None:
            # The loop slices one tensor by time, so the rows of noise ride on it.
            projected = ops.concatenate([projected, ops.cast(noise, projected.dtype)], axis=-1)
        combine = LoopMatmul(self.cell.kernel)

        def step(inputs, states):
            noise_t = None
            if noise is not None:
                inputs, noise_t = inputs[:, :gates], inputs[:, gates:]
            if current:
                hidden, cell_states = inner.step(inputs, states["fed"], states["cell"])
                context, weights, seen = attend_once(attention, hidden, memory, states, noise_t)
                outputs = tanh(combine(ops.concatenate([context, hidden], axis=-1)))
                states = {"cell": cell_states, "fed": outputs, **seen}
            else:
                query = self.cell.hidden_of(states["cell"])
                context, weights, seen = attend_once(attention, query, memory, states, noise_t)
                hidden, cell_states = inner.step(inputs, context, states["cell"])
                outputs = ops.concatenate([context, hidden], axis=-1)
                states = {"cell": cell_states, **seen}
            if return_weights:
                outputs = ops.concatenate([outputs, weights], axis=-1)
            return outputs, states

        outputs, states = run_steps(step, projected, states, self.dtype_policy)
        width = self.cell.output_size if current else self.cell.kernel.shape[0]
        weights = None
        if return_weights:
            outputs, weights = outputs[..., :width], outputs[..., width:]
            # With S unknown, so is what a slice leaves of the joined axis.
            outputs = ops.reshape(outputs, (*ops.shape(outputs)[:2], width))
        if not current:
            outputs = tanh(ops.matmul(outputs, self.cell.kernel))
        return outputs, states, weights

    def compute_mask(self, inputs, value=None, inputs_mask=None, **kwargs):
        return None

    def get_config(self):
        return {
            **super().get_config(),
            "cell": keras.saving.serialize_keras_object(self.cell),
        }

    @classmethod
    def from_config(cls, config):
        cell = keras.saving.deserialize_keras_object(config["cell"])
        return cls(**{**config, "cell": cell})
