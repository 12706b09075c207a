"""Two hosts that are stopped go on where they were."""

import signal

import pytest
from cluster.shared_training import (
    BACKENDS,
    DROPOUTS,
    SLOWLY,
    all_end,
    before,
    last_step,
    two_hosts,
)
from faults.training_process import last_arrays

SETTINGS = {f"model__{name}": 0.2 for name in DROPOUTS} | {"training__validate_every": 10**6}


@pytest.mark.parametrize("backend", BACKENDS)
def test_two_hosts_go_on_where_they_were_stopped(folder, backend):
    """The end of the first one's time ends both, and so does a signal to the other one.

    How they tell each other is the same for both ends: on JAX the second is enough.
    """
    run, options = folder / f"{backend}-stopped", f"--backend {backend}"
    before_signal = 0
    if backend == "tensorflow":
        # It is over before they meet: they make one update.
        timely = f"{options} --stop-after 0.001"
        for said in all_end(two_hosts(folder, run.name, timely, **SETTINGS), 142)[:1]:
            assert "the time is up; step 1 is saved: the same command goes on from there" in said
        before_signal = last_step(run)
        assert before_signal == 1
    hosts = two_hosts(folder, run.name, options, before(backend, SLOWLY), **SETTINGS)
    hosts[1].wait_for("update")
    hosts[1].process.send_signal(signal.SIGTERM)
    first, _ = all_end(hosts, 143)
    assert ("going on after step 1\n" in first) == (before_signal == 1)
    step = last_step(run)
    assert before_signal < step < 6
    first, _ = all_end(two_hosts(folder, run.name, options, **SETTINGS))
    assert f"going on after step {step}\n" in first and "devices 2 (cpu) of 2 hosts\n" in first
    straight = f"{backend}-straight"
    all_end(two_hosts(folder, straight, options, **SETTINGS))
    assert last_arrays(run) == last_arrays(folder / straight)
