"""Base of the cells that wrap another cell."""

from typing import Any

import keras

from keras_seq.layers.internal.configured_layer import ConfiguredLayer
from keras_seq.layers.internal.loop_cell import loop_cell


class CellWrapper(ConfiguredLayer):
    """Abstract cell around another cell, with the states of that cell.

    A subclass defines `call` and `in_loop`.
    """

    def __init__(self, cell: keras.layers.Layer, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        if not isinstance(cell, keras.layers.Layer) or not hasattr(cell, "state_size"):
            raise ValueError(
                f"`cell` must be a recurrent cell, a layer with a `state_size`, received {cell!r}."
            )
        if hasattr(cell, "cells"):
            raise ValueError(
                f"`cell` must be a single cell, received the stack {cell.name!r}: wrap the cells "
                "in it."
            )
        self.cell = cell

    @property
    def state_size(self) -> Any:
        return self.cell.state_size

    @property
    def output_size(self) -> int:
        return self.cell.output_size

    def get_initial_state(self, batch_size: Any = None) -> Any:
        return self.cell.get_initial_state(batch_size=batch_size)

    def build(self, input_shape: Any) -> None:
        if not self.cell.built:
            self.cell.build(input_shape)
            self.cell.built = True

    def in_loop(self, features: int, summary_features: int = 0, noise_shape: Any = None) -> Any:
        """Returns the loop adapter; see `keras_seq.layers.internal.loop_cell`."""
        return loop_cell(self.cell, features, summary_features, noise_shape)
