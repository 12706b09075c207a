"""Dropout around a cell."""

from typing import Any

import keras
from keras import tree

from keras_seq.layers.cells.cell_wrapper import CellWrapper
from keras_seq.layers.cells.recurrent_cell import draw_mask, single_step_noise
from keras_seq.layers.internal.checks import check_rates
from keras_seq.layers.internal.loop_cell import PackedInputs, join_summary, loop_cell


@keras.saving.register_keras_serializable(package="keras_seq")
class DropoutCell(CellWrapper):
    """Dropout of a cell's inputs, outputs or first state in training.

        y, s' = cell(d_x * x, [d_h * h, ...])
        output = d_y * y

    Each mask d is 0 with its rate and 1 / (1 - rate) otherwise. By default one mask serves all
    steps of a sequence (Gal and Ghahramani, 2016); with `per_step=True` each step has its own
    (Zaremba et al., 2014, who drop no state). Use this wrapper for outputs, for cells of other
    packages and for a mask per step; the cells of this package drop inputs and state themselves.

    Args:
        cell: A recurrent cell.
        input, output: Floats in [0, 1), rates of d_x and d_y. Default to 0.
        state: Float in [0, 1), rate of d_h. Unlike `recurrent_dropout` it also drops what the
            cell copies from its state, such as z * h in a GRU. Defaults to 0.
        per_step: Whether to draw new masks at every step. Defaults to False.
        seed: Optional integer that makes the dropout reproducible.

    Call arguments and outputs are those of `cell`, but `training` must be false: `RNN` applies the
    dropout.

    Raises:
        ValueError: If `cell` is not a cell or a rate is outside [0, 1); if a layer other than
            `keras_seq.layers.RNN` calls the cell in training.

    Example:

    >>> cell = DropoutCell(keras.layers.LSTMCell(4), input=0.2, output=0.2, per_step=True)
    >>> tuple(RNN(cell)(keras.ops.ones((2, 7, 3)), training=True).shape)
    (2, 4)

    Reference:
        Gal and Ghahramani, 2016, https://arxiv.org/abs/1512.05287; Zaremba, Sutskever and
        Vinyals, "Recurrent Neural Network Regularization", 2014, https://arxiv.org/abs/1409.2329
    """

    def __init__(
        self,
        cell: keras.layers.Layer,
        input: float = 0.0,
        output: float = 0.0,
        state: float = 0.0,
        per_step: bool = False,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(cell, **kwargs)
        check_rates(input=input, output=output, state=state)
        self.rates = {"input": input, "output": output, "state": state}
        self.per_step = per_step
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def build(self, input_shape: Any) -> None:
        super().build(input_shape)
        self.input_features = input_shape[-1]

    def call(self, inputs: Any, states: Any, training: bool | None = None) -> tuple[Any, Any]:
        if training and any(self.rates.values()):
            raise single_step_noise(self)
        return self.cell(inputs, states, training=training)

    def in_loop(self, features: int, summary_features: int = 0, noise_shape: Any = None) -> Any:
        if noise_shape is None:
            return super().in_loop(features, summary_features)
        return _DropoutInLoop(self, features, summary_features, noise_shape)

    def draw_mask(self, name: str, features: int, noise_shape: Any) -> Any:
        """Returns a dropout mask `(B, T, D)` or `(B, 1, D)`, or None if the rate or D is 0."""
        batch, steps = noise_shape
        shape = (batch, steps if self.per_step else 1, features)
        return draw_mask(self, self.rates[name] if features else 0, shape)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), **self.rates}


class _DropoutInLoop:
    """Loop adapter of a `DropoutCell` in training."""

    def __init__(self, cell: Any, features: int, summary_features: int, noise_shape: Any) -> None:
        known = features + summary_features
        self.inner = loop_cell(cell.cell, known, 0, noise_shape)
        self.per_step = cell.per_step
        self.known_mask = cell.draw_mask("input", known, noise_shape)
        self.masks = [
            cell.draw_mask("input", cell.input_features - known, noise_shape),
            cell.draw_mask("output", cell.output_size, noise_shape),
            cell.draw_mask("state", tree.flatten(cell.state_size)[0], noise_shape),
        ]

    def project(self, inputs: Any, summary: Any = None) -> Any:
        if inputs is not None:
            inputs = join_summary(inputs, summary)
            inputs = inputs if self.known_mask is None else inputs * self.known_mask
        projected = self.inner.project(inputs)
        # The loop slices the masks that differ by step. A mask per sequence needs no slice.
        self.packed = PackedInputs(projected, *(self.masks if self.per_step else ()))
        if not self.per_step:
            self.masks = [None if mask is None else mask[:, 0] for mask in self.masks]
        return self.packed.joined

    def step(self, projected: Any, feedback: Any, states: Any) -> Any:
        projected, *masks = self.packed.split(projected)
        feedback_mask, output_mask, state_mask = masks or self.masks
        hidden, *others = states
        states = [_masked(hidden, state_mask), *others]
        output, states = self.inner.step(projected, _masked(feedback, feedback_mask), states)
        return _masked(output, output_mask), states


def _masked(tensor: Any, mask: Any) -> Any:
    return tensor if tensor is None or mask is None else tensor * mask
