"""tools/release.py refuses checkouts that are not ready for a release.

The build and the trial of the wheel take minutes; tests/test_distribution.py has what is fast.
"""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CHANGELOG = "# Changelog\n\n## 3.2.1 [2031-02-03]\n"


def git(folder, *arguments):
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path):
    """A committed repository with the release script and the files that it reads first."""
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "tools" / "release.py", tmp_path / "tools")
    (tmp_path / "keras_seq").mkdir()
    (tmp_path / "keras_seq" / "__init__.py").write_text('__version__ = "3.2.1"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    git(tmp_path, "init")
    git(tmp_path, "add", "--all")
    git(tmp_path, "commit", "--message", "Begin")
    return tmp_path


def refusal(checkout, *options):
    """Runs the script, which must fail, and returns its last line."""
    result = subprocess.run(
        [sys.executable, checkout / "tools" / "release.py", *options],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 1
    return result.stderr.strip().split("\n")[-1]


def change_changelog(checkout, text):
    (checkout / "CHANGELOG.md").write_text(text)
    git(checkout, "commit", "--all", "--message", "Change")


def test_uncommitted_files_are_refused(checkout):
    (checkout / "new.py").touch()
    assert refusal(checkout, "--dry-run").startswith("release: files are not committed")


def test_a_version_that_is_tagged_is_refused(checkout):
    git(checkout, "tag", "v3.2.1")
    assert refusal(checkout, "--dry-run").startswith("release: the tag v3.2.1 exists")


@pytest.mark.parametrize("heading", ["3.2.10", "3.2", "13.2.1"])
def test_a_version_without_a_changelog_heading_is_refused(checkout, heading):
    change_changelog(checkout, CHANGELOG.replace("3.2.1", heading))
    assert refusal(checkout, "--dry-run").startswith("release: CHANGELOG.md has no heading")


def test_an_unreleased_version_is_refused(checkout):
    change_changelog(checkout, CHANGELOG.replace("2031-02-03", "Unreleased"))
    assert "write the date" in refusal(checkout)


def test_a_failed_build_makes_no_tag(checkout):
    # This repository has no pyproject.toml.
    assert refusal(checkout) == "release: the command above failed"
    tags = subprocess.run(["git", "tag"], cwd=checkout, capture_output=True, text=True, check=True)
    assert tags.stdout == ""


def test_only_licenses_that_bind_users_are_refused():
    names = "from release import refused_licenses; print(refused_licenses(open(0).read()))"
    table = """Name,Version,License
a,1,GPL-3.0-or-later
b,1,"MIT License; GNU General Public License v2 (GPLv2)"
c,1,GNU Lesser General Public License v3 (LGPLv3)
d,1,GNU Affero General Public License v3
e,1,LGPL-2.1
f,1,Apache-2.0
"""
    done = subprocess.run(
        [sys.executable, "-c", names],
        input=table,
        cwd=ROOT / "tools",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "['a', 'd']\n"
