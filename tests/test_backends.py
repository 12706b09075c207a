"""The same laws hold on JAX: their tests run once more in processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

import keras
import pytest
from compiling import quickly_and_once

ROOT = Path(__file__).resolve().parents[1]
ACCUMULATION = "tests/training/test_accumulation.py"
PRECISION = "tests/training/test_precision.py"
RESUME = "tests/training/test_resume.py"
RUN_EVENTS = "tests/training/test_run_events.py"
TESTS = [
    "tests/conformance",
    "tests/search",
    "tests/layers/test_float32_islands.py",
    "tests/training/test_ctc_loss.py",
    "tests/training/test_label_losses.py",
    "tests/training/test_latent.py",
    "tests/training/test_losses.py",
    "tests/training/test_optimizer.py",
    # Updates of several batches, and one that is stopped within.
    f"{ACCUMULATION}::test_is_adam_on_the_means_of_three_gradients",
    f"{ACCUMULATION}::test_a_batch_that_is_not_finite_costs_its_update_and_no_other",
    f"{ACCUMULATION}::test_a_model_learns_from_parts_what_it_learns_from_the_whole",
    f"{ACCUMULATION}::test_stopped_within_an_update_it_goes_on_to_the_same_weights",
    # Half precision.
    f"{PRECISION}::test_positions_are_told_apart",
    f"{PRECISION}::test_a_word_looked_up_3000_times_gets_3000_gradients",
    f"{PRECISION}::test_loss_and_gradients_are_near_those_of_float32[transformer-mixed_bfloat16]",
    f"{PRECISION}::test_loss_and_gradients_are_near_those_of_float32[gru-mixed_float16]",
    f"{PRECISION}::test_what_is_not_finite_without_a_scale_is_counted",
    f"{PRECISION}::test_several_batches_share_a_scale",
    f"{PRECISION}::test_an_overflow_in_float16_lowers_the_scale_and_the_training_goes_on",
    "tests/training/test_rates.py",
    "tests/training/test_teaching.py",
    "tests/training/test_weighted_pairs.py",
    # Callbacks in anybody's `fit`, and what a run shows in TensorBoard.
    "tests/training/test_callbacks_alone.py",
    "tests/training/test_callbacks_checkpoint.py",
    "tests/training/test_callbacks_counting.py",
    "tests/training/test_callbacks_exact_checkpoint.py",
    "tests/training/test_callbacks_page.py",
    "tests/training/test_callbacks_progress.py",
    "tests/training/test_callbacks_stop_at_limit.py",
    "tests/training/test_callbacks_stop_at_time.py::test_tells_in_place_of_stopping",
    "tests/training/test_callbacks_stop_on_signal.py",
    "tests/training/test_callbacks_tensorboard.py",
    "tests/training/test_callbacks_validation.py",
    "tests/training/test_skipping_adam.py",
    f"{RUN_EVENTS}::test_the_training_is_the_same_to_the_last_bit[transformer]",
    f"{RUN_EVENTS}::test_the_picture_shows_the_attention_of_the_weights_that_were_validated"
    "[transformer]",
    # A small training from text files to a translation.
    "tests/training/test_trainer.py",
    # A training that goes on where it was stopped.
    f"{RESUME}::test_logs_lose_what_was_not_saved_and_have_no_gap[transformer]",
    f"{RESUME}::test_logs_lose_what_was_not_saved_and_have_no_gap[rnn]",
    "tests/test_doctests.py",
]
# With `--further`: that each layer and model gives on JAX what it gives on TensorFlow, and its
# gradients there, conformance shows.
FURTHER = ["tests/layers", "tests/models"]
# What compares the two backends has done so already.
COMPARISON = "tests/conformance/test_law_backends_agree.py"


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="this is that process")
def test_passes_on_jax(tmp_path, pytestconfig):
    # JAX compiles on one core, and this process waits: hence two workers.
    options = ["--quiet", "-p", "no:cacheprovider", "-n", "2", "--dist", "loadfile"]
    tests = [*TESTS, *FURTHER] if pytestconfig.getoption("--further") else TESTS
    result = subprocess.run(
        [sys.executable, "-m", "pytest", *options, f"--deselect={COMPARISON}", *tests],
        cwd=ROOT,
        env={
            **os.environ,
            **quickly_and_once(tmp_path),
            "KERAS_BACKEND": "jax",
            # Of variants the first: see tests/conformance/conftest.py.
            "KERAS_SEQ_ROWS": "first",
        },
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, f"{result.stdout[-8000:]}\n{result.stderr[-2000:]}"
