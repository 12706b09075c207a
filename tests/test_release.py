"""tools/release.py refuses checkouts that are not ready for a release.

The build and the trial of the wheel take minutes; tests/test_distribution.py has what is fast.
"""

import importlib.util
import json
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


LICENSES = "Name,Version,License\na,1,MIT License\n"
AUDIT = [
    {"name": "a", "version": "1", "vulns": []},
    {"name": "keras-seq", "skip_reason": "Dependency not found on PyPI"},
]
FREEZE = "a==1\nb==2.5\nkeras-seq @ file:///tmp/keras_seq-3.2.1-py3-none-any.whl\n"


@pytest.fixture
def release(checkout, monkeypatch):
    """The script in `checkout`. Its commands are logged in `calls` instead of being run.

    `answers` has the exit code and output by a word of the command.
    """
    spec = importlib.util.spec_from_file_location(
        "release_of_a_test", checkout / "tools/release.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (checkout / "dist").mkdir()
    module.calls, module.compiled, module.audit = [], [], AUDIT
    module.answers = {
        "sysconfig": (0, "/packages\n"),
        "piplicenses": (0, LICENSES),
        "freeze": (0, FREEZE),
        "--version": (0, "keras-seq 3.2.1\n"),
    }

    def call(words, **options):
        module.calls.append(words)
        if "piptools" in words:
            module.compiled.append(Path(words[-1]).read_text(encoding="utf-8"))
        if "pip_audit" in words:
            report = json.dumps({"dependencies": module.audit, "fixes": []})
            Path(words[words.index("--output") + 1]).write_text(report, encoding="utf-8")
        text = " ".join(words)
        code, output = next((module.answers[x] for x in module.answers if x in text), (0, ""))
        return subprocess.CompletedProcess(words, code, output)

    monkeypatch.setattr(module.subprocess, "run", call)
    monkeypatch.setattr(module.venv, "create", lambda *arguments, **options: None)
    monkeypatch.setattr(sys, "argv", ["release.py"])
    return module


def names(release):
    """The program of each call: the module after `-m`, or the first word."""
    return [
        words[words.index("-m") + 1] if "-m" in words else Path(words[0]).name
        for words in release.calls
    ]


def test_dependencies_are_audited_and_listed(release, checkout, capsys):
    release.describe_dependencies(Path("/environment/python"), "3.2.1")
    where, audit, licenses, bill, freeze, lock = release.calls
    assert where[0] == freeze[0] == "/environment/python"
    assert audit[1:3] == ["-m", "pip_audit"] and audit[-2:] == ["--path", "/packages"]
    assert licenses[1:3] == ["-m", "piplicenses"]
    assert licenses[-1] == "--python=/environment/python"
    dist = checkout / "dist"
    assert (dist / "keras_seq-3.2.1-licenses.csv").read_text(encoding="utf-8") == LICENSES
    assert bill[1:5] == ["-m", "cyclonedx_py", "environment", "/environment/python"]
    assert bill[-1] == str(dist / "keras_seq-3.2.1-sbom.json")
    assert lock[1:4] == ["-m", "piptools", "compile"] and "--generate-hashes" in lock
    assert str(dist / "keras_seq-3.2.1-lock.txt") in lock
    # keras-seq itself has no hash yet.
    assert release.compiled == ["a==1\nb==2.5"]
    assert "2 dependencies: keras_seq-3.2.1-licenses.csv" in capsys.readouterr().out


def test_a_release_is_tagged_after_the_audit(release):
    release.main()
    called = names(release)
    assert called.index("pip_audit") < called.index("piptools") < len(called) - 1
    assert release.calls[-1][:3] == ["git", "tag", "--annotate"]


@pytest.mark.parametrize(
    ("word", "answer", "message"),
    [
        ("pip_audit", (1, "a 1 PYSEC-2031-1 2"), "a 1 PYSEC-2031-1 2\nrelease: the command above"),
        ("piplicenses", (0, f"{LICENSES}b,1,GPL-3.0\n"), "release: licenses that bind users: b"),
        ("cyclonedx_py", (1, ""), "release: the command above failed"),
        ("piptools", (1, ""), "release: the command above failed"),
        ("--version", (0, "keras-seq 3.2.0"), "release: the wheel printed another version"),
    ],
)
def test_nothing_is_tagged_after_a_failed_check(release, word, answer, message):
    release.answers = {word: answer, **release.answers} | {word: answer}
    with pytest.raises(SystemExit) as stop:
        release.main()
    assert message in str(stop.value)
    assert not any(words[:3] == ["git", "tag", "--annotate"] for words in release.calls)
    if word == "pip_audit":
        assert names(release)[-1] == "pip_audit"


def test_packages_that_the_audit_skips_stop_the_release(release):
    reason = "Dependency not found on PyPI and could not be audited: b (1)"
    release.audit = [*AUDIT, {"name": "b", "skip_reason": reason}]
    with pytest.raises(SystemExit, match="^release: packages without an audit: b: use a"):
        release.main()
    assert names(release)[-1] == "pip_audit"
