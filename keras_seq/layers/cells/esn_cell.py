"""Echo state cell: a reservoir of random, untrained connections."""

from typing import Any

import keras
from keras import ops

from keras_seq.layers.cells.recurrent_cell import Activation, RecurrentCell, same_dtype
from keras_seq.layers.internal.checks import check_above_zero
from keras_seq.layers.internal.weight_arguments import Initializer

# 20 squarings give the largest eigenvalue with a relative error of a few millionths. Another
# squaring halves the error.
_SQUARINGS = 20


def spectral_radius(matrix: Any) -> Any:
    """Returns the largest absolute eigenvalue of a matrix `(U, U)`, by Gelfand's formula.

        rho(A) = lim |A^k| ^ (1/k), here with k = 2^20 by repeated squaring

    This needs no eigenvalue solver, which JAX lacks on a GPU.
    """
    logarithm = 0.0
    for power in range(_SQUARINGS):
        norm = ops.sqrt(ops.sum(ops.square(matrix)))
        norm = ops.where(norm > 0, norm, 1.0)
        logarithm = logarithm + ops.log(norm) / 2**power
        matrix = matrix / norm
        matrix = ops.matmul(matrix, matrix)
    remaining = ops.sqrt(ops.sum(ops.square(matrix)))
    # All eigenvalues of a matrix are 0 if some power of the matrix is 0.
    return ops.where(
        remaining > 0,
        ops.exp(logarithm + ops.log(ops.where(remaining > 0, remaining, 1.0)) / 2**_SQUARINGS),
        0.0,
    )


@keras.saving.register_keras_serializable(package="keras_seq")
class ESNCell(RecurrentCell):
    """Cell of an echo state network, whose weights are random and not trained.

        h' = (1 - leaky) h + leaky tanh(x W + h U + b)

    U is random, sparse with a fraction `connectivity` of nonzero entries, and scaled to the given
    spectral radius. Below a radius of 1 the state forgets its initial value. Train a linear layer
    on h, which reads the inputs from their echoes in the state.

    The weights are kernel, recurrent_kernel and bias; `tfa.rnn.ESNCell` has its recurrent kernel
    first.

    Args:
        units: Positive integer U.
        connectivity: Float in (0, 1], fraction of U that is not 0. Defaults to 0.1.
        leaky: Float in (0, 1], fraction of the state that a step replaces. Defaults to 1.
        spectral_radius: Positive float, largest absolute eigenvalue of U. Defaults to 0.9.
        activation: Activation of the state. Defaults to "tanh".
        recurrent_initializer: Initializer of U before it is scaled. Defaults to "glorot_uniform".
        seed: Optional integer that makes the choice of connections reproducible.
        kwargs: `use_bias`, the initializers of W and b, `dropout` and `recurrent_dropout`, as in
            `GRUCell`. Regularizers have no effect, because the weights are not trained.

    Shapes, call arguments and outputs are those of `GRUCell`.

    Raises:
        ValueError: As for `GRUCell`; if a fraction is outside (0, 1] or `spectral_radius` is not
            positive.

    Example:

    >>> cell = ESNCell(20, leaky=0.5)
    >>> tuple(RNN(cell)(keras.ops.ones((2, 7, 3))).shape), cell.trainable_weights
    ((2, 20), [])

    Reference:
        Jaeger, "The 'echo state' approach to analysing and training recurrent neural networks",
        GMD report 148, 2001; Jaeger et al., 2007, equation 2, for leaky units.
    """

    def __init__(
        self,
        units: int,
        connectivity: float = 0.1,
        leaky: float = 1.0,
        spectral_radius: float = 0.9,
        activation: Activation = "tanh",
        recurrent_initializer: Initializer = "glorot_uniform",
        **kwargs: Any,
    ) -> None:
        for name, fraction in (("connectivity", connectivity), ("leaky", leaky)):
            if not 0 < fraction <= 1:
                raise ValueError(f"`{name}` must be in (0, 1], received {fraction!r}.")
        check_above_zero(spectral_radius=spectral_radius)
        super().__init__(units, recurrent_initializer=recurrent_initializer, **kwargs)
        self.connectivity = connectivity
        self.leaky = leaky
        self.spectral_radius = spectral_radius
        self.activation = keras.activations.get(activation)

    def initial_recurrent_kernel(self, shape: Any, dtype: Any = None) -> Any:
        connected = keras.random.uniform(shape, seed=self.seed) < self.connectivity
        weights = super().initial_recurrent_kernel(shape, dtype)
        weights = ops.where(connected, weights, ops.zeros((), weights.dtype))
        radius = spectral_radius(weights)
        # A network without a cycle has radius 0 and cannot be scaled.
        return weights * ops.where(radius > 0, self.spectral_radius / radius, 1.0)

    def build(self, input_shape: Any) -> None:
        super().build(input_shape)
        for weight in self.weights:
            weight.trainable = False

    def step(self, inputs: Any, states: Any, recurrent: Any) -> Any:
        (hidden,) = states
        candidate = same_dtype(self.activation)(inputs + recurrent(hidden))
        hidden = hidden + self.leaky * (candidate - hidden)
        return hidden, [hidden]
