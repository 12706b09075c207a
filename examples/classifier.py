"""Three text classifiers on a task that depends on word order: who bites?

    python examples/classifier.py [--steps 150]

"the old dog bites a man" and "the old man bites a dog" have the same words, so a bag of words
cannot tell them apart; a recurrent network and a Transformer can. The texts are generated, and the
test texts do not occur in training.
"""

import argparse

import keras
import numpy as np

from keras_seq.models import (
    BagTextEncoder,
    RecurrentTextEncoder,
    TextClassifier,
    TransformerTextEncoder,
)
from keras_seq.scoring import label_scores

ANIMALS, PEOPLE = ("dog", "cat", "goose", "horse"), ("man", "girl", "baker", "queen")
OTHERS = ("the", "a", "old", "quick", "sad", "bites", "kicks", "sees", "today", "again")
# Id 0 is padding, id 1 is an unknown word.
IDS = {word: number for number, word in enumerate((*ANIMALS, *PEOPLE, *OTHERS), 2)}
LABELS = ("animal", "person")


def text(generator):
    """Samples a sentence and its label: 0 if the subject is an animal, 1 if it is a person."""
    pair = [generator.choice(ANIMALS), generator.choice(PEOPLE)]
    label = generator.integers(2)
    subject, object_ = pair[:: -1 if label else 1]
    phrases = []
    for noun in (subject, object_):
        adjective = generator.choice(("old", "quick", "sad", ""))
        phrases.append(f"{generator.choice(('the', 'a'))} {adjective} {noun}")
    verb, end = (
        generator.choice(("bites", "kicks", "sees")),
        generator.choice(("today", "again", "")),
    )
    return f"{phrases[0]} {verb} {phrases[1]} {end}".split(), label


def texts(count, seed, without=()):
    """Samples distinct texts; returns texts, ids `(count, 8)` and labels `(count,)`."""
    generator, found = np.random.default_rng(seed), {}
    while len(found) < count:
        words, label = text(generator)
        if tuple(words) not in without:
            found[tuple(words)] = label
    ids = np.zeros((count, 8), "int32")
    for row, words in zip(ids, found, strict=True):
        row[: len(words)] = [IDS[word] for word in words]
    return found, ids, np.array([*found.values()])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=150)
    steps = parser.parse_args().steps
    keras.utils.set_random_seed(1)
    known, source, labels = texts(2000, seed=1)
    _, unseen, true = texts(500, seed=2, without=known)
    size = len(IDS) + 2
    bag = BagTextEncoder(size, embedding_units=32)
    recurrent = RecurrentTextEncoder(size, embedding_units=32, units=32)
    transformer = TransformerTextEncoder(
        size, num_layers=1, units=32, feedforward_units=64, num_heads=2
    )
    models = [
        TextClassifier(bag, 2, hidden_units=32, dropout=0.3, name="bag_classifier"),
        TextClassifier(recurrent, 2, "last", dropout=0.3, name="recurrent_classifier"),
        TextClassifier(transformer, 2, name="transformer_classifier"),
    ]
    for model in models:
        model.compile(
            keras.optimizers.Adam(0.005),
            keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        )
        generator = np.random.default_rng(3)
        for _ in range(steps):
            rows = generator.integers(len(labels), size=64)
            model.train_on_batch({"source": source[rows]}, labels[rows])
        given = model.predict_on_batch({"source": unseen}).argmax(axis=1)
        scores = label_scores([LABELS[i] for i in true], [LABELS[i] for i in given])
        print(f"{model.name}: {scores.accuracy:.1%} of 500 unseen texts right")
    print(scores.table())


if __name__ == "__main__":
    main()
