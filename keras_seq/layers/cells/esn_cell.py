"""A reservoir of random, untrained connections."""

import keras
from keras import ops

from keras_seq.layers.cells.recurrent_cell import RecurrentCell, activation_of

# Shape letters: B batch, D input features, U units.

# The largest eigenvalue follows from the 2 ** 20th power to a relative error of a few units over a
# million; each further squaring would halve that.
_SQUARINGS = 20


def spectral_radius(matrix):
    """The largest absolute eigenvalue of a square matrix `(U, U)`, by Gelfand's formula.

        rho(A) = lim |A^k| ^ (1/k), here with k = 2^20 by repeated squaring

    An eigenvalue solver would give complex numbers, and JAX has none on a GPU.
    """
    logarithm = 0.0
    for power in range(_SQUARINGS):
        norm = ops.sqrt(ops.sum(ops.square(matrix)))
        norm = ops.where(norm > 0, norm, 1.0)
        logarithm = logarithm + ops.log(norm) / 2**power
        matrix = matrix / norm
        matrix = ops.matmul(matrix, matrix)
    remaining = ops.sqrt(ops.sum(ops.square(matrix)))
    # Of a matrix whose power is 0 there is no eigenvalue but 0.
    return ops.where(
        remaining > 0,
        ops.exp(logarithm + ops.log(ops.where(remaining > 0, remaining, 1.0)) / 2**_SQUARINGS),
        0.0,
    )


@keras.saving.register_keras_serializable(package="keras_seq")
class ESNCell(RecurrentCell):
    """One step of an echo state network (Jaeger, 2001).

        h' = (1 - leaky) h + leaky tanh(x W + h U + b)

    None of the weights is trained: U is drawn, thinned out to a share
    `connectivity` of its entries and scaled to the given spectral radius.
    Below 1 the network forgets where it began, and a linear layer that is
    trained on h reads from the echoes of the inputs. Keras has no such cell.

    Weights in order: kernel, recurrent_kernel, bias;
    `tfa.rnn.ESNCell` has its recurrent kernel first.

    Shapes: B batch, D input features, U units.

    Args:
        units: Positive integer U.
        connectivity: Float in (0, 1], the share of U that is not 0. Defaults
            to 0.1.
        leaky: Float in (0, 1], how much of the state is renewed. Defaults to 1.
        spectral_radius: Positive float, the largest absolute eigenvalue of U.
            Defaults to 0.9.
        activation: Defaults to "tanh".
        use_bias: Whether there is a bias. Defaults to True.
        kernel_initializer: Of W. Defaults to "glorot_uniform".
        recurrent_initializer: Of U before it is scaled. Defaults to
            "glorot_uniform".
        bias_initializer: Of b. Defaults to "zeros".
        seed: Optional integer, makes the choice of connections reproducible.
        kwargs: As in `GRUCell`: dropout, recurrent_dropout.

    Call arguments:
        inputs: Float tensor `(B, D)`.
        states: List of h `(B, U)`.
        training: With dropout this must be false: masks are drawn before a
            loop, by `keras_seq.layers.RNN`.

    Returns:
        output: h', tensor `(B, U)` in the compute dtype.
        states: List of h'.

    Masks: a step has none; `keras_seq.layers.RNN` steps over what is masked.

    Raises:
        ValueError: If `units` is not a positive integer, a share is outside
            (0, 1] or `spectral_radius` is not positive; at build and call for
            inputs of another rank or width.

    Example:

    >>> cell = ESNCell(20, leaky=0.5)
    >>> tuple(RNN(cell)(keras.ops.ones((2, 7, 3))).shape), cell.trainable_weights
    ((2, 20), [])

    Reference:
        Jaeger, "The 'echo state' approach to analysing and training recurrent
        neural networks", GMD report 148, 2001; Jaeger et al., 2007, equation
        2, for leaky units.
    """

    def __init__(
        self,
        units,
        connectivity=0.1,
        leaky=1.0,
        spectral_radius=0.9,
        activation="tanh",
        recurrent_initializer="glorot_uniform",
        **kwargs,
    ):
        for name, share in (("connectivity", connectivity), ("leaky", leaky)):
            if not 0 < share <= 1:
                raise ValueError(f"`{name}` must be in (0, 1], received {share!r}.")
        if spectral_radius <= 0:
            raise ValueError(f"`spectral_radius` must be positive, received {spectral_radius!r}.")
        super().__init__(units, recurrent_initializer=recurrent_initializer, **kwargs)
        self.connectivity = connectivity
        self.leaky = leaky
        self.spectral_radius = spectral_radius
        self.activation = keras.activations.get(activation)

    @property
    def recurrent_start(self):
        def start(shape, dtype=None):
            connected = keras.random.uniform(shape, seed=self.seed) < self.connectivity
            weights = self.recurrent_initializer(shape, dtype=dtype)
            weights = ops.where(connected, weights, ops.zeros((), weights.dtype))
            radius = spectral_radius(weights)
            # Where no path leads back to a unit there is nothing to scale.
            return weights * ops.where(radius > 0, self.spectral_radius / radius, 1.0)

        return start

    def build(self, input_shape):
        super().build(input_shape)
        for weight in self.weights:
            weight.trainable = False

    def advance(self, inputs, states, recurrent):
        (hidden,) = states
        renewed = activation_of(self.activation)(inputs + recurrent(hidden))
        hidden = hidden + self.leaky * (renewed - hidden)
        return hidden, [hidden]

    def get_config(self):
        return {
            **super().get_config(),
            "connectivity": self.connectivity,
            "leaky": self.leaky,
            "spectral_radius": self.spectral_radius,
            "activation": keras.activations.serialize(self.activation),
        }
