"""The API reference builds without warnings and has every public name and its equations."""

import html
import importlib
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from keras_seq import layers

pytestmark = pytest.mark.docs

ROOT = Path(__file__).parents[1]
MODULES = (
    "callbacks",
    "layers",
    "losses",
    "metrics",
    "models",
    "schedules",
    "search",
    "training",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    # Use a separate process, because pdoc must be configured before any module is imported.
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "build_reference.py", folder],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module", params=MODULES)
def page(request, folder):
    module = importlib.import_module(f"keras_seq.{request.param}")
    return module, (folder / "keras_seq" / f"{request.param}.html").read_text(encoding="utf-8")


def equations(documented):
    """Returns the lines of all indented blocks before the docstring's first section."""
    sections = r"^(?:Shapes|Args|Attributes|Call arguments|Returns|Raises|Example|Reference):"
    head = re.split(sections, inspect.getdoc(documented) or "", flags=re.MULTILINE)[0]
    return [line.strip() for line in re.findall(r"^ {4}(\S.*)$", head, re.MULTILINE)]


def test_every_public_name_is_in_the_reference(page):
    module, text = page
    for name in module.__all__:
        assert f'id="{name}"' in text, name


def test_reference_shows_equations_as_written(page):
    module, text = page
    plain = html.unescape(re.sub(r"<[^>]+>", "", text))
    for name in module.__all__:
        for line in equations(getattr(module, name)):
            assert line in plain, (name, line)


def test_layers_have_an_equation():
    without = [
        name
        for name in layers.__all__
        if isinstance(getattr(layers, name), type) and not equations(getattr(layers, name))
    ]
    assert not without


def test_reference_pages_load_nothing_from_the_network(folder):
    for path in folder.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert not re.findall(
            r"<(?:script|link|img|iframe)[^>]+(?:src|href)=[\"']?(?:https?:)?//", text
        )
        assert not re.findall(r"(?:url\(|@import )[\"']?(?:https?:)?//", text)


def test_argument_sections_are_rendered_as_lists(folder):
    text = (folder / "keras_seq" / "layers.html").read_text(encoding="utf-8")
    for section in ("Call arguments", "Returns", "Arguments"):
        assert re.search(rf"<h6[^>]*>{section}:</h6>\s*<ul>", text), section


def test_the_page_of_layers_names_every_layer():
    page = (ROOT / "docs" / "layers.md").read_text(encoding="utf-8")
    for name in layers.__all__:
        assert not inspect.isclass(getattr(layers, name)) or f"`{name}`" in page, name
