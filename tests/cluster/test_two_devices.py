"""Two devices train what one does: the same batches, the same gradients.

The devices are parts of this machine's processor.
"""

import pytest
from cluster.shared_training import (
    BACKENDS,
    FAMILIES,
    SAME_DROPOUT,
    all_end,
    arguments,
    assert_near,
    copy_of,
)
from faults.training_process import Training, last_arrays


@pytest.fixture(scope="module", params=BACKENDS)
def ended(request, folder):
    """The backend whose trainings on one device and on two are there, of both families."""
    backend = request.param
    # Two at a time: most of what they do is to start and to compile, which takes one core.
    for family in FAMILIES:
        one, two = all_end(
            Training(
                arguments(
                    folder,
                    f"{backend}-{family}-{count}",
                    f"--backend {backend} --devices {count}",
                    family,
                    **SAME_DROPOUT[backend],
                )
            )
            for count in (1, 2)
        )
        assert "devices 2 (cpu)\n" in two and "devices " not in one
    return backend


@pytest.mark.parametrize("family", FAMILIES)
def test_two_devices_are_one(folder, ended, family):
    assert_near(folder / f"{ended}-{family}-2", folder / f"{ended}-{family}-1")


def test_two_devices_go_on_and_one_can_go_on_for_them(folder, ended):
    """To the last bit with as many, and to rounding with another number."""
    straight = folder / f"{ended}-transformer-tiny-2"
    runs = {count: copy_of(straight, f"{ended}-on-{count}", 4) for count in (2, 1)}
    saying = all_end(
        Training(
            arguments(
                folder,
                run.name,
                f"--backend {ended} --devices {count}",
                **SAME_DROPOUT[ended],
            )
        )
        for count, run in runs.items()
    )
    assert all("going on after step 4\n" in said for said in saying)
    assert ["devices 2 (cpu)\n" in said for said in saying] == [True, False]
    assert last_arrays(runs[2]) == last_arrays(straight)
    assert_near(runs[1], straight)
