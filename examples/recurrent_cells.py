"""Recurrent cells on a memory task: the sum of two numbers seen many steps ago.

    python examples/recurrent_cells.py [--steps 800] [--length 40]

Each step has a number between 0 and 1 and a mark. Two numbers are marked, one in each half, and the
target is their sum (Hochreiter and Schmidhuber, 1997). A model without memory does best by
predicting 1, with a mean squared error of 1/6 = 0.167.

One step of each cell, with input x, state h and logistic function s:

    simple RNN         h' = tanh(W x + U h + b)
    LSTM               i, f, o = s(W x + U h + b) each;   g = tanh(W x + U h + b)
                       c' = f c + i g;   h' = o tanh(c')
    GRU, reset before  z, r = s(W x + U h + b) each;   g = tanh(W x + U (r h) + b)
                       h' = z h + (1 - z) g
    GRU, reset after   as above, except   g = tanh(W x + b + r (U h + b'))
    minimal GRU        r = 1:   g = tanh(W x + U h + b)

A simple RNN overwrites its state at every step, so stored values fade. The gates of the other cells
can preserve the state (Elman 1990; Gers et al. 2000; Cho et al. 2014).
"""

import argparse

import keras
import numpy as np

from keras_seq import layers

UNITS = 32
CELLS = {
    "simple RNN": keras.layers.SimpleRNNCell,
    "LSTM": layers.LSTMCell,
    "GRU, reset before": lambda units: layers.GRUCell(units, reset="before"),
    "GRU, reset after": lambda units: layers.GRUCell(units, reset="after"),
    "minimal GRU": lambda units: layers.GRUCell(units, reset="none"),
}


def sums(count, length, generator):
    """Numbers and marks `(count, length, 2)`, and the sums `(count, 1)` of the marked numbers."""
    numbers, marks = generator.uniform(size=(count, length)), np.zeros((count, length))
    for half in (0, length // 2):
        marks[np.arange(count), half + generator.integers(length // 2, size=count)] = 1
    inputs = np.stack([numbers, marks], axis=-1).astype("float32")
    return inputs, np.sum(numbers * marks, axis=1, keepdims=True).astype("float32")


def build(cell):
    inputs = keras.Input((None, 2))
    return keras.Model(inputs, keras.layers.Dense(1)(layers.RNN(cell(UNITS))(inputs)))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=800)
    parser.add_argument("--length", type=int, default=40)
    arguments = parser.parse_args()
    generator = np.random.default_rng(1)
    seen = sums(64 * arguments.steps, arguments.length, generator)
    unseen = sums(1000, arguments.length, generator)
    for name, cell in CELLS.items():
        keras.utils.set_random_seed(1)
        model = build(cell)
        model.compile(keras.optimizers.Adam(1e-2, global_clipnorm=1.0), "mse")
        model.fit(*seen, batch_size=64, verbose=0)
        error = model.evaluate(*unseen, batch_size=500, verbose=0)
        said = "learned it" if error < 0.01 else "did not learn it"
        print(f"{name}: mean squared error {error:.4f}, {said}", flush=True)


if __name__ == "__main__":
    main()
