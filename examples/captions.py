"""Image captioning: a convolutional encoder and a recurrent decoder.

    python examples/captions.py [--steps 1500]

The pictures are generated: two shapes, side by side or one above the other. One fifth of the 2,048
possible captions is held out from training, to test whether the model combines known phrases.
"""

import argparse
import zlib

import keras
import numpy as np

from keras_seq.losses import SequenceCrossEntropy
from keras_seq.models import ConditionedGenerator
from keras_seq.search import beam_search

COLORS = {"red": (1, 0, 0), "green": (0, 0.8, 0), "blue": (0.1, 0.2, 1), "white": (1, 1, 1)}
SIZES, SHAPES = {"small": 3, "large": 6}, ("circle", "square", "triangle", "cross")
WORDS = ["padding", "?", "start", "end", "a", "left", "of", "above", *SIZES, *COLORS, *SHAPES]


def caption(shapes):
    phrases = [f"a {size} {color} {shape}" for size, color, shape, _, _ in shapes]
    return (" left of " if shapes[1][3] - shapes[0][3] > 10 else " above ").join(phrases)


def scene(generator, trained):
    """Samples two shapes (size, color, shape, x, y); the left or upper shape comes first."""
    while True:
        names = [[generator.choice([*k]) for k in (SIZES, COLORS, SHAPES)] for _ in range(2)]
        places = np.array([(8, 24) + generator.uniform(-1, 1, 2), generator.uniform(13, 19, 2)]).T
        flipped = places[:, :: generator.choice([1, -1])]
        shapes = [(*name, *place) for name, place in zip(names, flipped, strict=True)]
        if (zlib.crc32(caption(shapes).encode()) % 5 > 0) == trained:
            return shapes


def picture(shapes):
    """Draws a picture `(32, 32, 3)` with values between 0 and 1."""
    image = np.zeros((32, 32, 3), "float32")
    for size, color, shape, left, top in shapes:
        y, x = np.mgrid[:32, :32] - np.array([top, left])[:, None, None]
        r, high, low = SIZES[size], np.maximum(abs(x), abs(y)), np.minimum(abs(x), abs(y))
        covered = {
            "circle": x**2 + y**2 <= r**2,
            "square": high <= 0.85 * r,
            "triangle": (y <= 0.8 * r) & (2 * abs(x) <= y + r),
            "cross": (low <= r / 3) & (high <= r),
        }
        image[covered[shape]] = COLORS[color]
    return image


def examples(scenes):
    """Pictures, decoder inputs (captions without end) and targets (captions without start)."""
    texts = [["start", *caption(each).split(), "end", "padding"][:12] for each in scenes]
    ids = np.array([[WORDS.index(word) for word in text] for text in texts])
    return {"source": np.stack([*map(picture, scenes)]), "target": ids[:, :-1]}, ids[:, 1:]


def build():
    convolutions = [keras.layers.Conv2D(n, 3, 2, activation="relu") for n in (32, 32, 64)]
    vector = [keras.layers.Flatten(), keras.layers.Dense(128, activation="relu")]
    encoder = keras.Sequential([keras.Input((32, 32, 3)), *convolutions, *vector])
    return ConditionedGenerator(
        encoder, len(WORDS), cell="gru", embedding_units=32, units=128, context="every_step"
    )


def describe(model, scenes):
    pictures = examples(scenes)[0]["source"]
    ids = np.asarray(beam_search(model, pictures, beam_size=4, max_length=12).tokens)[:, 0]
    return [" ".join(WORDS[token] for token in row if token > 3) for row in ids]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1500)
    steps = parser.parse_args().steps
    keras.utils.set_random_seed(1)
    generator, model = np.random.default_rng(1), build()
    rate = keras.optimizers.schedules.CosineDecay(2e-3, steps)
    model.compile(keras.optimizers.Adam(rate), SequenceCrossEntropy())
    inputs, outputs = examples([scene(generator, True) for _ in range(64 * min(steps, 300))])
    model.fit(inputs, outputs, batch_size=64, epochs=-(-steps // 300), verbose=0)
    for kind, trained in (("known", True), ("never seen", False)):
        scenes = [scene(generator, trained) for _ in range(500)]
        said, true = np.array([describe(model, scenes), [caption(each) for each in scenes]])
        print(f"{np.mean(said == true):.1%} of 500 new pictures described right, captions {kind}")
    print(f"{np.mean(said == np.roll(true, 1)):.1%} right with the pictures mixed up")
    (size, _, *rest), other = scenes[0]
    for color in COLORS:
        print(f"painted {color}: {describe(model, [[(size, color, *rest), other]])[0]}")


if __name__ == "__main__":
    main()
