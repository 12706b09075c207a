"""What recurrent layers need in a functional graph: one step of them, and inputs without a mask."""

import keras
from keras import ops

# Shape letters: B batch, K beam, U units.


class CellStep(keras.layers.Layer):
    """One step of a built Keras cell for K hypotheses, as an operation of the graph."""

    def __init__(self, cell, **kwargs):
        super().__init__(dtype=cell.dtype_policy, **kwargs)
        self.cell = cell
        self.supports_masking = True
        self.built = True

    def call(self, inputs, states):
        beam = ops.shape(inputs)[1]
        outputs, new_states = self.cell(
            ops.reshape(inputs, (-1, inputs.shape[-1])),
            [ops.reshape(state, (-1, state.shape[-1])) for state in states],
        )

        def split(tensor):
            return ops.reshape(tensor, (-1, beam, tensor.shape[-1]))  # (B, K, U)

        return split(outputs), [split(state) for state in new_states]

    def compute_mask(self, inputs, *args, **kwargs):
        return None


class DropMask(keras.layers.Layer):
    """Hands on a tensor without its mask, which would only slow down a recurrent layer."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.built = True

    def call(self, inputs):
        # Another tensor, for Keras keeps the mask on the tensor itself.
        return ops.copy(inputs)

    def compute_mask(self, inputs, previous_mask=None):
        return None
