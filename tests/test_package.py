"""The installed package: names, version, dependencies, wheel contents and light imports."""

import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
from test_imports import modules_of_the_project, part_of, read_imports

import keras_seq

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
VERSION = PROJECT["project"]["version"]

# What a build of the wheel needs.
SOURCES = ("pyproject.toml", "README.md", "LICENSE", "keras_seq", "cli")
# Packages whose module has a different name.
MODULES = {"scikit-learn": "sklearn", "tensorflow-serving-api": "tensorflow-serving"}


def test_versions_of_package_metadata_and_changelog_agree():
    assert keras_seq.__version__ == VERSION
    assert importlib.metadata.version("keras-seq") == VERSION
    assert f"## {VERSION}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_every_package_is_listed_in_pyproject():
    names = {
        ".".join([package, *path.parent.relative_to(folder).parts])
        for package, folder in (("keras_seq", ROOT / "keras_seq"), ("keras_seq_cli", ROOT / "cli"))
        for path in folder.rglob("*.py")
    }
    assert set(PROJECT["tool"]["setuptools"]["packages"]) == names


def test_declared_dependencies_equal_the_imported_packages():
    modules = modules_of_the_project()
    imported = {
        found.target.split(".")[0].replace("_", "-")
        for module in modules.values()
        for found in read_imports(module, set(modules))
        if not part_of(found.target)
    } - {name.replace("_", "-") for name in sys.stdlib_module_names}
    optional = {
        MODULES.get(name := re.split(r"[^\w-]", requirement)[0], name)
        for extra in PROJECT["project"]["optional-dependencies"].values()
        for requirement in extra
    }
    declared = {
        re.split(r"[^\w-]", requirement)[0] for requirement in PROJECT["project"]["dependencies"]
    }
    declared = {MODULES.get(name, name) for name in declared}
    assert imported - optional <= declared
    assert declared <= imported


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    # Build from a copy, because a build leaves files next to the sources.
    folder = tmp_path_factory.mktemp("wheel")
    for name in SOURCES:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, folder / name)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "."],
        cwd=folder,
        check=True,
    )
    (path,) = folder.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        yield archive


def test_wheel_has_both_packages_and_nothing_else(wheel):
    expected = {"keras_seq/py.typed"} | {
        f"{package}/{path.relative_to(folder).as_posix()}"
        for package, folder in (("keras_seq", ROOT / "keras_seq"), ("keras_seq_cli", ROOT / "cli"))
        for ending in ("css", "html", "js", "py")
        for path in folder.rglob(f"*.{ending}")
    }
    metadata = f"keras_seq-{VERSION}.dist-info/"
    assert {name for name in wheel.namelist() if not name.startswith(metadata)} == expected
    assert f"{metadata}licenses/LICENSE" in wheel.namelist()
    entry_points = wheel.read(f"{metadata}entry_points.txt").decode()
    assert "keras-seq = keras_seq_cli.main:main" in entry_points
    assert "License-Expression: Apache-2.0" in wheel.read(f"{metadata}METADATA").decode()


def run_python(*arguments):
    result = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("name", ["keras_seq", "keras_seq_cli.main", "keras_seq.settings"])
def test_import_loads_no_heavy_modules(name):
    code = f"import json, sys, {name}; print(json.dumps(list(sys.modules)))"
    loaded = set(json.loads(run_python("-c", code)))
    assert not loaded & {"tensorflow", "keras", "jax", "torch", "sentencepiece"}


@pytest.mark.slow
def test_public_names_load_when_asked_for():
    code = "import keras_seq; print([getattr(keras_seq, name) for name in keras_seq.__all__])"
    assert run_python("-c", code)
    assert set(keras_seq.__all__) <= set(dir(keras_seq))
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        _ = keras_seq.absent


def test_command_line_prints_the_version():
    assert run_python("-m", "keras_seq", "--version").strip() == f"keras-seq {VERSION}"
    script = shutil.which("keras-seq", path=str(Path(sys.executable).parent))
    assert script is not None
    printed = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == f"keras-seq {VERSION}"
