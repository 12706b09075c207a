"""Runs trainings on several devices or hosts in their own processes and compares the results."""

import json
import shutil
import socket
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from faults.training_process import Training, command

BACKENDS = ["tensorflow", "jax"]
STEPS = 6
# A constant added to all keys does not change attention, so the gradient of the key biases is only
# rounding noise, which Adam amplifies to full-size steps.
NO_GRADIENT = ("qkv_bias", "key_value_bias")
DROPOUTS = ("dropout", "attention_dropout", "activation_dropout")
SETTINGS = {
    **{f"model__{name}": 0.0 for name in DROPOUTS},
    "training__warmup_steps": 3,
    # Large enough that one wrong step of Adam exceeds `TOLERANCE`.
    "training__learning_rate": 0.005,
    # Clipping would normalize the gradients and hide errors in their scale.
    "training__clip_norm": 0,
    "training__validate_every": 3,
    "training__checkpoint_every": 2,
    "training__effective_batch_tokens": 600,
    "training__max_steps": STEPS,
}
TOLERANCE = 2e-4
# JAX samples dropout masks for the global batch, so sharding does not change the masks.
SAME_DROPOUT = {"tensorflow": {}, "jax": {f"model__{name}": 0.2 for name in DROPOUTS}}
# Prints a line after each update, then sleeps so that a test can react.
SLOWLY = """
import time
import keras_seq.training.loop as loop
def slowly(after):
    def said(self, *arguments, **options):
        after(self, *arguments, **options)
        print("update", file=sys.stderr, flush=True)
        time.sleep(0.5)
    return said
loop.TrainingLoop._after_update = slowly(loop.TrainingLoop._after_update)
"""


def arguments(folder, run, options, **settings):
    """Returns the command-line arguments of a small training in `folder`."""
    line = command(folder, run, **(SETTINGS | settings))
    return [*line, "--device", "cpu", *options.split()]


def before(backend, code):
    """Prepends the choice of the backend to `code`, so that `code` may import Keras."""
    return f"import os\nos.environ['KERAS_BACKEND'] = '{backend}'\n{code}"


def addresses():
    """Returns the addresses of two hosts on this machine, separated by a comma."""
    ports = []
    with socket.socket() as one, socket.socket() as other:
        for listener in (one, other):
            listener.bind(("localhost", 0))
            ports.append(listener.getsockname()[1])
    return ",".join(f"localhost:{port}" for port in ports)


def two_hosts(folder, run, options, code="", **settings):
    """Starts the training processes of two hosts."""
    options = f"{options} --hosts {addresses()} --host-index"
    return [Training(arguments(folder, run, f"{options} {i}", **settings), code) for i in (0, 1)]


def all_end(processes, expected=0):
    """Waits for all processes, checks their exit codes and returns their output in lower case."""
    processes = list(processes)
    try:
        ends = [process.end(240) for process in processes]
    finally:
        for training in processes:
            training.process.kill()
            training.process.wait()
    said = [said for _, said in ends]
    assert [code for code, _ in ends] == [expected] * len(processes), "\n".join(said)
    # TensorFlow prints "CPU", JAX prints "cpu".
    return [lines.lower() for lines in said]


def last_step(run):
    """Returns the step of the newest checkpoint."""
    return int((run / "checkpoints" / "latest").read_text().strip().removeprefix("step-"))


def copy_of(run, name, step):
    """Copies a run as it would be after a kill that follows the checkpoint of `step`."""
    copy = run.with_name(name)
    shutil.copytree(run, copy, symlinks=True)
    for checkpoint in (copy / "checkpoints").glob("step-*"):
        if int(checkpoint.name.removeprefix("step-")) > step:
            shutil.rmtree(checkpoint)
    (copy / "checkpoints" / "latest").write_text(f"step-{step:08}\n")
    return copy


def all_arrays(run):
    """Returns the training arrays of the newest checkpoint by name."""
    step = (run / "checkpoints" / "latest").read_text().strip()
    return safetensors.numpy.load_file(run / "checkpoints" / step / "training.safetensors")


def number(arrays, name):
    """Returns the value of a scalar variable of the optimizer."""
    (found,) = (array for key, array in arrays.items() if key.endswith(f"/{name}"))
    return float(found)


def losses(run: Path) -> list[float]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if line["kind"] == "validation"]


def assert_near(run, alone, tolerance=TOLERANCE):
    """Asserts that weights, moments, averages and validations of two runs agree up to rounding."""
    found, straight = (
        {
            name: array
            for name, array in all_arrays(path).items()
            if array.dtype == np.float32 and not any(part in name for part in NO_GRADIENT)
        }
        for path in (run, alone)
    )
    assert found.keys() == straight.keys()
    moments = 0
    for name, array in straight.items():
        # A wrong gradient scale changes the moments of Adam, but not the size of its steps.
        moment = name.endswith(("_momentum", "_velocity"))
        moments += moment
        allowed = 2e-3 * np.abs(array).max() if moment else tolerance
        np.testing.assert_allclose(found[name], array, rtol=0, atol=allowed, err_msg=name)
    assert moments > 20
    assert losses(run) == pytest.approx(losses(alone), abs=1e-4)
