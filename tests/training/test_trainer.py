"""A small training: its files, its progress and its reproducibility."""

import json
import math
import re

import keras
import numpy as np
import pytest
from training.toy import LENGTH, assert_equal_tensors, quiet_train, tensors_of, toy_settings

import keras_seq
from keras_seq.preparation import prepare_run

pytestmark = pytest.mark.jax

STEPS, MOMENTUM = 11, 0.5


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("toy")


@pytest.fixture(scope="module")
def first(folder):
    """Trains eleven updates with averages, validations and samples, and saves each update."""
    settings = toy_settings(
        folder,
        training__max_steps=STEPS,
        training__ema=MOMENTUM,
        training__checkpoint_every=1,
        training__validate_every=4,
        training__sample_count=2,
    )
    return quiet_train(settings, folder / "first")


def lines_of(run):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    text = (run / "metrics.jsonl").read_text()
    return [json.loads(line, parse_constant=refuse) for line in text.splitlines()]


def test_training_leaves_a_complete_run_directory(first, folder):
    run = folder / "first"
    names = {path.name for path in run.iterdir()}
    assert names - {"tensorboard"} == {
        "settings.toml",
        "tokenizer",
        "data",
        "checkpoints",
        "metrics.jsonl",
        "samples.txt",
        "README.md",
        "result.json",
        ".lock",
    }
    checkpoints = {path.name for path in (run / "checkpoints").iterdir()}
    steps = {f"step-{step:08}" for step in range(1, STEPS + 1)}
    assert checkpoints == {*steps, "latest", "best"}
    assert {path.name for path in (run / "checkpoints" / "step-00000004").iterdir()} == {
        "weights.safetensors",
        "training.safetensors",
        "state.json",
        "MANIFEST.json",
    }
    assert (run / "checkpoints" / "latest").read_text().strip() == f"step-{STEPS:08}"


def test_training_validates_every_n_updates_and_at_the_end(first, folder):
    result, _ = first
    validations = [line for line in lines_of(folder / "first") if line["kind"] == "validation"]
    assert [line["step"] for line in validations] == [4, 8, STEPS]
    for line in validations:
        assert line["perplexity"] == pytest.approx(math.exp(line["loss"]), rel=1e-3)
        assert 0 <= line["accuracy"] <= 1
        # The lines are symbols separated by spaces, so exact match is monitored.
        assert line["monitor"] == "exact"
        assert 0 <= line["exact"] <= 100 and line["wer"] >= 0
        assert line["minutes"] > 0
        assert line["signature"] == result.signature == "nrefs:1|case:mixed|unit:line"
    best = max(validations, key=lambda line: (line["exact"], -line["wer"]))
    if len({line["exact"] for line in validations}) == 1:
        # While the monitored value is constant, the loss decides.
        best = min(validations, key=lambda line: line["loss"])
    assert result.best_step == best["step"]
    assert (result.metric, result.best) == ("exact", pytest.approx(best["exact"], rel=1e-4))
    marked = (folder / "first" / "checkpoints" / "best").read_text().strip()
    assert marked == f"step-{best['step']:08}"
    assert (result.steps, result.path) == (STEPS, str(folder / "first"))


def test_training_logs_sample_translations_at_each_validation(first, folder):
    samples = (folder / "first" / "samples.txt").read_text().splitlines()
    pairs = [line.split("\t") for line in (folder / "valid.tsv").read_text().splitlines()]
    headings = [line.strip() for line in samples if "step" in line]
    # Two of the twelve validation lines, the same at each validation.
    assert headings == [f"step {step}, line {n}" for step in (4, 8, STEPS) for n in (1, 7)]
    for n, start in ((0, 0), (6, 4)):
        assert samples[start + 1].split(maxsplit=1) == ["source", pairs[n][0]]
        assert samples[start + 2].split(maxsplit=1) == ["reference", pairs[n][1]]
        assert samples[start + 3].split()[0] == "model"


def test_model_card_contains_the_score_and_its_signature(first, folder):
    result, _ = first
    card = (folder / "first" / "README.md").read_text()
    assert f"{result.best:.2f}" in card
    assert result.signature in card
    assert f"{result.best_step} of {STEPS}" in card


def test_training_reports_its_progress_on_standard_error(first):
    _, said = first
    lines = said.splitlines()
    assert any("200 of 200 pairs kept" in line for line in lines)
    assert sum(line.startswith("validation at step") for line in lines) == 3
    assert any(f"validation at step {STEPS}," in line and "EXACT = " in line for line in lines)
    assert any(line.startswith("judged by exact match: the validation ref") for line in lines)


def test_saved_weights_are_the_average_of_the_trained_weights(first, folder):
    average = None
    for step in range(1, STEPS + 1):
        trained = tensors_of(folder / "first", step, "training")
        raw = {
            name.removeprefix("weight/"): array
            for name, array in trained.items()
            if name.startswith("weight/")
        }
        # The decay starts small, so that the average forgets the initial weights.
        momentum = min(MOMENTUM, (step - 1) / (step + 8))
        average = {
            name: momentum * (0 if average is None else average[name]) + (1 - momentum) * array
            for name, array in raw.items()
        }
        kept = tensors_of(folder / "first", step, "weights")
        assert kept.keys() == raw.keys()
        for name, array in kept.items():
            np.testing.assert_allclose(array, average[name], atol=1e-6, err_msg=f"{step} {name}")
    assert any(abs(kept[name] - raw[name]).max() > 1e-4 for name in raw)


def test_checkpoint_contains_weights_optimizer_and_seed_state(first, folder):
    state = json.loads(
        (folder / "first" / "checkpoints" / f"step-{STEPS:08}" / "state.json").read_text()
    )
    assert state["step"] == STEPS
    names = tensors_of(folder / "first", STEPS, "training")
    kinds = {name.split("/")[0] for name in names}
    assert kinds == {"weight", "optimizer", "seed"}
    iterations = next(array for name, array in names.items() if "iteration" in name)
    assert int(iterations) == STEPS


def test_translator_loads_a_trained_run_and_translates_lines(first, folder):
    translator = keras_seq.Translator.load(folder / "first")
    lines = translator(["a b c d e", "", "h g f e d"])
    assert len(lines) == 3
    assert lines[1] == ""
    # The vocabulary has no words but the letters of the corpus.
    assert set(lines[0].split()) <= set("abcdefgh")


@pytest.mark.slow
def test_the_same_seed_gives_the_same_weights_however_often_it_validates(first, folder):
    """The seed alone determines dropout, the order of batches and the initial weights.

    The second training saves only one checkpoint, at the end.
    """
    settings = toy_settings(
        folder,
        training__max_steps=STEPS,
        training__ema=MOMENTUM,
        training__checkpoint_every=100,
        training__validate_every=100,
    )
    notices = []
    # Prepare the run first, as the command line does.
    run = prepare_run(settings, folder / "again", notice=notices.append)
    result, said = quiet_train(settings, run, notice=notices.append)
    assert "validation at step" not in said
    assert any(line.startswith(f"validation at step {STEPS}") for line in notices)
    assert result.steps == STEPS
    for part in ("weights", "training"):
        found, expected = (tensors_of(folder / name, STEPS, part) for name in ("again", "first"))
        assert_equal_tensors(found, expected)


@pytest.mark.slow
def test_training_learns_and_stops_after_max_epochs(folder):
    settings = toy_settings(
        folder,
        seed=3,
        training__max_epochs=7,
        training__max_steps=1000,
        training__ema=0.0,
        training__checkpoint_every=1000,
        training__validate_every=7,
        training__learning_rate=0.02,
    )
    result, said = quiet_train(settings, folder / "learns")
    batches = int(re.search(r"(\d+) batches an epoch", said)[1])
    # 200 rows of 6 tokens, at most 300 per batch; rounding up to few shapes adds batches.
    assert 4 <= batches <= 6
    assert result.steps == 7 * batches
    validations = [line for line in lines_of(folder / "learns") if line["kind"] == "validation"]
    losses = [line["loss"] for line in validations]
    # A random letter costs log 8 per step; knowing where lines end lowers the mean loss.
    assert losses[-1] < min(losses[0], math.log(8))
    assert validations[-1]["accuracy"] > validations[0]["accuracy"]
    assert validations[-1]["accuracy"] > 1 / (LENGTH + 1)
    # Without an average, the checkpoint stores the trained weights for inference.
    kept = tensors_of(folder / "learns", result.steps, "weights")
    trained = tensors_of(folder / "learns", result.steps, "training")
    for name, array in kept.items():
        np.testing.assert_array_equal(array, trained[f"weight/{name}"])
    assert not any("average" in name for name in trained)


@pytest.mark.slow
def test_diverging_training_finishes_and_writes_valid_json_metrics(folder):
    settings = toy_settings(
        folder,
        training__max_steps=6,
        training__learning_rate=100.0,
        training__clip_norm=0.0,
        training__ema=0.0,
        training__validate_every=3,
        model__norm="post",
    )
    result, said = quiet_train(settings, folder / "diverges")
    assert result.steps == 6
    assert said.count("validation at step") == 2
    assert len(lines_of(folder / "diverges")) == 2


def test_cosine_schedule_without_an_end_is_refused(folder):
    settings = toy_settings(folder, training__schedule="cosine")
    with pytest.raises(keras_seq.InputError, match="set training.max_epochs or training.max_steps"):
        keras_seq.train(settings, folder / "endless", notice=[].append)
    assert not (folder / "endless").exists()
    limits = {"training__max_steps": 5, "training__warmup_steps": 5}
    settings = toy_settings(folder, training__schedule="cosine", **limits)
    with pytest.raises(keras_seq.InputError, match="expected less than the 5 updates"):
        keras_seq.train(settings, folder / "short", notice=[].append)


def test_train_rejects_a_directory_that_already_has_a_run(first, folder):
    settings = toy_settings(folder, training__max_steps=1)
    with pytest.raises(keras_seq.InputError, match="has a run already"):
        keras_seq.train(settings, folder / "first", resume="never")
    assert len(list((folder / "first" / "checkpoints").iterdir())) == STEPS + 2


def test_keras_seq_train_is_the_train_of_keras_seq_training():
    from keras_seq.training import train

    assert keras_seq.train is train
    assert keras.backend.backend() in ("tensorflow", "jax")
