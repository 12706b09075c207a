"""`.ci/lock.txt` has a release and hashes for each dependency in pyproject.toml but torch."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
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


@pytest.mark.skipif(
    not (ROOT / ".github").exists(), reason="the source distribution has no workflows"
)
def test_workflows_install_locked_files_first():
    for name in ("tests", "site"):
        text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8")
        commands = re.findall(r"- run: (python -m pip .+)", text)
        assert commands[0] == f"python -m pip install {' '.join(LOCKED)}"


LOCKED = ("--no-deps", "--require-hashes", "--requirement", ".ci/lock.txt")
# Stands for Python, pip, pytest and `keras-seq`: logs its arguments, makes environments in which
# it is the Python, and fails to install the list if FAILURE is set.
STUB = """#!/usr/bin/env bash
echo "$*" >>"$LOG"
if [ "$2" = venv ]; then
    mkdir -p "$3/bin"
    for name in python keras-seq; do cp "$0" "$3/bin/$name"; done
fi
case "$*" in
*lock.txt*)
    if [ -n "${FAILURE:-}" ]; then
        echo "$FAILURE" >&2
        exit 1
    fi
    ;;
esac
"""


@pytest.fixture
def checks(tmp_path):
    """Returns a function that calls `.ci/run` without installing or testing anything."""
    for name in ("stub", "chromedriver"):
        (tmp_path / name).write_text(STUB)
        (tmp_path / name).chmod(0o755)

    def call(**environment):
        log = tmp_path / "log.txt"
        log.unlink(missing_ok=True)
        inherited = {name: text for name, text in os.environ.items() if name != ONLY_LOCKED}
        inherited |= {"PYTHON": str(tmp_path / "stub"), "LOG": str(log), "TMPDIR": str(tmp_path)}
        inherited["PATH"] = f"{tmp_path}{os.pathsep}{inherited['PATH']}"
        done = subprocess.run(
            [ROOT / ".ci" / "run"],
            env=inherited | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        return done.returncode, done.stderr, log.read_text().splitlines()

    return call


ONLY_LOCKED = "KERAS_SEQ_CI_LOCKED"
BASH = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
DEVELOPERS = "-m pip install --quiet --no-compile --editable .[dev]"
WRONG_HASH = "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE."
MISSING = "ERROR: No matching distribution found for absl-py==2.5.1"


@BASH
@pytest.mark.process
def test_checks_install_the_list_and_then_test(checks):
    code, _, calls = checks()
    assert code == 0
    locked = calls.index(f"-m pip install --quiet --no-compile {' '.join(LOCKED)}")
    assert locked < calls.index(DEVELOPERS)
    assert any(call.startswith("-m pytest") for call in calls)


@BASH
@pytest.mark.process
@pytest.mark.parametrize(
    ("failure", "variables"), [(WRONG_HASH, {}), (MISSING, {ONLY_LOCKED: "1"})]
)
def test_checks_fail_without_the_files_of_the_list(checks, failure, variables):
    code, errors, calls = checks(FAILURE=failure, **variables)
    assert code == 1
    assert failure in errors
    assert DEVELOPERS not in calls
    assert not any(call.startswith("-m pytest") for call in calls)


@BASH
@pytest.mark.process
def test_checks_say_that_they_use_other_releases(checks):
    code, errors, calls = checks(FAILURE=MISSING)
    assert code == 0
    assert MISSING in errors and "the newest releases are tested instead" in errors
    assert DEVELOPERS in calls
