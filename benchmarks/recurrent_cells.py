"""Compares recurrent cells with `keras.layers.GRU` or `LSTM`: compiled forward and backward passes.

    python benchmarks/recurrent_cells.py
    KERAS_BACKEND=jax python benchmarks/recurrent_cells.py --only lstm

Runs one layer over sequences of 30 steps and computes the gradients of all weights and inputs. The
layers take turns, so other load affects all of them equally. A ratio is the median over turns.
`RNN(keras ...)` is a Keras cell in `layers.RNN`. `to_keras` is our cell converted to a Keras layer,
which has a fused kernel on GPUs.
"""

import argparse
import os
import statistics
import time

import machine

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--units", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=15, help="measured turns of each layer")
    parser.add_argument("--only", choices=["gru", "lstm"], help="one of the two tables")
    parser.add_argument("--masked", action="store_true", help="rows of different lengths")
    arguments = parser.parse_args()

    print(machine.describe())
    print(
        f"backend {os.environ.get('KERAS_BACKEND', 'tensorflow')}, batch {arguments.batch}, "
        f"{arguments.steps} steps, {arguments.units} units, forward and backward"
    )
    for kind in ("gru", "lstm"):
        if arguments.only in (None, kind):
            compare(layers_of(kind, arguments.units), arguments)


def layers_of(kind, units):
    """Layer constructors by name, the Keras layer first."""
    import keras

    from keras_seq import layers

    def loop(cell, *arguments, **options):
        return lambda: layers.RNN(cell(units, *arguments, **options), return_sequences=True)

    if kind == "gru":
        return {
            "keras.layers.GRU": lambda: keras.layers.GRU(units, return_sequences=True),
            "RNN(keras GRUCell)": loop(keras.layers.GRUCell),
            "GRUCell": loop(layers.GRUCell),
            "GRUCell reset=before": loop(layers.GRUCell, reset="before"),
            "GRUCell reset=none": loop(layers.GRUCell, reset="none"),
            "GRUCell update=write": loop(layers.GRUCell, update="write"),
            "GRUCell dropout": loop(layers.GRUCell, dropout=0.1, recurrent_dropout=0.1),
            "GRUCell to_keras": lambda: layers.GRUCell(units).to_keras(return_sequences=True),
            "LayerNormSimpleRNNCell": loop(layers.LayerNormSimpleRNNCell),
            "ESNCell": loop(layers.ESNCell),
        }
    return {
        "keras.layers.LSTM": lambda: keras.layers.LSTM(units, return_sequences=True),
        "RNN(keras LSTMCell)": loop(keras.layers.LSTMCell),
        "LSTMCell": loop(layers.LSTMCell),
        "LSTMCell output=None": loop(layers.LSTMCell, output_activation=None),
        "LSTMCell dropout": loop(layers.LSTMCell, dropout=0.1, recurrent_dropout=0.1),
        "LSTMCell to_keras": lambda: layers.LSTMCell(units).to_keras(return_sequences=True),
        "PeepholeLSTMCell": loop(layers.PeepholeLSTMCell),
        "LayerNormLSTMCell": loop(layers.LayerNormLSTMCell),
        "ZoneoutCell(LSTMCell)": lambda: layers.RNN(
            layers.ZoneoutCell(layers.LSTMCell(units)), return_sequences=True
        ),
        "NASCell": loop(layers.NASCell),
    }


def compare(makers, arguments):
    """Runs the layers in turn and prints their times, also relative to the first layer."""
    import numpy as np

    generator = np.random.default_rng(0)
    shape = arguments.batch, arguments.steps, arguments.units
    inputs = generator.normal(size=shape).astype("float32")
    mask = None
    if arguments.masked:
        lengths = generator.integers(1, arguments.steps + 1, arguments.batch)
        mask = np.arange(arguments.steps) < lengths[:, None]
    runs = {name: differentiated(make(), inputs, mask) for name, make in makers.items()}
    for run in runs.values():
        run()
        run()
    turns = {name: [] for name in runs}
    for _ in range(arguments.repeats):
        for name, run in runs.items():
            wall, cpu = time.perf_counter(), time.process_time()
            run()
            turns[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    first = next(iter(runs))
    print(f"\n{'':26}{'wall ms':>10}{'ratio':>8}{'lowest':>9}{'CPU ms':>10}{'ratio':>8}")
    for name, measured in turns.items():
        wall, cpu = ([turn[place] for turn in measured] for place in (0, 1))
        ratios = [
            statistics.median(
                turn[place] / other[place]
                for turn, other in zip(measured, turns[first], strict=True)
            )
            for place in (0, 1)
        ]
        print(
            f"{name:26}{1e3 * statistics.median(wall):10.1f}{ratios[0]:8.2f}"
            f"{1e3 * min(wall):9.1f}{1e3 * statistics.median(cpu):10.1f}{ratios[1]:8.2f}"
        )


def differentiated(layer, inputs, mask):
    """Builds a compiled function that runs forward and backward and waits for all gradients."""
    import keras

    layer.build(inputs.shape)
    if keras.backend.backend() == "jax":
        import jax

        def loss(weights, inputs):
            state = [variable.value for variable in layer.non_trainable_variables]
            outputs, _ = layer.stateless_call(weights, state, inputs, mask=mask, training=True)
            return (outputs**2).sum()

        gradient = jax.jit(jax.grad(loss, argnums=(0, 1)))
        weights = [variable.value for variable in layer.trainable_variables]
        inputs = jax.numpy.asarray(inputs)
        return lambda: jax.block_until_ready(gradient(weights, inputs))

    import tensorflow as tf

    inputs = tf.constant(inputs)

    @tf.function
    def gradient():
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            loss = tf.reduce_sum(tf.square(layer(inputs, mask=mask, training=True)))
        watched = [inputs, *(variable.value for variable in layer.trainable_variables)]
        # Reducing each gradient to one number waits for all of them without copying them.
        return [tf.reduce_max(gradient) for gradient in tape.gradient(loss, watched)]

    return lambda: [number.numpy() for number in gradient()]


if __name__ == "__main__":
    main()
