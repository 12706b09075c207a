"""benchmarks/accelerator.py runs, and its operation count of a gradient agrees with XLA's."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from keras_seq.settings import load_settings

pytestmark = pytest.mark.docs

ROOT = Path(__file__).resolve().parents[1]
SHAPE = {
    "model.num_encoder_layers": 1,
    "model.num_decoder_layers": 2,
    "model.units": 256,
    "model.feedforward_units": 512,
    "model.num_heads": 4,
    "tokenizer.size": 2000,
}
ROWS, SOURCE, TARGET = 8, 48, 32
# Counts operations before XLA optimizes the graph, while no matrix product is fused yet.
COUNTED = """
import json, sys
import jax
import keras
import numpy as np
from keras_seq.run.models import build_model
from keras_seq.settings import load_settings
from keras_seq.losses import SequenceCrossEntropy
overrides, vocabulary, rows, source, target = json.loads(sys.argv[1])
model = build_model(load_settings(overrides=overrides), vocabulary, vocabulary)
loss = SequenceCrossEntropy(0.1, "sum")
ids = {"source": np.full((rows, source), 5, "int32"), "target": np.full((rows, target), 5, "int32")}
fixed = [v.value for v in model.non_trainable_variables]
def of(weights):
    logits, _ = model.stateless_call(weights, fixed, ids)
    return loss(ids["target"], logits)
lowered = jax.jit(jax.grad(of)).lower([v.value for v in model.trainable_variables])
print(lowered.cost_analysis()["flops"])
"""


def run(*arguments):
    result = subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"KERAS_BACKEND": "jax", "PYTHONPATH": str(ROOT)},
    )
    assert result.returncode == 0, result.stderr
    return result


@pytest.mark.weekly
def test_accelerator_benchmark_reports_an_update_on_a_cpu():
    small = SHAPE | {"model.units": 16, "model.feedforward_units": 16, "tokenizer.size": 300}
    settings = [f"--set={key}={value}" for key, value in small.items()]
    result = run(
        ROOT / "benchmarks" / "accelerator.py",
        *("--backend", "jax", "--device", "cpu", "--batch-tokens", 64, "--length", 8),
        *("--window", 2, "--windows", 1, "--beam-size", 2, "--sentences", 4, *settings),
    )
    figures = json.loads(result.stdout[result.stdout.index("{") :])
    assert figures["batch"] == [8, 8, 8] and figures["share_of_peak"] is None
    assert figures["target_tokens_per_second"] > 0
    assert figures["sentences_per_second"] > 0
    assert f"peak of '{figures['device']}' unknown: give it by --peak" in result.stderr


def test_operation_count_agrees_with_xla():
    path = ROOT / "benchmarks" / "accelerator.py"
    specification = importlib.util.spec_from_file_location("accelerator", path)
    accelerator = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(accelerator)
    vocabulary = SHAPE["tokenizer.size"]
    counted = accelerator.operations(
        load_settings(overrides=SHAPE).model, ROWS, SOURCE, TARGET, vocabulary
    )
    shape = json.dumps([SHAPE, vocabulary, ROWS, SOURCE, TARGET])
    assert counted == pytest.approx(float(run("-c", COUNTED, shape).stdout), rel=0.05)
