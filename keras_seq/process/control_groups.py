"""The memory that the control groups of Linux leave to this process, as in a container."""

from __future__ import annotations

import contextlib
from pathlib import Path, PurePosixPath
from typing import NamedTuple

ROOT = Path("/sys/fs/cgroup")


class _Version(NamedTuple):
    """A version of control groups: where it is mounted, and the names of its files and numbers.

    `reclaimable` are the numbers of bytes that the kernel can take back.
    """

    folder: str
    limit: str
    used: str
    reclaimable: frozenset[str]


# Pages of files that were read twice are active; the kernel drops them as well.
_FIRST = _Version(
    "memory",
    "memory.limit_in_bytes",
    "memory.usage_in_bytes",
    frozenset({"total_inactive_file", "total_active_file"}),
)
_SECOND = _Version("", "memory.max", "memory.current", frozenset({"inactive_file", "active_file"}))


def memory_of_groups(memberships: str, root: Path = ROOT) -> float:
    """Returns the bytes that the control groups leave free; infinity without a limit.

    The limit of a group holds for all groups inside it.

    Args:
        memberships: The lines `number:controllers:group` of the groups of this process, in which
            version 2 has no controllers.
        root: The directory at which control groups are mounted.
    """
    # In a container, the names may be those of the host, and its own group is at the top.
    groups = {_FIRST: PurePosixPath("/"), _SECOND: PurePosixPath("/")}
    for line in memberships.splitlines():
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if not controllers:
            groups[_SECOND] = PurePosixPath(group)
        elif "memory" in controllers.split(","):
            groups[_FIRST] = PurePosixPath(group)
    return min(
        _free(root.joinpath(version.folder, *parts[:count]), version)
        for version, group in groups.items()
        for parts in [[part for part in group.parts if part not in ("/", "..")]]
        for count in range(len(parts) + 1)
    )


def _free(group: Path, version: _Version) -> float:
    with contextlib.suppress(OSError, ValueError):
        # A group without a limit has the text `max`, or, in version 1, a number close to 2^63.
        limit = int((group / version.limit).read_text())
        used = int((group / version.used).read_text())
        # Files that were read count as used, but the kernel drops them when memory gets short.
        return float(max(0, limit - used + _reclaimable(group, version)))
    return float("inf")


def _reclaimable(group: Path, version: _Version) -> int:
    with contextlib.suppress(OSError, ValueError):
        lines = map(str.split, (group / "memory.stat").read_text().splitlines())
        return sum(int(value) for name, value in lines if name in version.reclaimable)
    return 0
