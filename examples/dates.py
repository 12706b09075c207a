"""Trains a model on pairs of strings, translates and scores, in Python.

    python examples/dates.py [--steps 600]

The sources are generated dates in many notations and the targets their ISO form. Replace the pairs
with any two lists of strings.
"""

import argparse
import tempfile
from pathlib import Path

import keras_seq
from keras_seq.text.dates import date_corpus


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--pairs", type=int, default=30_000)
    arguments = parser.parse_args()

    corpus = date_corpus(train=arguments.pairs, valid=200, test=200)
    with tempfile.TemporaryDirectory() as folder:
        train, valid = Path(folder) / "train.tsv", Path(folder) / "valid.tsv"
        for path, pairs in ((train, corpus.train), (valid, corpus.valid)):
            path.write_text("".join(f"{s}\t{t}\n" for s, t in pairs), encoding="utf-8")
        settings = keras_seq.load_settings(
            preset="demo",
            overrides={
                "data.pairs": str(train),
                "data.valid_pairs": str(valid),
                "training.max_steps": arguments.steps,
                "training.validate_every": 300,
                "training.checkpoint_every": 300,
            },
        )
        keras_seq.train(settings, f"{folder}/run")
        translator = keras_seq.Translator.load(f"{folder}/run", beam_size=4)

    sources = [source for source, _ in corpus.test]
    references = [target for _, target in corpus.test]
    hypotheses = translator(sources)
    for source, hypothesis in list(zip(sources, hypotheses, strict=True))[:5]:
        print(f"{source}  ->  {hypothesis}")
    right = sum(h == r for h, r in zip(hypotheses, references, strict=True))
    print(f"{right} of {len(references)} exactly right")
    print(keras_seq.scoring.bleu(hypotheses, [references]).text)


if __name__ == "__main__":
    main()
