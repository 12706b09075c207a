"""Tags names of people and places with a recurrent network and a conditional random field.

    python examples/tagger.py [--steps 200]

Any word can be part of any name, so only the context shows what a name refers to. Names have one to
three words, tagged as B-PER I-PER I-PER. The random field learns that I-PER cannot follow B-LOC.
"""

import argparse
import random
import tempfile
from pathlib import Path

import keras_seq
from keras_seq.scoring import entity_scores

WORDS = "paris london sydney florence jordan austin madison chelsea logan brooklyn".split()


def sentence(generator):
    """Samples a sentence and its tags; names of both kinds consist of one to three WORDS."""
    words, tags = [], []
    for part in generator.choice(
        (
            ("mr", "PER", "lives in", "LOC"),
            ("LOC", "is where", "PER", "works"),
            ("PER", "and", "PER", "left", "LOC"),
        )
    ):
        if part in ("PER", "LOC"):
            named = generator.choices(WORDS, k=generator.randint(1, 3))
            words += named
            tags += [f"B-{part}", *[f"I-{part}"] * (len(named) - 1)]
        else:
            words += part.split()
            tags += ["O"] * len(part.split())
    return " ".join(words), " ".join(tags)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    steps = parser.parse_args().steps
    generator = random.Random(1)
    lines = [sentence(generator) for _ in range(2500)]
    with tempfile.TemporaryDirectory() as folder:
        for name, part in (("train", lines[:1900]), ("valid", lines[1900:2000])):
            text = "".join(f"{words}\t{tags}\n" for words, tags in part)
            Path(folder, f"{name}.tsv").write_text(text, encoding="utf-8")
        settings = keras_seq.load_settings(
            preset="tag-birnn",
            overrides={
                "data.labeled": f"{folder}/train.tsv",
                "data.valid_labeled": f"{folder}/valid.tsv",
                "model.embedding_units": 32,
                "model.units": 32,
                "training.max_steps": steps,
                "training.batch_tokens": 1000,
                "training.schedule": "constant",
                "training.learning_rate": 0.01,
            },
        )
        result = keras_seq.train(settings, Path(folder, "run"), notice=lambda line: None)
        given = keras_seq.Tagger.load(result.path).tag([words for words, _ in lines[2000:]])
    scores = entity_scores(
        [tags.split() for _, tags in lines[2000:]], [found.tags for found in given]
    )
    print(scores.table())
    print(f"F1 of entities in 500 sentences: {scores.f1:.3f}")


if __name__ == "__main__":
    main()
