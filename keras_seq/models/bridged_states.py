"""First states of a recurrent decoder from the last states of its encoder."""

from types import SimpleNamespace
from typing import Any

from keras import ops

from keras_seq.layers.internal.exact_dense import ExactDense
from keras_seq.models.recurrent_decoder import RecurrentStates


class BridgedStates(RecurrentStates):
    """Abstract recurrent decoder whose first states come from an encoder.

    `arguments` are the constructor arguments of the model.
    """

    def __init__(self, arguments: SimpleNamespace) -> None:
        super().__init__(arguments.cell, arguments.num_decoder_layers)
        self._units = arguments.decoder_units
        self.bridges = {
            state: ExactDense(
                self._units,
                activation="tanh",
                dtype=arguments.dtype,
                name=state.replace("state", "bridge"),
            )
            for names in self.state_names
            for state in names
        }

    def first_states(self, last_states: list[list[Any]], bridge: str = "dense") -> dict[str, Any]:
        """Makes symbolic first states `(B, U)` of all layers, by name.

        Decoder layer i uses the last states of encoder layer i, or of the topmost encoder layer.
        The bridge is "copy", "dense" or "zero".
        """
        states = {}
        for i, names in enumerate(self.state_names):
            for name, state in zip(names, last_states[min(i, len(last_states) - 1)], strict=True):
                if bridge == "dense":
                    state = self.bridges[name](state)
                elif bridge == "zero":
                    state = ops.zeros_like(state[:, :1]) + ops.zeros((self._units,))
                states[name] = state
        return states
