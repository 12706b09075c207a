"""Recurrent layers in functional models: single steps, and inputs without a mask."""

from typing import Any

import keras
from keras import ops

from keras_seq import backend

# Shape letters: B batch, K beam, U units.


class CellStep(keras.layers.Layer):
    """One step of a built Keras cell for K hypotheses of each row.

    Maps inputs `(B, K, D)` and a list of states `(B, K, U)` to outputs and the next states.
    """

    def __init__(self, cell: Any, **kwargs: Any) -> None:
        super().__init__(dtype=cell.dtype_policy, **kwargs)
        self.cell = cell
        self.supports_masking = True
        self.built = True

    def call(self, inputs: Any, states: Any) -> Any:
        beam = backend.shape(inputs)[1]
        outputs, new_states = self.cell(
            ops.reshape(inputs, (-1, inputs.shape[-1])),
            [ops.reshape(state, (-1, state.shape[-1])) for state in states],
        )

        def split(tensor: Any) -> Any:
            return ops.reshape(tensor, (-1, beam, tensor.shape[-1]))  # (B, K, U)

        return split(outputs), [split(state) for state in new_states]

    def compute_mask(self, inputs: Any, *args: Any, **kwargs: Any) -> None:
        return None


class DropMask(keras.layers.Layer):
    """Removes the mask of a tensor, where it would only slow down a recurrent layer."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True
        self.built = True

    def call(self, inputs: Any) -> Any:
        # Returns a copy, because Keras attaches the mask to the tensor itself.
        return ops.copy(inputs)

    def compute_mask(self, inputs: Any, previous_mask: Any = None) -> None:
        return None
