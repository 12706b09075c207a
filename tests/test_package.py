"""The installed package: names, version, dependencies and light imports."""

import importlib.metadata
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from test_imports import modules_of_the_project, part_of, read_imports

import keras_seq

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
VERSION = keras_seq.__version__

# Packages whose module has a different name.
MODULES = {
    "mlflow-skinny": "mlflow",
    "scikit-learn": "sklearn",
    "tensorflow-serving-api": "tensorflow-serving",
}


def test_versions_of_package_metadata_changelog_and_citation_agree():
    assert importlib.metadata.version("keras-seq") == VERSION
    assert f"## {VERSION} " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"version: {VERSION}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


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


def run_python(*arguments):
    result = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize("name", ["keras_seq", "keras_seq_cli.main", "keras_seq.settings"])
def test_import_loads_no_heavy_modules(name):
    code = f"import json, sys, {name}; print(json.dumps(list(sys.modules)))"
    loaded = set(json.loads(run_python("-c", code)))
    assert not loaded & {"tensorflow", "keras", "jax", "torch", "sentencepiece"}


def test_extras_named_in_texts_exist_and_are_installed_in_one_way():
    """Messages and pages name an extra as in `python -m pip install 'keras-seq[serve]'`."""
    extras = set(PROJECT["project"]["optional-dependencies"])
    files = [*ROOT.glob("*.md"), ROOT / ".ci" / "run"]
    for folder in ("benchmarks", "cli", "docs", "examples", "keras_seq", "tests", "tools"):
        files += [path for path in (ROOT / folder).rglob("*") if path.suffix in (".md", ".py")]
    used = set()
    for path in files:
        text = path.read_text(encoding="utf-8")
        named = re.findall(r"(?:keras-seq|'\.)\\?\[([\w,-]+)\\?\]|\bextras? `(\w+)`", text)
        names = {name for pair in named for name in ",".join(pair).split(",") if name}
        assert names <= extras, path
        used |= names
        if path.relative_to(ROOT).parts[0] != "tests":
            # Debian has no program `python`.
            right = re.findall("python3? -m pip install", text)
            assert text.count("pip install") == len(right), path
    assert used == extras


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
