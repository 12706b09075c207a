"""Makes two labeled data sets from Multi30k captions and trains models on them.

    python benchmarks/labeled_multi30k.py --multi30k FOLDER --output FOLDER

* `order-*.tsv`: is an English caption in its original word order or shuffled? A bag of words has no
  word order, so it cannot tell.
* `case-*.tsv`: which words of a lowercased German caption are capitalized? Nouns are, so the task
  needs some grammar. The baseline is the most frequent tag of each word.

The input folder contains train, val and test_2016_flickr, each as .en.gz and .de.gz. `keras-seq
train` reads the output files. `--max-steps N` trains each of `--models` for N updates (warm-up:
`--warmup-steps`) and scores the checkpoint with the best validation on the test set.
"""

from __future__ import annotations

import argparse
import random
import shutil
import time
from collections import Counter, defaultdict
from pathlib import Path

import machine

import keras_seq
from keras_seq.run import Run
from keras_seq.run.models import load_models
from keras_seq.scoring import label_scores
from keras_seq.text import read_labeled, read_lines

# Data set, preset, and whether a conditional random field predicts the tags.
MODELS = {
    "tag-birnn": ("case", "tag-birnn", False),
    "tag-birnn-crf": ("case", "tag-birnn", True),
    "classify-bag": ("order", "classify-bag", False),
    "classify-birnn": ("order", "classify-birnn", False),
    "classify-transformer": ("order", "classify-transformer", False),
}

FILES = {"train": "train", "valid": "val", "test": "test_2016_flickr"}


def shuffled(lines: list[str], seed: int) -> list[tuple[str, str]]:
    """Captions of at least four words, without periods and commas; about half are shuffled."""
    chance = random.Random(seed)
    found = []
    for line in lines:
        words = line.lower().replace(".", "").replace(",", "").split()
        if len(words) < 4:
            continue
        real = chance.random() < 0.5
        mixed = words[:]
        while not real and mixed == words:
            chance.shuffle(mixed)
        found.append((" ".join(mixed), "real" if real else "shuffled"))
    return found


def capitals(lines: list[str]) -> list[tuple[str, str]]:
    """Lowercased captions, and for each word U if it was capitalized, otherwise l."""
    return [
        (
            " ".join(word.lower() for word in line.split()),
            " ".join("U" if word[:1].isupper() else "l" for word in line.split()),
        )
        for line in lines
        if line.strip()
    ]


def most_frequent(train: list[tuple[str, str]], test: list[tuple[str, str]]) -> str:
    """Scores a baseline that predicts the most frequent tag of each word."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for text, tags in train:
        for word, tag in zip(text.split(), tags.split(), strict=True):
            counts[word][tag] += 1
    guessed = [
        counts[word].most_common(1)[0][0] if word in counts else "l"
        for text, _ in test
        for word in text.split()
    ]
    return label_scores([tag for _, tags in test for tag in tags.split()], guessed).table()


def train(name: str, options: argparse.Namespace) -> Path:
    """Trains a run and returns its directory."""
    kind, preset, crf = MODELS[name]
    settings = keras_seq.load_settings(
        preset=preset,
        overrides={
            "data.labeled": str(options.output / f"{kind}-train.tsv"),
            "data.valid_labeled": str(options.output / f"{kind}-valid.tsv"),
            "training.max_steps": options.max_steps,
            "training.warmup_steps": options.warmup_steps,
            "training.validate_every": max(1, options.max_steps // 4),
            "training.checkpoint_every": max(1, options.max_steps // 4),
            **({"model.crf": True} if crf else {}),
        },
    )
    folder: Path = options.output / name
    if folder.exists():
        shutil.rmtree(folder)
    processor = time.process_time()
    keras_seq.train(settings, folder)
    processor = time.process_time() - processor
    parameters = load_models(Run.open(folder)).count_params()
    print(
        f"\n{name}: {parameters:,} parameters, {options.max_steps:,} updates in {processor:.0f} s "
        "of processor time",
        flush=True,
    )
    return folder


def ask(name: str, folder: Path, options: argparse.Namespace) -> str:
    """Scores a run on the test set."""
    kind = MODELS[name][0]
    tagged = kind == "case"
    rows = list(read_labeled(options.output / f"{kind}-test.tsv", tagged=tagged))
    texts = [text for text, _ in rows]
    if not tagged:
        found = keras_seq.Classifier.load(folder)(texts)
        return label_scores([label for _, label in rows], found).table()
    found = keras_seq.Tagger.load(folder)(texts)
    whole = sum(tags == line for (_, tags), line in zip(rows, found, strict=True))
    scores = label_scores(
        [tag for _, tags in rows for tag in tags.split()],
        [tag for line in found for tag in line.split()],
    )
    return f"{scores.table()}\ntexts whole: {whole / len(rows):.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--multi30k", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--max-steps", type=int, help="train, for so many updates")
    parser.add_argument("--warmup-steps", type=int, default=100)
    parser.add_argument("--models", nargs="*", choices=MODELS, default=list(MODELS))
    options = parser.parse_args()
    print(machine.describe())
    options.output.mkdir(parents=True, exist_ok=True)
    cased = {}
    for number, (name, file) in enumerate(FILES.items(), 1):
        english = list(read_lines(options.multi30k / f"{file}.en.gz"))
        cased[name] = capitals(list(read_lines(options.multi30k / f"{file}.de.gz")))
        for kind, rows in (("order", shuffled(english, number)), ("case", cased[name])):
            content = "".join(f"{text}\t{label}\n" for text, label in rows)
            (options.output / f"{kind}-{name}.tsv").write_text(content, encoding="utf-8")
            print(f"{kind}-{name}.tsv: {len(rows):,} lines")
    print(f"\nthe most frequent tag of each word\n{most_frequent(cased['train'], cased['test'])}")
    for name in options.models if options.max_steps else ():
        print(ask(name, train(name, options), options), flush=True)


if __name__ == "__main__":
    main()
