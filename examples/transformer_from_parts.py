"""A Transformer built from single layers and trained to sort strings.

    python examples/transformer_from_parts.py [--steps 400]

Blocks, positions and a shared embedding form a functional Keras model.
`keras_seq.models.Transformer` consists of the same layers and adds cached decoding and saving.
"""

import argparse

import keras
import numpy as np

from keras_seq import layers
from keras_seq.losses import SequenceCrossEntropy

LETTERS, START, END, LONGEST = 20, 2, 3, 8
VOCABULARY = LETTERS + 4


def pairs(count, generator):
    """Random strings and their sorted form: source, decoder input, decoder output."""
    source = np.zeros((count, LONGEST + 1), "int32")
    target = np.zeros((count, LONGEST + 2), "int32")
    for row in range(count):
        letters = generator.integers(4, VOCABULARY, generator.integers(3, LONGEST + 1))
        source[row, : len(letters) + 1] = [*letters, END]
        target[row, : len(letters) + 2] = [START, *sorted(letters), END]
    return source, np.where(target[:, :-1] == END, 0, target[:, :-1]), target[:, 1:]


def build(units, depth):
    source = keras.Input((None,), dtype="int32", name="source")
    target = keras.Input((None,), dtype="int32", name="target")
    embedding, position = layers.TokenEmbedding(VOCABULARY, units), layers.SinusoidalPosition()
    block = {"num_heads": 4, "feedforward_units": 4 * units, "norm": "pre"}

    memory = position(embedding(source))
    for _ in range(depth):
        memory = layers.TransformerEncoderBlock(**block)(memory)
    memory = keras.layers.LayerNormalization()(memory)

    hidden = position(embedding(target))
    for _ in range(depth):
        hidden = layers.TransformerDecoderBlock(**block)(hidden, memory)
    hidden = keras.layers.LayerNormalization()(hidden)
    return keras.Model([source, target], embedding(hidden, reverse=True))


def write(model, source):
    """Decodes greedily and runs the full decoder at every step."""
    target = np.zeros((len(source), LONGEST + 2), "int32")
    target[:, 0] = START
    live = np.ones(len(source), bool)
    for step in range(LONGEST + 1):
        logits = model.predict([source, target[:, :-1]], batch_size=len(source), verbose=0)
        target[:, step + 1] = np.where(live, logits[:, step].argmax(axis=-1), 0)
        live &= target[:, step + 1] != END
    return target[:, 1:]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--units", type=int, default=64)
    arguments = parser.parse_args()
    keras.utils.set_random_seed(1)
    generator = np.random.default_rng(1)
    model = build(arguments.units, depth=2)
    model.compile(keras.optimizers.Adam(1e-3, global_clipnorm=1.0), SequenceCrossEntropy())

    source, inputs, outputs = pairs(64 * arguments.steps, generator)
    model.fit([source, inputs], outputs, batch_size=64, verbose=0)

    source, _, outputs = pairs(200, generator)
    right = np.all(write(model, source) == outputs, axis=1)
    print(f"{right.mean():.1%} of 200 unseen strings sorted without a mistake")


if __name__ == "__main__":
    main()
