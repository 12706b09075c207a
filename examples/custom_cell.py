"""A custom recurrent cell in a model, trained to count open brackets.

    python examples/custom_cell.py [--steps 300]

Any cell that works in `keras.layers.RNN` can replace a cell of this package: in a stack, in both
directions, with residual connections, with attention. This cell is FastGRNN (Kusupati et al.,
2018, https://arxiv.org/abs/1901.02358), whose gate and candidate share their matrices. The model
predicts the number of open brackets after each bracket.
"""

import argparse

import keras
import numpy as np
from keras import ops

from keras_seq import layers

DEEPEST = 6
OPEN, CLOSE = 1, 2


@keras.saving.register_keras_serializable(package="examples")
class FastGRNNCell(keras.layers.Layer):
    """One step: z = sigmoid(W x + U h + b_z), h' = z h + (s (1 - z) + n) tanh(W x + U h + b_h)."""

    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.state_size = self.output_size = units

    def build(self, input_shape):
        self.kernel = self.add_weight(shape=(input_shape[-1], self.units), name="kernel")
        self.recurrent_kernel = self.add_weight(
            shape=(self.units, self.units), initializer="orthogonal", name="recurrent_kernel"
        )
        self.bias = self.add_weight(shape=(2, self.units), initializer="zeros", name="bias")
        # sigmoid(3) is about 1 and sigmoid(-3) about 0, so the cell starts as a pure gate.
        start = keras.initializers.Constant
        self.scale = self.add_weight(shape=(), initializer=start(3.0), name="scale")
        self.shift = self.add_weight(shape=(), initializer=start(-3.0), name="shift")

    def call(self, inputs, states, training=None):
        hidden = states[0]
        shared = ops.matmul(inputs, self.kernel) + ops.matmul(hidden, self.recurrent_kernel)
        gate = ops.sigmoid(shared + self.bias[0])
        candidate = ops.tanh(shared + self.bias[1])
        new = ops.sigmoid(self.scale) * (1 - gate) + ops.sigmoid(self.shift)
        hidden = gate * hidden + new * candidate
        return hidden, [hidden]

    def get_initial_state(self, batch_size=None):
        return [ops.zeros((batch_size, self.units), dtype=self.compute_dtype)]

    def get_config(self):
        return {**super().get_config(), "units": self.units}


def brackets(count, longest, generator):
    """Random bracket strings, padded with 0, and the number of open brackets after each."""
    ids, depths = np.zeros((2, count, longest), "int32")
    for row in range(count):
        depth = 0
        for place in range(generator.integers(longest // 2, longest + 1)):
            opens = depth == 0 or (depth < DEEPEST and generator.random() < 0.5)
            depth += 1 if opens else -1
            ids[row, place], depths[row, place] = OPEN if opens else CLOSE, depth
    return ids, depths


def build(units):
    ids = keras.Input((None,), dtype="int32")
    hidden = keras.layers.Embedding(3, units, mask_zero=True)(ids)
    cells = layers.stacked([FastGRNNCell(units), FastGRNNCell(units)], residual=True)
    hidden = layers.RNN(cells, return_sequences=True)(hidden)
    return keras.Model(ids, keras.layers.Dense(DEEPEST + 1)(hidden))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--units", type=int, default=32)
    arguments = parser.parse_args()
    keras.utils.set_random_seed(1)
    generator = np.random.default_rng(1)
    model = build(arguments.units)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(3e-3, global_clipnorm=1.0), loss)
    ids, depths = brackets(64 * arguments.steps, 20, generator)
    model.fit(ids, depths, sample_weight=(ids > 0).astype("float32"), batch_size=64, verbose=0)

    ids, depths = brackets(200, 40, generator)
    guesses = model.predict(ids, verbose=0).argmax(axis=-1)
    right = (guesses == depths)[ids > 0].mean()
    print(f"{right:.1%} of the brackets counted right in strings twice as long as any before")


if __name__ == "__main__":
    main()
