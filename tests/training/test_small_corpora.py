"""The default settings for small corpora, and their quality."""

import random

import pytest

from keras_seq.inference.translator import Translator
from keras_seq.preparation import open_or_prepare, resolve_settings
from keras_seq.serving import SavedModelTranslator, export_saved_model
from keras_seq.training import train


def reversed_capitals(count, seed):
    generator = random.Random(seed)
    words = set()
    while len(words) < count:
        words.add("".join(generator.choices("abcdef", k=generator.randrange(2, 5))))
    return [(word, word[::-1].upper()) for word in sorted(words)]


@pytest.fixture
def pairs_file(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in reversed_capitals(300, 1)))
    return path


@pytest.mark.slow
@pytest.mark.weekly
def test_members_are_trained_resumed_exported_and_proved(pairs_file, tmp_path):
    """A resumed ensemble with hard attention ends with the weights of an uninterrupted one."""
    overrides = {
        "data.pairs": str(pairs_file),
        "model.family": "rnn",
        "model.attention": "hard",
        "model.members": 2,
        "model.embedding_units": 8,
        "model.encoder_units": 8,
        "model.decoder_units": 16,
        "training.max_steps": 4,
        "training.validate_every": 2,
        "training.checkpoint_every": 2,
    }

    def run(name, **more):
        settings, counts = resolve_settings(overrides={**overrides, **more})
        prepared = open_or_prepare(settings, tmp_path / name, counts=counts)
        train(prepared.settings, prepared, notice=lambda line: None)
        prepared.unlock()
        return prepared

    whole = run("whole")
    run("parts", **{"training.max_steps": 2})
    parts = run("parts")
    assert whole.settings.model.members == 2
    assert whole.settings.data.concatenation == 2.0
    weights = [
        (one.path / "checkpoints" / "step-00000004" / "weights.safetensors").read_bytes()
        for one in (whole, parts)
    ]
    assert weights[0] == weights[1]
    lines = [a for a, _ in reversed_capitals(20, 2)]
    expected = Translator.load(whole.path)(lines)
    export_saved_model(whole, tmp_path / "served", verify=0)
    assert SavedModelTranslator(tmp_path / "served" / "1")(lines) == expected


@pytest.mark.slow
@pytest.mark.weekly
def test_spellings_are_learned_by_default(tmp_path):
    """BLEU is 0 for single words, so training must monitor exact match instead."""
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in reversed_capitals(800, 3)))
    notices: list[str] = []
    settings, counts = resolve_settings(
        overrides={
            "data.pairs": str(path),
            "model.family": "rnn",
            "model.members": 1,
            "model.encoder_units": 64,
            "model.decoder_units": 128,
            "model.dropout": 0.2,
            "training.max_epochs": 20,
        },
        notice=notices.append,
    )
    run = open_or_prepare(settings, tmp_path / "run", notice=notices.append, counts=counts)
    result = train(run.settings, run, notice=notices.append)
    assert any("judged by exact match" in line for line in notices)
    assert (result.metric, result.best_step) != ("bleu", 0)
    assert result.best >= 60
