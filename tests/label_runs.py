"""Short texts with labels or tags, and settings of models that learn them in seconds."""

import random
from pathlib import Path

from keras_seq.settings import Settings, load_settings

WEATHER = {"dry": ["sun", "blue sky"], "wet": ["rain", "drizzle"], "cold": ["snow", "ice"]}
PEOPLE = ["ada king", "alan turing", "emmy", "grace murray hopper"]
PLACES = ["london", "new york", "berlin"]


def labeled_lines(count: int, seed: int) -> list[tuple[str, str]]:
    """Texts labeled with the weather, which one phrase reveals; "dry" is the commonest label."""
    generator = random.Random(seed)
    lines = []
    for _ in range(count):
        (label,) = generator.choices(list(WEATHER), weights=[6, 3, 1])
        words = generator.choices("today we see some more of it".split(), k=3)
        words.insert(generator.randint(0, 3), generator.choice(WEATHER[label]))
        lines.append((" ".join(words), label))
    return lines


def tagged_lines(count: int, seed: int) -> list[tuple[str, str]]:
    """Texts with tags for the names of people and places, of one or more words."""
    generator = random.Random(seed)
    lines = []
    for _ in range(count):
        words, tags = [], []
        for kind, names in (("PER", PEOPLE), ("O", ["lives in", "left"]), ("LOC", PLACES)):
            named = generator.choice(names).split()
            words += named
            if kind == "O":
                tags += ["O"] * len(named)
            else:
                tags += [f"B-{kind}", *[f"I-{kind}"] * (len(named) - 1)]
        lines.append((" ".join(words), " ".join(tags)))
    return lines


def write_lines(path: Path, lines: list[tuple[str, str]]) -> Path:
    path.write_text("".join(f"{text}\t{label}\n" for text, label in lines), encoding="utf-8")
    return path


def label_settings(folder: Path, task: str, **overrides: object) -> Settings:
    """Settings of a small model; writes 200 training and 30 validation lines to `folder`."""
    make = {"classify": labeled_lines, "tag": tagged_lines}[task]
    for name, count, seed in (("train", 200, 1), ("valid", 30, 2)):
        path = folder / f"{task}-{name}.tsv"
        if not path.exists():
            write_lines(path, make(count, seed))
    model = {"model.embedding_units": 16}
    if task == "tag":
        model |= {"model.units": 12, "model.crf": True}
        model |= {"model.cell": "gru", "model.character_filters": 4, "model.form_units": 3}
        model |= {"tokenizer.min_count": 1}
        model |= {"model.dropout": 0.3, "training.source_word_dropout": 0.0}
    else:
        model |= {"model.hidden_units": 16, "model.ngrams": 2}
    return load_settings(
        preset={"classify": "classify-bag", "tag": "tag-birnn"}[task],
        overrides={
            "data.labeled": str(folder / f"{task}-train.tsv"),
            "data.valid_labeled": str(folder / f"{task}-valid.tsv"),
            **model,
            "training.batch_tokens": 400,
            "training.schedule": "constant",
            "training.learning_rate": 0.02,
            "training.ema": 0.5,
            "training.max_steps": 60,
            "training.validate_every": 20,
            "training.checkpoint_every": 20,
            "training.keep_checkpoints": 9,
            "training.sample_count": 2,
        }
        | {key.replace("__", "."): value for key, value in overrides.items()},
    )
