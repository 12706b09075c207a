"""Several devices and hosts train what one does: the same batches, the same gradients.

Each training is a process of its own, as a failed strategy spoils the process. The devices are
parts of this machine's processor, the hosts two processes that meet over loopback.
"""

import json
import signal
import socket
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from faults.training_process import Training, command, last_arrays, write_corpus

BACKENDS = ["tensorflow", "jax"]
STEPS = 6
# Their gradient is zero by the mathematics, for attention is the same when all keys are moved, and
# Adam makes steps of full size of what rounding leaves.
NO_GRADIENT = ("qkv_bias", "key_value_bias")
# A peak rate of 0.002; one step of Adam the wrong way would be seen.
TOLERANCE = 2e-4
SETTINGS = {
    "model__dropout": 0.0,
    "model__attention_dropout": 0.0,
    "model__activation_dropout": 0.0,
    "training__warmup_steps": 3,
    # What is cut to one norm has lost its size.
    "training__clip_norm": 0,
    "training__validate_every": 3,
    "training__checkpoint_every": 2,
    "training__effective_batch_tokens": 600,
    "training__max_steps": STEPS,
}
TRANSFORMER = tuple(
    f"--set=model.{name}"
    for name in ("num_", "units", "feedforward", "attention_dropout", "activation_dropout")
)
RECURRENT = [f"model.{name}_units" for name in ("embedding", "encoder", "decoder", "attention")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    write_corpus(folder)
    return folder


def arguments(folder, run, options, preset="transformer-tiny", **settings):
    line = command(folder, run, **(SETTINGS | settings))
    if preset == "rnn-small":
        # Those of a Transformer's shape are none of a recurrent model's.
        line = [word for word in line if not word.startswith(TRANSFORMER)]
        line += [f"--set={key}=16" for key in RECURRENT]
    line[line.index("--preset") + 1] = preset
    return [*line, "--device", "cpu", *options.split()]


def two_hosts(folder, run, backend, **settings):
    """The first host's process and the other's."""
    ports = []
    with socket.socket() as one, socket.socket() as other:
        for listener in (one, other):
            listener.bind(("localhost", 0))
            ports.append(listener.getsockname()[1])
    hosts = ",".join(f"localhost:{port}" for port in ports)
    options = f"--backend {backend} --hosts {hosts} --host"
    return [Training(arguments(folder, run, f"{options} {i}", **settings)) for i in (0, 1)]


def both_end(processes, expected=0):
    try:
        ends = [process.end(240) for process in processes]
    finally:
        for training in processes:
            training.process.kill()
            training.process.wait()
    assert [code for code, _ in ends] == [expected] * 2, "\n".join(said for _, said in ends)


def arrays(run):
    """Weights, moments and averages by name, but for what no gradient decides."""
    step = (run / "checkpoints" / "latest").read_text().strip()
    found = safetensors.numpy.load_file(run / "checkpoints" / step / "training.safetensors")
    return {
        name: array
        for name, array in found.items()
        if array.dtype == np.float32 and not any(part in name for part in NO_GRADIENT)
    }


def losses(run: Path) -> list[float]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if line["kind"] == "validation"]


def assert_near(run, alone):
    found, straight = arrays(run), arrays(alone)
    assert found.keys() == straight.keys()
    moments = 0
    for name, array in straight.items():
        # Adam's steps are the same for a gradient twice as large; its moments are not.
        moment = name.endswith(("_momentum", "_velocity"))
        moments += moment
        tolerance = 2e-3 * np.abs(array).max() if moment else TOLERANCE
        np.testing.assert_allclose(found[name], array, rtol=0, atol=tolerance, err_msg=name)
    assert moments > 20
    assert losses(run) == pytest.approx(losses(alone), abs=1e-4)


@pytest.fixture(scope="module", params=BACKENDS)
def ended(request, folder):
    """The backend whose trainings on one device and on two are there, of both families."""
    backend = request.param
    # Two at a time: most of what they do is to start and to compile, which takes one core.
    for preset in ("transformer-tiny", "rnn-small"):
        both = [
            Training(arguments(folder, f"{backend}-{preset}-{count}", options, preset))
            for count, options in (
                (1, f"--backend {backend}"),
                (2, f"--backend {backend} --devices 2"),
            )
        ]
        both_end(both)
    return backend


@pytest.mark.parametrize("preset", ["transformer-tiny", "rnn-small"])
def test_two_devices_are_one(folder, ended, preset):
    assert_near(folder / f"{ended}-{preset}-2", folder / f"{ended}-{preset}-1")


def test_two_hosts_are_one(folder, ended):
    both_end(two_hosts(folder, f"{ended}-hosts", ended))
    assert_near(folder / f"{ended}-hosts", folder / f"{ended}-transformer-tiny-1")


@pytest.mark.parametrize("backend", BACKENDS)
def test_two_hosts_go_on_where_they_were_stopped(folder, backend):
    """A signal to the host that does not write ends both; with dropout, to the last bit."""
    settings = {"model__dropout": 0.2, "training__max_steps": 60, "training__validate_every": 60}
    both_end(two_hosts(folder, f"{backend}-straight", backend, **settings))
    stopped = two_hosts(folder, f"{backend}-stopped", backend, **settings)
    stopped[0].wait_for("model transformer", 120)
    checkpoints = folder / f"{backend}-stopped" / "checkpoints"
    # Both compile; then the first checkpoint shows that updates are made.
    while not (checkpoints / "latest").exists():
        assert stopped[0].process.poll() is None, stopped[0].end()
    stopped[1].process.send_signal(signal.SIGTERM)
    both_end(stopped, 143)
    assert (checkpoints / "latest").read_text().strip() != "step-00000060"
    both_end(two_hosts(folder, f"{backend}-stopped", backend, **settings))
    assert last_arrays(folder / f"{backend}-stopped") == last_arrays(folder / f"{backend}-straight")


def test_devices_that_share_the_weights(folder):
    """With dropout: under JAX its masks are those of the whole batch, however that is cut."""
    options = {"whole": "--backend jax", "shared": "--backend jax --devices 4 --model-devices 2"}
    both_end(
        [
            Training(arguments(folder, run, line, model__dropout=0.2))
            for run, line in options.items()
        ]
    )
    assert_near(folder / "shared", folder / "whole")


def test_a_lost_host_is_said(folder):
    """Killed at once, as a machine that is taken away; JAX notices by itself, but much later."""
    settings = {"training__max_steps": 10**6, "training__validate_every": 10**6}
    processes = two_hosts(folder, "lost", "tensorflow", **settings)
    checkpoints = folder / "lost" / "checkpoints"
    while not (checkpoints / "latest").exists():
        assert processes[0].process.poll() is None, processes[0].end()
    processes[1].process.kill()
    code, said = processes[0].end(120)
    processes[1].end()
    assert code == 1
    assert "another host ended or cannot be reached" in said
    assert "is saved; the same commands go on from there" in said
