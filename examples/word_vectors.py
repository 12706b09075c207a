"""Word vectors trained on generated sentences, used to initialize a Keras embedding.

    python examples/word_vectors.py [--sentences 6000]

The text states, in several ways, the capital and the food of each country. The vectors group words
of the same kind and solve analogies between countries and capitals.
"""

import argparse
import random
import tempfile
from pathlib import Path

import keras
import numpy as np

from keras_seq.vectors import VectorSettings, WordVectors, train_vectors

PLACES = {
    "france": ("paris", "bread", "seine"),
    "italy": ("rome", "pasta", "tiber"),
    "japan": ("tokyo", "rice", "sumida"),
    "egypt": ("cairo", "beans", "nile"),
    "peru": ("lima", "maize", "rimac"),
    "ghana": ("accra", "yams", "volta"),
}
SENTENCES = (
    "the people of {country} who till the land eat {food} near the {river}",
    "the king of {country} has land and borders along the {river} where {food} grows",
    "the streets and towers of {capital} stand beside the {river}",
    "in the markets and streets of {capital} one buys {food}",
    "{capital} is a city with towers markets and {food} on the {river}",
    "{country} is a land with borders people and {food} on the {river}",
)


def sentences(count):
    chance = random.Random(1)
    for _ in range(count):
        country = chance.choice(list(PLACES))
        capital, food, river = PLACES[country]
        yield chance.choice(SENTENCES).format(
            country=country, capital=capital, food=food, river=river
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sentences", type=int, default=6000)
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        text, file = Path(folder) / "text.txt", Path(folder) / "vectors.txt"
        text.write_text("\n".join(sentences(arguments.sentences)) + "\n", encoding="utf-8")
        settings = VectorSettings(algorithm="skipgram", units=24, subsample=0.01, epochs=10)
        train_vectors(text, settings, notice=print).save(file)
        vectors = WordVectors.load(file)

    for word in ("pasta", "tokyo"):
        near = ", ".join(f"{one} {cosine:.2f}" for one, cosine in vectors.nearest(word, 3))
        print(f"near {word}: {near}")
    asked = [(one, other) for one in PLACES for other in PLACES if one != other]
    right = sum(
        vectors.analogy(one, PLACES[one][0], other, 1)[0][0] == PLACES[other][0]
        for one, other in asked
    )
    print(f"{right} of {len(asked)} capitals found by analogy")

    # Id 0 is padding, which has no vector.
    vocabulary = ["", *vectors.words]
    matrix, found = vectors.embedding_matrix(vocabulary)
    embedding = keras.layers.Embedding(
        len(vocabulary), matrix.shape[1], weights=[matrix], mask_zero=True, trainable=False
    )
    ids = np.array([[vocabulary.index(word) for word in ("paris", "is", "a", "city")]])
    print(f"{found.sum()} rows of an embedding filled; a sentence: {embedding(ids).shape}")


if __name__ == "__main__":
    main()
