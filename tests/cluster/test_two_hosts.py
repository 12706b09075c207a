"""Two hosts train what one device does; here they are processes that meet over loopback."""

import pytest
from cluster.shared_training import (
    BACKENDS,
    SAME_DROPOUT,
    addresses,
    all_end,
    arguments,
    assert_near,
    before,
    last_step,
    two_hosts,
)
from faults.training_process import Training


@pytest.fixture(scope="module", params=BACKENDS)
def ended(request, folder):
    """The backend whose trainings on one device and on two hosts are there."""
    backend = request.param
    # On TensorFlow a host has one processor.
    options, words = {
        "tensorflow": ("", "devices 2 (cpu) of 2 hosts\n"),
        "jax": ("--devices 2", "devices 4 (cpu) of 2 hosts\n"),
    }[backend]
    settings = SAME_DROPOUT[backend]
    options = f"--backend {backend} {options}"
    alone = arguments(folder, f"{backend}-alone", f"--backend {backend}", **settings)
    first, other, one = all_end(
        [*two_hosts(folder, f"{backend}-hosts", options, **settings), Training(alone)]
    )
    assert words in first
    assert "devices " not in one and "devices " not in other
    return backend


def test_two_hosts_are_one(folder, ended):
    assert_near(folder / f"{ended}-hosts", folder / f"{ended}-alone")


def test_hosts_that_see_different_runs(folder, ended):
    """One has a run that was trained already; it is refused, and nobody waits for anybody."""
    hosts = addresses()
    options = [f"--backend {ended} --hosts {hosts} --host {i}" for i in (0, 1)]
    processes = [
        Training(arguments(folder, run, option, **SAME_DROPOUT[ended]))
        for run, option in zip((f"{ended}-new", f"{ended}-alone"), options, strict=True)
    ]
    for said in all_end(processes, expected=2):
        assert "hosts disagree about its checkpoint" in said.split("\n")[-1]
        assert "traceback" not in said
    assert last_step(folder / f"{ended}-alone") == 6


def test_a_first_host_that_does_not_come(folder):
    code = before("tensorflow", "import keras_seq.cluster.starting as starting\n")
    code += "starting.WAIT_SECONDS = 1.0\n"
    hosts = addresses()
    line = arguments(folder, "nobody", f"--backend tensorflow --hosts {hosts} --host 1")
    (said,) = all_end([Training(line, code)], expected=2)
    first = hosts.partition(",")[0]
    assert f"waiting for the first host ({first})\n" in said
    assert f"--hosts: the first host ({first}) did not come in " in said.split("\n")[-1]
    assert not (folder / "nobody").exists()
