"""Transformer classifiers and taggers learn from the order of words and can be exported."""

import itertools
import random

import pytest

import keras_seq
from keras_seq.run import Run
from keras_seq.serving import export_saved_model
from keras_seq.serving.graph_file.operations import ALLOWED, operations
from keras_seq.settings import load_settings
from keras_seq.training import train

pytestmark = pytest.mark.slow


def same_as_before(count, seed):
    """Returns texts of letters with tags that say whether a letter equals the one before."""
    generator = random.Random(seed)
    lines = []
    for _ in range(count):
        letters = generator.choices("ab", k=generator.randint(3, 6))
        tags = ["new", *("same" if a == b else "new" for a, b in itertools.pairwise(letters))]
        lines.append((" ".join(letters), " ".join(tags)))
    return lines


@pytest.mark.parametrize(("task", "lines"), [("tag", same_as_before)])
@pytest.mark.weekly
def test_label_transformers_learn_order_and_export_with_allowed_operations(task, lines, tmp_path):
    path = tmp_path / "lines.tsv"
    path.write_text("".join(f"{text}\t{label}\n" for text, label in lines(600, 1)))
    settings = load_settings(
        preset=f"{task}-transformer",
        overrides={
            "data.labeled": str(path),
            "tokenizer.kind": "word",
            "model.character_filters": 4,
            "model.form_units": 3,
            "model.num_layers": 2,
            "model.units": 32,
            "model.feedforward_units": 32,
            "model.num_heads": 2,
            "model.dropout": 0.0,
            "training.batch_tokens": 1000,
            "training.schedule": "constant",
            "training.learning_rate": 0.003,
            "training.ema": 0.0,
            "training.max_steps": 150,
            "training.validate_every": 150,
        },
    )
    train(settings, tmp_path / "run", notice=lambda line: None)
    new = lines(100, 2)
    user = {"classify": keras_seq.Classifier, "tag": keras_seq.Tagger}[task]
    found = user.load(tmp_path / "run")([text for text, _ in new])
    pairs = [
        (one, other)
        for answer, (_, label) in zip(found, new, strict=True)
        for one, other in zip(answer.split(), label.split(), strict=True)
    ]
    # Without their order, letters or words predict about half of the labels.
    assert sum(one == other for one, other in pairs) > 0.95 * len(pairs)
    version = export_saved_model(Run.open(tmp_path / "run"), tmp_path / "served", verify=5)
    assert operations(version) <= ALLOWED
