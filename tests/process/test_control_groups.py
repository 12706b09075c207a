"""The memory that control groups leave free, with directories in place of those of the kernel."""

import pytest

from keras_seq.process.control_groups import memory_of_groups

VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_")
VERSION_2 = ("memory.max", "memory.current", "")
NO_LIMIT_1 = 9223372036854771712


def write_group(directory, names, limit, used, reclaimable):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / names[0]).write_text(f"{limit}\n")
    (directory / names[1]).write_text(f"{used}\n")
    # Of the files that were read, some were read twice.
    statistics = f"anon 7\n{names[2]}active_file 10\n{names[2]}inactive_file {reclaimable - 10}\n"
    (directory / "memory.stat").write_text(statistics)


def test_a_container_has_its_limit_at_the_top(tmp_path):
    """600 of 1,000 bytes are used, and the kernel can take back 150 of these."""
    write_group(tmp_path, VERSION_2, 1000, 600, 150)
    assert memory_of_groups("0::/\n", tmp_path) == 550
    # The name is that of the host, which the container does not see.
    assert memory_of_groups("0::/system.slice/docker-0123.scope\n", tmp_path) == 550
    assert memory_of_groups("", tmp_path) == 550


@pytest.mark.parametrize(
    ("limits", "free"),
    [
        ((1000, "max", 900), 810),
        ((850, "max", 950), 760),
        (("max", 500, "max"), 410),
        (("max", "max", "max"), float("inf")),
        (("max", "max", 50), 0),
    ],
)
def test_the_least_of_nested_limits_holds(tmp_path, limits, free):
    """Each group has 100 bytes in use, of which the kernel can take back 10."""
    inner = tmp_path / "user.slice" / "job"
    for group, limit in zip((tmp_path, inner.parent, inner), limits, strict=True):
        write_group(group, VERSION_2, limit, 100, 10)
    # The limit of another group has no meaning for this process.
    write_group(tmp_path / "user.slice" / "other", VERSION_2, 1, 0, 10)
    assert memory_of_groups("0::/user.slice/job\n", tmp_path) == free


def test_version_1_is_read_too(tmp_path):
    memberships = "4:cpu,memory:/docker/0123\n3:cpuset:/elsewhere\n0::/\n"
    write_group(tmp_path / "memory", VERSION_1, NO_LIMIT_1, 100, 10)
    assert memory_of_groups(memberships, tmp_path) > 2**62
    write_group(tmp_path / "memory" / "docker" / "0123", VERSION_1, 1000, 300, 20)
    assert memory_of_groups(memberships, tmp_path) == 720
    write_group(tmp_path / "memory", VERSION_1, 500, 300, 10)
    assert memory_of_groups(memberships, tmp_path) == 210


@pytest.mark.parametrize("text", ["", "much", "-"])
def test_what_cannot_be_read_limits_nothing(tmp_path, text):
    assert memory_of_groups("0::/group\n", tmp_path / "missing") == float("inf")
    (tmp_path / "memory.max").write_text(text)
    assert memory_of_groups("no colons\n:\n0::/../group\n", tmp_path) == float("inf")
