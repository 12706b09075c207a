"""Trainings that devices or hosts share, each in a process of its own, and what they come to."""

import json
import shutil
import socket
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from faults.training_process import Training, command

BACKENDS = ["tensorflow", "jax"]
FAMILIES = ["transformer-tiny", "rnn-small"]
STEPS = 6
# Their gradient is zero by the mathematics, for attention is the same when all keys are moved, and
# Adam makes steps of full size of what rounding leaves.
NO_GRADIENT = ("qkv_bias", "key_value_bias")
DROPOUTS = ("dropout", "attention_dropout", "activation_dropout")
SETTINGS = {
    **{f"model__{name}": 0.0 for name in DROPOUTS},
    "training__warmup_steps": 3,
    # A step of Adam the wrong way would be seen at the tolerance below.
    "training__learning_rate": 0.005,
    # What is cut to one norm has lost its size.
    "training__clip_norm": 0,
    "training__validate_every": 3,
    "training__checkpoint_every": 2,
    "training__effective_batch_tokens": 600,
    "training__max_steps": STEPS,
}
TOLERANCE = 2e-4
# Masks under JAX are those of the whole batch, however that is cut.
SAME_DROPOUT = {"tensorflow": {}, "jax": {f"model__{name}": 0.2 for name in DROPOUTS}}
TRANSFORMER = tuple(
    f"--set=model.{name}"
    for name in ("num_", "units", "feedforward", "attention_dropout", "activation_dropout")
)
# Says when an update was made, and leaves time to answer.
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
RECURRENT = [f"model.{name}_units" for name in ("embedding", "encoder", "decoder", "attention")]


def arguments(folder, run, options, preset="transformer-tiny", **settings):
    """The command line of a small training in `folder`."""
    line = command(folder, run, **(SETTINGS | settings))
    if preset == "rnn-small":
        # Those of a Transformer's shape are none of a recurrent model's.
        line = [word for word in line if not word.startswith(TRANSFORMER)]
        line += [f"--set={key}=16" for key in RECURRENT]
    line[line.index("--preset") + 1] = preset
    return [*line, "--device", "cpu", *options.split()]


def before(backend, code):
    """Python to run first, which may import Keras."""
    return f"import os\nos.environ['KERAS_BACKEND'] = '{backend}'\n{code}"


def addresses():
    """Of two hosts on this machine."""
    ports = []
    with socket.socket() as one, socket.socket() as other:
        for listener in (one, other):
            listener.bind(("localhost", 0))
            ports.append(listener.getsockname()[1])
    return ",".join(f"localhost:{port}" for port in ports)


def two_hosts(folder, run, options, code="", **settings):
    """The first host's process and the other's."""
    options = f"{options} --hosts {addresses()} --host-index"
    return [Training(arguments(folder, run, f"{options} {i}", **settings), code) for i in (0, 1)]


def all_end(processes, expected=0):
    """What each of them said, all of which end with the code that is expected."""
    processes = list(processes)
    try:
        ends = [process.end(240) for process in processes]
    finally:
        for training in processes:
            training.process.kill()
            training.process.wait()
    said = [said for _, said in ends]
    assert [code for code, _ in ends] == [expected] * len(processes), "\n".join(said)
    # TensorFlow calls it CPU and JAX cpu.
    return [lines.lower() for lines in said]


def last_step(run):
    """The step of the newest checkpoint."""
    return int((run / "checkpoints" / "latest").read_text().strip().removeprefix("step-"))


def copy_of(run, name, step):
    """A run as one is left that was killed after the checkpoint of a step."""
    copy = run.with_name(name)
    shutil.copytree(run, copy, symlinks=True)
    for checkpoint in (copy / "checkpoints").glob("step-*"):
        if int(checkpoint.name.removeprefix("step-")) > step:
            shutil.rmtree(checkpoint)
    (copy / "checkpoints" / "latest").write_text(f"step-{step:08}\n")
    return copy


def all_arrays(run):
    """Arrays of the newest checkpoint by name."""
    step = (run / "checkpoints" / "latest").read_text().strip()
    return safetensors.numpy.load_file(run / "checkpoints" / step / "training.safetensors")


def number(arrays, name):
    """A number that the optimizer counts."""
    (found,) = (array for key, array in arrays.items() if key.endswith(f"/{name}"))
    return float(found)


def losses(run: Path) -> list[float]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if line["kind"] == "validation"]


def assert_near(run, alone, tolerance=TOLERANCE):
    """Weights, moments, averages and validations are those of another run, to rounding."""
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
        # Adam's steps are the same for a gradient twice as large; its moments are not.
        moment = name.endswith(("_momentum", "_velocity"))
        moments += moment
        allowed = 2e-3 * np.abs(array).max() if moment else tolerance
        np.testing.assert_allclose(found[name], array, rtol=0, atol=allowed, err_msg=name)
    assert moments > 20
    assert losses(run) == pytest.approx(losses(alone), abs=1e-4)
