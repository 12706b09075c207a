"""One of two hosts is killed during training."""

import pytest
from cluster.shared_training import SLOWLY, all_end, before, last_step, two_hosts

pytestmark = pytest.mark.process

SETTINGS = {"training__validate_every": 10**6}


def test_lost_host_is_reported_and_training_can_resume(folder):
    """SIGKILL simulates a lost machine. JAX is not tested, because it notices much later."""
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
    assert f"step {step} is saved; the same commands resume from there" in said
    first, _ = all_end(two_hosts(folder, "lost", "--backend tensorflow", **SETTINGS))
    assert f"resuming after step {step}\n" in first
    assert last_step(folder / "lost") == 6
