"""An encoder-decoder with attention out of single layers, trained to reverse strings.

    python examples/attention_from_parts.py [--steps 400]

Shows the layers in a plain functional Keras model: a bidirectional GRU reads,
a GRU cell with Bahdanau attention writes. Padding (id 0) is masked throughout.
"""

import argparse

import keras
import numpy as np

from keras_seq import layers
from keras_seq.training import SequenceCrossEntropy

LETTERS, START, END = 20, 2, 3
VOCABULARY = LETTERS + 4


def pairs(count, longest, generator):
    """Random strings and their reversals: source, decoder input, decoder output."""
    source = np.zeros((count, longest + 1), "int32")
    target = np.zeros((count, longest + 2), "int32")
    for row in range(count):
        letters = generator.integers(4, VOCABULARY, generator.integers(3, longest + 1))
        source[row, : len(letters) + 1] = [*letters, END]
        target[row, : len(letters) + 2] = [START, *letters[::-1], END]
    return source, np.where(target[:, :-1] == END, 0, target[:, :-1]), target[:, 1:]


def build(units):
    source = keras.Input((None,), dtype="int32", name="source")
    target = keras.Input((None,), dtype="int32", name="target")
    embedded = keras.layers.Embedding(VOCABULARY, units, mask_zero=True)(source)
    encoded = keras.layers.Bidirectional(keras.layers.GRU(units, return_sequences=True))(embedded)
    cell = layers.AttentionCell(keras.layers.GRUCell(units), layers.BahdanauAttention(units))
    inputs = keras.layers.Embedding(VOCABULARY, units, mask_zero=True)(target)
    hidden, _ = layers.AttentionDecoder(cell)(inputs, encoded)
    return keras.Model([source, target], keras.layers.Dense(VOCABULARY)(hidden))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--units", type=int, default=64)
    arguments = parser.parse_args()
    keras.utils.set_random_seed(1)
    generator = np.random.default_rng(1)
    model = build(arguments.units)
    model.compile(keras.optimizers.Adam(3e-3, global_clipnorm=1.0), SequenceCrossEntropy())

    source, inputs, outputs = pairs(64 * arguments.steps, 10, generator)
    model.fit([source, inputs], outputs, batch_size=64, verbose=0)

    source, inputs, outputs = pairs(200, 10, generator)
    guesses = np.argmax(model.predict([source, inputs], verbose=0), axis=-1)
    right = np.sum((guesses == outputs) & (outputs != 0)) / np.sum(outputs != 0)
    print(f"{right:.1%} of the letters of unseen strings right, given those before")


if __name__ == "__main__":
    main()
