"""What the cells around a cell share."""

import keras

from keras_seq.layers.internal.loop_cell import loop_cell


class CellWrapper(keras.layers.Layer):
    """Abstract cell around another, whose states it has.

    A subclass defines `call` and `in_loop`.

    Args:
        cell: A recurrent cell.
    """

    def __init__(self, cell, **kwargs):
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
    def state_size(self):
        """As the cell's."""
        return self.cell.state_size

    @property
    def output_size(self):
        """As the cell's."""
        return self.cell.output_size

    def get_initial_state(self, batch_size=None):
        """The cell's own."""
        return self.cell.get_initial_state(batch_size=batch_size)

    def build(self, input_shape):
        if not self.cell.built:
            self.cell.build(input_shape)
            self.cell.built = True

    def in_loop(self, features, summary_features=0, noise_shape=None):
        """The form for a loop, see `keras_seq.layers.internal.loop_cell`."""
        return loop_cell(self.cell, features, summary_features, noise_shape)

    def get_config(self):
        return {
            **super().get_config(),
            "cell": keras.saving.serialize_keras_object(self.cell),
        }

    @classmethod
    def from_config(cls, config):
        cell = keras.saving.deserialize_keras_object(config["cell"])
        return cls(**{**config, "cell": cell})
