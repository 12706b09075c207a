"""Two hosts that are stopped, or lost, go on where they were."""

import signal

import pytest
from cluster.shared_training import (
    BACKENDS,
    DROPOUTS,
    all_end,
    before,
    last_step,
    two_hosts,
)
from faults.training_process import last_arrays

SETTINGS = {f"model__{name}": 0.2 for name in DROPOUTS} | {"training__validate_every": 10**6}
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


@pytest.mark.parametrize("backend", BACKENDS)
def test_two_hosts_go_on_where_they_were_stopped(folder, backend):
    """The end of the first one's time ends both, and so does a signal to the other one."""
    run, options = folder / f"{backend}-stopped", f"--backend {backend}"
    # It is over before they meet: they make one update.
    timely = f"{options} --stop-after 0.001"
    for said in all_end(two_hosts(folder, run.name, timely, **SETTINGS), 142)[:1]:
        assert "the time is up; step 1 is saved: the same command goes on from there" in said
    assert last_step(run) == 1
    hosts = two_hosts(folder, run.name, options, before(backend, SLOWLY), **SETTINGS)
    hosts[1].wait_for("update")
    hosts[1].process.send_signal(signal.SIGTERM)
    first, _ = all_end(hosts, 143)
    assert "going on after step 1\n" in first
    step = last_step(run)
    assert 1 < step < 6
    first, _ = all_end(two_hosts(folder, run.name, options, **SETTINGS))
    assert f"going on after step {step}\n" in first and "devices 2 (cpu) of 2 hosts\n" in first
    straight = f"{backend}-straight"
    all_end(two_hosts(folder, straight, options, **SETTINGS))
    assert last_arrays(run) == last_arrays(folder / straight)


def test_a_lost_host_is_said(folder):
    """Killed at once, as a machine that is taken away; JAX notices by itself, but much later."""
    code = before("tensorflow", SLOWLY)
    processes = two_hosts(folder, "lost", "--backend tensorflow", code, **SETTINGS)
    processes[1].wait_for("update")
    processes[1].wait_for("update")
    processes[1].process.kill()
    code, said = processes[0].end(120)
    processes[1].end()
    assert code == 1
    assert "another host ended or cannot be reached" in said
    step = last_step(folder / "lost")
    assert f"step {step} is saved; the same commands go on from there" in said
    first, _ = all_end(two_hosts(folder, "lost", "--backend tensorflow", **SETTINGS))
    assert f"going on after step {step}\n" in first
    assert last_step(folder / "lost") == 6
