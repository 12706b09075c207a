"""Two devices, and two hosts, train the same weights as one device.

The devices are parts of this machine's CPU; the hosts are processes that connect over loopback.
"""

import signal

import pytest
from cluster.shared_training import (
    BACKENDS,
    DROPOUTS,
    SAME_DROPOUT,
    SLOWLY,
    addresses,
    all_end,
    arguments,
    assert_near,
    before,
    copy_of,
    last_step,
    two_hosts,
)
from faults.training_process import Training, last_arrays
from weekly import weekly_but

pytestmark = pytest.mark.process

# With TensorFlow, a host has only one CPU device.
HOST = {"tensorflow": "", "jax": "--devices 2"}
HOSTS = {"tensorflow": "devices 2 (cpu) of 2 hosts\n", "jax": "devices 4 (cpu) of 2 hosts\n"}
WITH_DROPOUT = {f"model__{name}": 0.2 for name in DROPOUTS} | {"training__validate_every": 10**6}


@pytest.fixture(scope="module", params=weekly_but(BACKENDS, "jax"))
def ended(request, folder):
    """Trains on one device, on two devices and on two hosts, and returns the backend."""
    backend = request.param
    # Run two at a time: they mostly start up and compile, which takes one core each.
    one, two = all_end(
        Training(
            arguments(
                folder,
                f"{backend}-{count}",
                f"--backend {backend} --devices {count}",
                **SAME_DROPOUT[backend],
            )
        )
        for count in (1, 2)
    )
    assert "devices 2 (cpu)\n" in two and "devices " not in one
    options = f"--backend {backend} {HOST[backend]}"
    first, other = all_end(two_hosts(folder, f"{backend}-hosts", options, **SAME_DROPOUT[backend]))
    assert HOSTS[backend] in first and "devices " not in other
    return backend


def test_training_on_two_devices_matches_one_device(folder, ended):
    assert_near(folder / f"{ended}-2", folder / f"{ended}-1")


def test_two_device_training_resumes_on_two_devices_or_on_one(folder, ended):
    """Weights are bit-identical on two devices and equal up to rounding on one."""
    straight = folder / f"{ended}-2"
    runs = {count: copy_of(straight, f"{ended}-on-{count}", 4) for count in (2, 1)}
    saying = all_end(
        Training(
            arguments(
                folder, run.name, f"--backend {ended} --devices {count}", **SAME_DROPOUT[ended]
            )
        )
        for count, run in runs.items()
    )
    assert all("resuming after step 4\n" in said for said in saying)
    assert ["devices 2 (cpu)\n" in said for said in saying] == [True, False]
    assert last_arrays(runs[2]) == last_arrays(straight)
    assert_near(runs[1], straight)


def test_training_on_two_hosts_matches_one_device(folder, ended):
    assert_near(folder / f"{ended}-hosts", folder / f"{ended}-1")


@pytest.mark.parametrize("ended", ["tensorflow"], indirect=True)
@pytest.mark.weekly
def test_hosts_with_different_checkpoints_are_rejected(folder, ended):
    """Only one host has a trained run; both hosts exit instead of waiting for each other."""
    hosts = addresses()
    runs = (f"{ended}-new", f"{ended}-1")
    options = [f"--backend {ended} --hosts {hosts} --host-index {i}" for i in (0, 1)]
    processes = [
        Training(arguments(folder, run, option, **SAME_DROPOUT[ended]))
        for run, option in zip(runs, options, strict=True)
    ]
    for said in all_end(processes, expected=2):
        assert "hosts disagree about its checkpoint" in said.split("\n")[-1]
        assert "traceback" not in said
    assert last_step(folder / runs[1]) == 6


@pytest.mark.parametrize("ended", ["tensorflow"], indirect=True)
@pytest.mark.weekly
def test_two_hosts_stopped_by_a_signal_resume_exactly(folder, ended):
    """A signal to the second host stops both hosts."""
    run, options = folder / f"{ended}-stopped", f"--backend {ended} {HOST[ended]}"
    settings = SAME_DROPOUT[ended]
    hosts = two_hosts(folder, run.name, options, before(ended, SLOWLY), **settings)
    hosts[1].wait_for("update")
    hosts[1].process.send_signal(signal.SIGTERM)
    all_end(hosts, 143)
    step = last_step(run)
    assert 0 < step < 6
    first, _ = all_end(two_hosts(folder, run.name, options, **settings))
    assert f"resuming after step {step}\n" in first and HOSTS[ended] in first
    assert last_arrays(run) == last_arrays(folder / f"{ended}-hosts")


@pytest.mark.weekly
def test_time_limit_stops_both_hosts_after_a_save(folder):
    """The hosts agree to stop in the same way as after a signal."""
    # The limit expires before the hosts connect, so they train for only one update.
    options = "--backend tensorflow --stop-after 0.001"
    for said in all_end(two_hosts(folder, "timely", options, **WITH_DROPOUT), 142)[:1]:
        assert "the time is up; step 1 is saved: the same command resumes from there" in said
    assert last_step(folder / "timely") == 1


def test_missing_first_host_is_reported_after_the_wait(folder):
    code = before("tensorflow", "import keras_seq.cluster.starting as starting\n")
    code += "starting.WAIT_SECONDS = 1.0\n"
    hosts = addresses()
    line = arguments(folder, "nobody", f"--backend tensorflow --hosts {hosts} --host-index 1")
    (said,) = all_end([Training(line, code)], expected=2)
    first = hosts.partition(",")[0]
    assert f"waiting for the first host ({first})\n" in said
    assert f"--hosts: the first host ({first}) did not start within " in said.split("\n")[-1]
    assert not (folder / "nobody").exists()


@pytest.mark.parametrize("ended", ["jax"], indirect=True)
@pytest.mark.weekly
def test_training_with_sharded_weights_matches_one_device(folder, ended):
    """Tests dropout, one host and two hosts; one device resumes from a sharded training."""
    dropout, words = SAME_DROPOUT[ended], "2 for each copy of the weights\n"
    hosts = two_hosts(
        folder, "sharing-hosts", "--backend jax --devices 2 --model-devices 2", **dropout
    )
    first, _ = all_end(hosts)
    assert f"devices 4 (cpu) of 2 hosts, {words}" in first
    line = arguments(folder, "sharing", "--backend jax --devices 4 --model-devices 2", **dropout)
    (said,) = all_end([Training(line)])
    assert f"devices 4 (cpu), {words}" in said
    on = copy_of(folder / "sharing", "sharing-on", 4)
    (said,) = all_end([Training(arguments(folder, on.name, "--backend jax", **dropout))])
    assert "resuming after step 4\n" in said and "devices " not in said
    for run in ("sharing-hosts", "sharing", "sharing-on"):
        assert_near(folder / run, folder / "jax-1")
