"""The output of `--dry-run`, compared with the files and settings."""

import re

import pytest
from training.toy import toy_settings

from keras_seq.preparation import prepare_run
from keras_seq.run.models import build_run_model
from keras_seq.settings import Settings
from keras_seq.training import plan


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plan")
    return prepare_run(toy_settings(folder, training__ema=0.0), folder / "run")


@pytest.fixture(scope="module")
def text(run):
    return plan(run)


def test_plan_shows_all_settings_as_toml_that_can_be_read_back(run, text):
    toml, _, _ = text.partition("\n\nparameters")
    assert Settings.from_toml(toml) == run.settings


def test_plan_counts_the_parameters_of_the_model(run, text):
    units = 16
    vocabulary = run.source_tokenizer.vocabulary_size
    attention = 4 * (units * units + units)
    feed_forward = 2 * (units * units) + 2 * units
    norm = 2 * units
    encoder = attention + feed_forward + 2 * norm
    decoder = 2 * attention + feed_forward + 3 * norm
    expected = vocabulary * units + encoder + decoder + 2 * norm
    assert f"parameters         {expected:,}\n" in text
    assert build_run_model(run).count_params() == expected


def test_plan_shows_the_first_batch_as_text(text):
    shown = re.search(r"first batch +(\d+) pairs, (\d+) source and (\d+) target steps", text)
    rows, source_steps, target_steps = map(int, shown.groups())
    # Five letters and the end token; rounding up to few shapes adds steps.
    assert 6 <= source_steps <= 8 and 6 <= target_steps <= 8
    assert rows * max(source_steps, target_steps) <= 300
    sources = re.findall(r"^  source +(.+)$", text, re.MULTILINE)
    targets = re.findall(r"^  target +(.+)$", text, re.MULTILINE)
    assert len(sources) == len(targets) == 3
    for source, target in zip(sources, targets, strict=True):
        assert target == source[::-1]


def test_plan_memory_estimate_covers_weights_and_optimizer(run, text):
    guess = float(re.search(r"memory, about +([\d,]+) MiB", text)[1].replace(",", ""))
    parameters = build_run_model(run).count_params()
    # Weights, gradients and two moments, four bytes per value.
    assert guess * 2**20 >= 4 * 4 * parameters - 2**19
    # TensorFlow or JAX itself needs the rest.
    assert guess < 1000


def test_plan_trains_nothing(run, text):
    assert run.checkpoints.latest_step is None
    assert not (run.path / "metrics.jsonl").exists()
