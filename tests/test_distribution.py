"""The source distribution and the wheel, as a package index and a stranger get them."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import keras_seq

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[1]
VERSION = keras_seq.__version__
FOLDERS = ("benchmarks", "cli", "docs", "examples", "keras_seq", "tests", "tools")
FILES = {path.name for path in ROOT.glob("*.md")} | {
    ".ci/lock",
    ".ci/lock.txt",
    ".ci/run",
    ".ci/weekly",
    "CITATION.cff",
    "LICENSE",
    "MANIFEST.in",
    "NOTICE",
    "pyproject.toml",
}
# Tests that are fast. They read sources of every folder of the package, the file of date formats,
# a script in tools/, and all documents.
TESTS = (
    "tests/test_imports.py",
    "tests/text/test_dates.py",
    "tests/test_links.py",
)


def files_of(folder):
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and path.parent.name != "__pycache__"
    }


def run(*command, **options):
    result = subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, text=True, check=False, **options
    )
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory):
    """A folder with the source distribution, and the wheel that is built from it."""
    folder = tmp_path_factory.mktemp("distributions")
    # Build from a copy, because a build leaves files next to the sources.
    copy = folder / "copy"
    for name in FOLDERS:
        # Other tests may be writing byte code.
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        (copy / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, copy / name)
    run("-m", "build", "--no-isolation", "--outdir", folder / "dist", copy)
    return folder / "dist"


@pytest.fixture(scope="module")
def source(distributions):
    """The unpacked source distribution."""
    with tarfile.open(distributions / f"keras_seq-{VERSION}.tar.gz") as archive:
        archive.extractall(distributions.parent, filter="data")
    return distributions.parent / f"keras_seq-{VERSION}"


@pytest.fixture(scope="module")
def installed(distributions):
    """The unpacked wheel."""
    folder = distributions.parent / "installed"
    with zipfile.ZipFile(distributions / f"keras_seq-{VERSION}-py3-none-any.whl") as archive:
        archive.extractall(folder)
    return folder


def test_a_package_index_accepts_both_files(distributions):
    files = sorted(distributions.iterdir())
    assert len(files) == 2
    printed = run("-m", "twine", "--no-color", "check", "--strict", *files)
    assert printed.count("PASSED") == 2


def test_the_source_distribution_has_every_file_that_tests_read(source):
    expected = FILES | {f"{name}/{file}" for name in FOLDERS for file in files_of(ROOT / name)}
    generated = {"PKG-INFO", "setup.cfg"}
    found = {name for name in files_of(source) if ".egg-info/" not in name}
    assert found - generated == expected


def test_the_wheel_has_both_packages_and_nothing_else(installed):
    endings = ("css", "html", "js", "json", "py", "typed")
    expected = {
        f"{package}/{path.relative_to(folder).as_posix()}"
        for package, folder in (("keras_seq", ROOT / "keras_seq"), ("keras_seq_cli", ROOT / "cli"))
        for ending in endings
        for path in folder.rglob(f"*.{ending}")
    }
    metadata = f"keras_seq-{VERSION}.dist-info"
    found = files_of(installed)
    assert {name for name in found if not name.startswith(metadata)} == expected
    assert {f"{metadata}/licenses/{name}" for name in ("LICENSE", "NOTICE")} <= found
    entry_points = (installed / metadata / "entry_points.txt").read_text()
    assert "keras-seq = keras_seq_cli.main:main" in entry_points
    lines = (installed / metadata / "METADATA").read_text(encoding="utf-8").split("\n")
    assert "License-Expression: Apache-2.0 AND Unicode-3.0" in lines
    assert f"Version: {VERSION}" in lines


def test_tests_of_the_source_distribution_pass_with_the_wheel(source, installed):
    environment = os.environ | {"PYTHONPATH": str(installed)}
    # With `-P`, Python does not import from the current folder.
    where = run("-P", "-c", "import keras_seq; print(keras_seq.__file__)", env=environment)
    assert Path(where.strip()) == installed / "keras_seq" / "__init__.py"
    options = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist")
    printed = run("-P", "-m", "pytest", *options, *TESTS, cwd=source, env=environment)
    assert " passed" in printed and "skipped" not in printed
