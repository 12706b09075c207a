"""`--batch-tokens auto` finds the largest batch that fits, and survives batches that do not."""

import contextlib
import resource
import signal
import subprocess
import sys
import time

import psutil
import pytest
from faults.training_process import MODEL, SETTINGS, Training, command, write_corpus
from hypothesis import given
from hypothesis import strategies as st
from training.toy import write_pairs

from keras_seq import InputError, Run, load_settings
from keras_seq.preparation import prepare_run
from keras_seq.preparation.batch_size import largest_budget


@given(st.integers(1024, 1 << 20))
def test_largest_budget_is_close_to_the_memory_limit(limit):
    tried = []

    def fits(budget):
        tried.append(budget)
        return budget <= limit

    found = largest_budget(fits, lambda line: None)
    assert found <= limit
    assert found >= 0.64 * limit or found == 1024
    assert max(budget for budget in tried if budget <= limit) * 0.8 <= found + 1
    # Batches that do not fit take long to test.
    assert len([budget for budget in tried if budget > limit]) <= 3


@given(st.integers(1024, 1 << 20))
def test_largest_budget_tries_no_more_than_the_given_maximum(largest):
    tried = []
    found = largest_budget(lambda b: tried.append(b) or True, lambda line: None, largest=largest)
    assert found == max(tried) == largest


def test_no_fitting_budget_raises_input_error():
    with pytest.raises(InputError, match="1,024 tokens"):
        largest_budget(lambda budget: False, lambda line: None)


@pytest.mark.process
@pytest.mark.weekly
def test_batch_search_survives_trial_processes_running_out_of_memory(tmp_path):
    """Limits memory to less than a batch with the whole text needs."""
    write_corpus(tmp_path)
    write_pairs(tmp_path / "train.tsv", 2000, seed=1)
    # 65,536 hidden units per token need much memory, but few weights and little computation.
    overrides = SETTINGS | MODEL | {"model.feedforward_units": 65536}
    files = {"data.pairs": tmp_path / "train.tsv", "data.valid_pairs": tmp_path / "valid.tsv"}
    settings = load_settings(
        preset="transformer-tiny",
        overrides={key: str(value) for key, value in (overrides | files).items()},
    )
    prepare_run(settings, tmp_path / "run").unlock()
    script = (
        "from keras_seq import Devices, Run; from keras_seq.preparation import batch_size; "
        # Skip the binary search between the last budget that fits and the first that does not.
        "batch_size._HALVINGS = 0; "
        f"batch_size.choose_batch_size(Run.open({str(tmp_path / 'run')!r}), Devices('cpu'), print)"
    )
    limit = 2_500_000 << 10
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (limit, limit)),
    )
    assert result.returncode == 0, result.stderr
    *tries, found = result.stdout.strip().split("\n")
    assert tries[0] == "a batch of 1,024 tokens fits"
    assert tries[-1].endswith("does not fit")
    fitting = 1024 << (len(tries) - 2)
    budget = Run.open(tmp_path / "run").settings.training.batch_tokens
    assert budget == max(1024, int(0.8 * fitting))
    assert found == f"--batch-tokens auto: training.batch_tokens = {budget:,}"


@pytest.mark.process
@pytest.mark.weekly
def test_training_keeps_the_batch_size_it_found(tmp_path):
    """Stops the first search; the second run finds the size, and the third run keeps it."""
    write_small_corpus(tmp_path)
    arguments = [*command(tmp_path, "run", training__max_steps=2), "--batch-tokens", "auto"]
    training = Training(arguments)
    (tried,) = children(training)
    code, said, _ = training.signalled(signal.SIGTERM)
    assert code == 143, said
    assert "Traceback" not in said and "training.batch_tokens = " not in said
    wait_for_the_end_of(tried)
    for steps, words in ((2, "training.batch_tokens = 1,"), (3, "training.batch_tokens stays 1,")):
        arguments = command(tmp_path, "run", training__max_steps=steps)
        code, said = Training([*arguments, "--batch-tokens", "auto"]).end(120)
        assert code == 0, said
        assert words in said


def test_killed_training_leaves_no_trial_process(tmp_path):
    write_small_corpus(tmp_path)
    training = Training([*command(tmp_path, "run"), "--batch-tokens", "auto"])
    (tried,) = children(training)
    assert training.signalled(signal.SIGKILL)[0] == -signal.SIGKILL
    wait_for_the_end_of(tried)


def write_small_corpus(folder):
    """Writes a corpus that fits into the smallest batch, so that one trial is enough."""
    write_corpus(folder)
    write_pairs(folder / "train.tsv", 160, seed=1)


def children(training):
    """Waits until a training has child processes and returns their ids."""
    process = psutil.Process(training.process.pid)
    end = time.monotonic() + 120
    while not (found := process.children()):
        assert training.process.poll() is None and time.monotonic() < end, training.end()
        time.sleep(0.05)
    return [child.pid for child in found]


def wait_for_the_end_of(process):
    """Waits at most 5 seconds until a trial process ends; a complete trial takes longer."""
    end = time.monotonic() + 5
    with contextlib.suppress(psutil.NoSuchProcess):
        while psutil.Process(process).status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < end
            time.sleep(0.05)


@pytest.mark.process
@pytest.mark.weekly
def test_batch_search_on_two_devices_keeps_the_effective_batch_size(tmp_path):
    """The batch size is at most the effective batch size, which does not change."""
    write_small_corpus(tmp_path)
    arguments = command(
        tmp_path,
        "run",
        training__max_steps=2,
        training__effective_batch_tokens=900,
    )
    options = "--batch-tokens auto --device cpu --devices 2"
    code, said = Training([*arguments, *options.split()]).end(240)
    assert code == 0, said
    assert "a batch of 1,024 tokens fits\n" in said and "devices 2 (" in said
    training = Run.open(tmp_path / "run").settings.training
    assert training.batch_tokens == 900
    assert training.effective_batch_tokens == 900
    assert "training.batch_tokens = 900\n" in said
