"""Zoneout around a cell."""

from collections.abc import Sequence
from typing import Any

import keras
from keras import ops, tree

from keras_seq.layers.cells.cell_wrapper import CellWrapper
from keras_seq.layers.cells.dropout_cell import DropoutCell
from keras_seq.layers.cells.recurrent_cell import single_step_noise
from keras_seq.layers.cells.residual_cell import ResidualCell
from keras_seq.layers.internal.checks import check_rates
from keras_seq.layers.internal.loop_cell import PackedInputs


@keras.saving.register_keras_serializable(package="keras_seq")
class ZoneoutCell(CellWrapper):
    """Zoneout: a cell that randomly keeps entries of its previous state.

        s'_t = cell(x_t, s_{t-1})
        s_t  = d_t * s_{t-1} + (1 - d_t) * s'_t

    In training each entry of d_t is 1 with probability `zoneout` and 0 otherwise, independently
    for every step and unit. In inference d_t is the rate itself. Unlike dropout, zoneout erases
    no memory, and gradients pass unchanged through the entries that are kept. The output is the
    new first state.

    Args:
        cell: A recurrent cell whose output is its first state.
        zoneout: Float in [0, 1), the rate of all states, or a list with one rate per state. The
            paper uses [0.05, 0.5] for hidden and cell state of an LSTM. Defaults to 0.1.
        seed: Optional integer that makes the noise reproducible.

    Call arguments and outputs are those of `cell`, but `training` must be false: `RNN` draws the
    noise.

    Raises:
        ValueError: If `cell` is not a cell or its output is not its first state, `zoneout` is
            outside [0, 1) or does not have one rate per state; if a layer other than
            `keras_seq.layers.RNN` calls the cell in training.

    Example:

    >>> layer = RNN(ZoneoutCell(LSTMCell(4), zoneout=[0.05, 0.5]))
    >>> tuple(layer(keras.ops.ones((2, 7, 3)), training=True).shape)
    (2, 4)

    Reference:
        Krueger et al., "Zoneout: Regularizing RNNs by Randomly Preserving Hidden Activations",
        ICLR 2017, section 3.2, https://arxiv.org/abs/1606.01305
    """

    def __init__(
        self,
        cell: keras.layers.Layer,
        zoneout: float | Sequence[float] = 0.1,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(cell, **kwargs)
        if isinstance(cell, (ResidualCell, DropoutCell)):
            raise ValueError(
                f"The output of the {type(cell).__name__} {cell.name!r} is not its first state, "
                "which zoneout requires: put the ZoneoutCell inside it."
            )
        sizes = tree.flatten(cell.state_size)
        rates = list(zoneout) if isinstance(zoneout, (list, tuple)) else [zoneout] * len(sizes)
        if len(rates) != len(sizes):
            raise ValueError(
                "`zoneout` must be a rate, or a list with a rate for each of the "
                f"{len(sizes)} states of {cell.name!r}, received {zoneout!r}."
            )
        for rate in rates:
            check_rates(zoneout=rate)
        self.zoneout = rates
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def call(self, inputs: Any, states: Any, training: bool | None = None) -> tuple[Any, Any]:
        if training and any(self.zoneout):
            raise single_step_noise(self)
        old = list(states) if tree.is_nested(states) else [states]
        _, new = self.cell(inputs, old, training=training)
        return self.mix(old, new, self.zoneout)

    def mix(self, old: Any, new: Any, weights: list[Any]) -> tuple[Any, list[Any]]:
        """Returns the output, and the states as weight * old + (1 - weight) * new."""
        states = [
            weight * before + (1 - weight) * after
            for before, after, weight in zip(old, tree.flatten(new), weights, strict=True)
        ]
        return states[0], states

    def in_loop(self, features: int, summary_features: int = 0, noise_shape: Any = None) -> Any:
        inner = super().in_loop(features, summary_features, noise_shape)
        return _ZoneoutInLoop(self, inner, noise_shape)

    def draw_noise(self, noise_shape: Any) -> list[Any]:
        """Returns a tensor `(B, T, U)` for each state: 1 to keep the old value, else 0."""
        return [
            ops.cast(
                keras.random.uniform((*noise_shape, size), seed=self.seed_generator) < rate,
                self.compute_dtype,
            )
            for rate, size in zip(self.zoneout, tree.flatten(self.state_size), strict=True)
        ]


class _ZoneoutInLoop:
    """Loop adapter of a `ZoneoutCell`. The loop slices the noise with the inputs."""

    def __init__(self, cell: Any, inner: Any, noise_shape: Any) -> None:
        self.cell = cell
        self.inner = inner
        self.noise = [] if noise_shape is None else cell.draw_noise(noise_shape)

    def project(self, inputs: Any, summary: Any = None) -> Any:
        self.packed = PackedInputs(self.inner.project(inputs, summary), *self.noise)
        return self.packed.joined

    def step(self, projected: Any, feedback: Any, states: Any) -> Any:
        projected, *noise = self.packed.split(projected)
        old = list(states)
        _, new = self.inner.step(projected, feedback, old)
        return self.cell.mix(old, new, noise or self.cell.zoneout)
