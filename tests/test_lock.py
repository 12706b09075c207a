"""`.ci/lock.txt` has a release and hashes for each dependency in pyproject.toml but torch."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]


def locked():
    """Returns name, version and number of hashes of each package in the list."""
    text = (ROOT / ".ci" / "lock.txt").read_text(encoding="utf-8").replace("\\\n", "")
    for line in text.splitlines():
        name, version = re.match(r"([a-z0-9-]+)==([^ ]+) ", line).groups()
        yield name, version, len(re.findall(r" --hash=sha256:[0-9a-f]{64}\b", line))


def test_every_locked_package_has_hashes_and_comes_from_the_package_index():
    packages = list(locked())
    assert len(packages) > 200
    assert [name for name, _, hashes in packages if not hashes] == []


def test_locked_releases_are_within_the_bounds_of_pyproject():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    versions = {}
    for name, version, _ in locked():
        versions.setdefault(name, []).append(version)
    for requirement in map(Requirement, wanted):
        if requirement.name == "torch":
            assert "torch" not in versions
            continue
        found = versions[canonicalize_name(requirement.name)]
        assert all(requirement.specifier.contains(version) for version in found), requirement
