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
    "training__validate_every": 3,
    "training__checkpoint_every": 2,
    "training__effective_batch_tokens": 600,
    "training__max_steps": STEPS,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    write_corpus(folder)
    return folder


def arguments(folder, run, options, **settings):
    return [*command(folder, run, **(SETTINGS | settings)), "--device", "cpu", *options.split()]


def trained(folder, run, options, **settings):
    code, said = Training(arguments(folder, run, options, **settings)).end(240)
    assert code == 0, said
    return weights(folder / run)


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


def weights(run):
    step = (run / "checkpoints" / "latest").read_text().strip()
    arrays = safetensors.numpy.load_file(run / "checkpoints" / step / "training.safetensors")
    return {name[7:]: array for name, array in arrays.items() if name.startswith("weight/")}


def losses(run: Path) -> list[float]:
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if line["kind"] == "validation"]


def assert_near(folder, run, alone, straight):
    found = weights(folder / run)
    assert found.keys() == straight.keys()
    for name, array in straight.items():
        if not name.endswith(NO_GRADIENT):
            np.testing.assert_allclose(found[name], array, rtol=0, atol=TOLERANCE, err_msg=name)
    assert losses(folder / run) == pytest.approx(losses(folder / alone), abs=1e-4)


@pytest.fixture(scope="module", params=BACKENDS)
def alone(request, folder):
    """Backend, run and weights of a training on one device."""
    backend = request.param
    return backend, f"{backend}-1", trained(folder, f"{backend}-1", f"--backend {backend}")


def test_two_devices_are_one(folder, alone):
    backend, run, straight = alone
    trained(folder, f"{backend}-2", f"--backend {backend} --devices 2")
    assert_near(folder, f"{backend}-2", run, straight)


def test_two_hosts_are_one(folder, alone):
    backend, run, straight = alone
    both_end(two_hosts(folder, f"{backend}-hosts", backend))
    assert_near(folder, f"{backend}-hosts", run, straight)


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
    straight = trained(folder, "whole", "--backend jax", model__dropout=0.2)
    options = "--backend jax --devices 4 --model-devices 2"
    trained(folder, "shared", options, model__dropout=0.2)
    assert_near(folder, "shared", "whole", straight)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_recurrent_model_on_two_devices(folder, backend):
    small = {"model__encoder_units": 16, "model__decoder_units": 16, "model__embedding_units": 16}

    def train(run, options):
        code, said = Training(rnn_arguments(folder, run, f"--backend {backend} {options}")).end(240)
        assert code == 0, said

    def rnn_arguments(folder, run, options):
        line = arguments(folder, run, options, **small)
        transformer = ("num_", "model.units", "feedforward", "n_dropout")
        kept = [word for word in line if not any(name in word for name in transformer)]
        return [*kept, "--preset", "rnn-small"]

    train(f"{backend}-rnn-1", "")
    train(f"{backend}-rnn-2", "--devices 2")
    assert_near(
        folder, f"{backend}-rnn-2", f"{backend}-rnn-1", weights(folder / f"{backend}-rnn-1")
    )


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
