"""A variational autoencoder of sentences: reconstruction and interpolation.

    python examples/sentence_space.py [--steps 600]

The model maps 700 generated sentences to 8 numbers each. The script prints the share of words of
new sentences that the model reconstructs and the share for a baseline that predicts the most
frequent word at each position. It then interpolates between two sentences.
"""

import argparse
import random
import tempfile
from pathlib import Path

import numpy as np

import keras_seq

PARTS = (
    "the this a".split(),
    "dog cat man girl horse".split(),
    "sees likes hears follows".split(),
    "the this a".split(),
    "bird tree river house moon".split(),
)


def sentences(count, seed, without=()):
    """Samples distinct sentences that are not in `without`."""
    generator, found = random.Random(seed), {}
    while len(found) < count:
        found[" ".join(generator.choice(words) for words in PARTS)] = True
        for one in without:
            found.pop(one, None)
    return list(found)


def same(texts, others):
    """Share of equal words at equal positions."""
    rows = zip(texts, others, strict=True)
    pairs = [(f"{text} {'? ' * 5}".split(), other.split()) for text, other in rows]
    return np.mean([one[place] == word for one, two in pairs for place, word in enumerate(two)])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=600)
    steps = parser.parse_args().steps
    unseen = sentences(100, seed=2)
    known = sentences(700, seed=1, without=unseen)
    places = zip(*map(str.split, known), strict=True)
    usual = " ".join(max(sorted(set(words)), key=words.count) for words in places)
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "text"
        text.write_text("".join(f"{line}\n" for line in known))
        settings = keras_seq.load_settings(
            preset="vae",
            overrides={
                "data.text": str(text),
                "model.latent_units": 8,
                "model.embedding_units": 32,
                "model.encoder_units": 32,
                "model.decoder_units": 64,
                "model.dropout": 0.0,
                "training.learning_rate": 0.005,
                "training.kl_weight": 0.3,
                "training.ema": 0.9,
                "training.max_steps": steps,
                "training.validate_every": steps,
            },
        )
        keras_seq.train(settings, f"{folder}/run", notice=lambda line: None)
        autoencoder = keras_seq.Autoencoder.load(f"{folder}/run")
        codes = autoencoder.encode(unseen)
        print(f"{np.sum(codes.var(axis=0) > 0.01)} of 8 numbers tell sentences apart")
        right, guess = same(autoencoder.reconstruct(unseen), unseen), same([usual] * 100, unseen)
        print(f"{right:.1%} of the words of unseen sentences come back; {guess:.1%} are the usual")
        for line in autoencoder.interpolate(unseen[0], unseen[1], steps=5):
            print(" ", line)


if __name__ == "__main__":
    main()
