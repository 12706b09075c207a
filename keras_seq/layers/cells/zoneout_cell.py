"""Zoneout around any cell."""

import keras
from keras import ops, tree

from keras_seq.layers.cells.cell_wrapper import CellWrapper
from keras_seq.layers.cells.dropout_cell import DropoutCell
from keras_seq.layers.cells.recurrent_cell import check_rate, single_step_noise
from keras_seq.layers.cells.residual_cell import ResidualCell
from keras_seq.layers.internal.loop_cell import PackedInputs

# Shape letters: B batch, T steps, D input features, U units.


@keras.saving.register_keras_serializable(package="keras_seq")
class ZoneoutCell(CellWrapper):
    """Leaves a share of a cell's state as it was (Krueger et al., 2017).

        s'_t = cell(x_t, s_{t-1})
        s_t  = d_t * s_{t-1} + (1 - d_t) * s'_t

    In training d_t is 1 with the rate of zoneout, for every step and unit by
    itself, and else 0; at inference it is the rate. Unlike dropout this loses
    nothing of what was remembered, and gradients pass unchanged where a unit
    stays as it was. The output is the new first state. Keras has no such cell.

    Shapes: B batch, D input features, U units.

    Args:
        cell: A recurrent cell whose first state is its output.
        zoneout: Float in [0, 1), the rate for every state, or a list of one
            for each: [hidden, carry] of an LSTM, whose paper has 0.05 and 0.5.
            Defaults to 0.1.
        seed: Optional integer, makes the noise reproducible.

    Call arguments:
        inputs: Float tensor `(B, D)`.
        states: List of the cell's states.
        training: This must be false: noise is drawn before a loop, by
            `keras_seq.layers.RNN`.

    Returns:
        output: Tensor `(B, U)` in the compute dtype, the new first state.
        states: List of the new states.

    Masks: a step has none; `keras_seq.layers.RNN` steps over what is masked.

    Raises:
        ValueError: If `cell` is no cell or has another output than its first
            state, or `zoneout` is outside [0, 1) or not one rate a state; when
            called in training by another layer than `keras_seq.layers.RNN`.

    Example:

    >>> layer = RNN(ZoneoutCell(LSTMCell(4), zoneout=[0.05, 0.5]))
    >>> tuple(layer(keras.ops.ones((2, 7, 3)), training=True).shape)
    (2, 4)

    Reference:
        Krueger et al., "Zoneout: Regularizing RNNs by Randomly Preserving
        Hidden Activations", ICLR 2017, section 3.2,
        https://arxiv.org/abs/1606.01305
    """

    def __init__(self, cell, zoneout=0.1, seed=None, **kwargs):
        super().__init__(cell, **kwargs)
        if isinstance(cell, (ResidualCell, DropoutCell)):
            raise ValueError(
                f"The output of the {type(cell).__name__} {cell.name!r} is not its first state, "
                "which zoneout asks for: put the ZoneoutCell inside it."
            )
        sizes = tree.flatten(cell.state_size)
        rates = list(zoneout) if isinstance(zoneout, (list, tuple)) else [zoneout] * len(sizes)
        if len(rates) != len(sizes):
            raise ValueError(
                f"`zoneout` must be a rate or one for each of the {len(sizes)} states of "
                f"{cell.name!r}, received {zoneout!r}."
            )
        for rate in rates:
            check_rate(rate, "zoneout")
        self.zoneout = rates
        self.seed = seed
        self.seed_generator = keras.random.SeedGenerator(seed)

    def call(self, inputs, states, training=None):
        if training and any(self.zoneout):
            raise single_step_noise(self)
        old = list(states) if tree.is_nested(states) else [states]
        _, new = self.cell(inputs, old, training=training)
        return self.mix(old, new, self.zoneout)

    def mix(self, old, new, shares):
        """Output and states, of each state the given share from before."""
        states = [
            share * before + (1 - share) * after
            for before, after, share in zip(old, tree.flatten(new), shares, strict=True)
        ]
        return states[0], states

    def in_loop(self, features, summary_features=0, noise_shape=None):
        inner = super().in_loop(features, summary_features, noise_shape)
        return _ZoneoutInLoop(self, inner, noise_shape)

    def draw_noise(self, noise_shape):
        """For each state 1 where it stays as it was and 0 elsewhere, `(B, T, U)`."""
        return [
            ops.cast(
                keras.random.uniform((*noise_shape, size), seed=self.seed_generator) < rate,
                self.compute_dtype,
            )
            for rate, size in zip(self.zoneout, tree.flatten(self.state_size), strict=True)
        ]

    def get_config(self):
        return {**super().get_config(), "zoneout": self.zoneout, "seed": self.seed}


class _ZoneoutInLoop:
    """A `ZoneoutCell` for every step of a loop: its noise rides beside the inputs."""

    def __init__(self, cell, inner, noise_shape):
        self.cell = cell
        self.inner = inner
        self.noise = [] if noise_shape is None else cell.draw_noise(noise_shape)

    def project(self, inputs, summary=None):
        self.lanes = PackedInputs(self.inner.project(inputs, summary), *self.noise)
        return self.lanes.joined

    def step(self, projected, fed, states):
        projected, *noise = self.lanes.split(projected)
        old = list(states)
        _, new = self.inner.step(projected, fed, old)
        return self.cell.mix(old, new, noise or self.cell.zoneout)
