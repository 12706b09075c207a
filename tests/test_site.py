"""The site builds without warnings; its reference has every public name and its equations."""

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
    "evaluation",
    "layers",
    "losses",
    "metrics",
    "models",
    "schedules",
    "scoring",
    "search",
    "serving",
    "text",
    "training",
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Builds the site from a copy of the pages, into which the build writes the reference."""
    folder = tmp_path_factory.mktemp("site")
    copy = folder / "docs"
    subprocess.run(["cp", "-r", ROOT / "docs", copy], check=True)
    done = subprocess.run(
        [sys.executable, copy / "make_docs.py", "--output", folder / "html"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


def text_of(path):
    """The text of a page, without markup and with single spaces."""
    plain = re.sub(r"<[^>]+>", "", path.read_text(encoding="utf-8"))
    return html.unescape(plain)


def equations(documented):
    """Returns the lines of all indented blocks before the docstring's first section."""
    sections = r"^(?:Shapes|Args|Attributes|Call arguments|Returns|Raises|Example|Reference):"
    head = re.split(sections, inspect.getdoc(documented) or "", flags=re.MULTILINE)[0]
    return [line.strip() for line in re.findall(r"^ {4}(\S.*)$", head, re.MULTILINE)]


@pytest.mark.parametrize("name", MODULES)
def test_reference_has_every_public_name_and_its_equations(site, name):
    module = importlib.import_module(f"keras_seq.{name}")
    for public in module.__all__:
        documented = getattr(module, public)
        if not (inspect.isclass(documented) or inspect.isroutine(documented)):
            continue
        # A name of keras_seq itself, such as `train`, has its page there.
        pages = [
            site / "reference" / f"{path}.html"
            for path in (f"keras_seq.{public}", f"keras_seq.{name}.{public}")
        ]
        page = next(path for path in pages if path.exists())
        shown = text_of(page)
        assert public in shown
        for line in equations(documented):
            assert line in shown, (public, line)


def test_arguments_are_lists_and_names_are_links(site):
    page = (site / "reference" / "keras_seq.layers.AttentionDecoder.html").read_text("utf-8")
    assert re.search(r"Parameters.*?<strong>cell</strong>", page, re.DOTALL)
    assert 'href="keras_seq.layers.AttentionCell.html#keras_seq.layers.AttentionCell"' in page
    plain = text_of(site / "reference" / "keras_seq.layers.BahdanauAttention.html")
    assert "units, normalize=False" in plain


def test_every_link_within_the_site_leads_somewhere(site):
    pages = {path.relative_to(site).as_posix(): path for path in site.rglob("*.html")}
    texts = {name: path.read_text(encoding="utf-8") for name, path in pages.items()}
    for name, text in texts.items():
        for target in re.findall(r'href="([^"#:]+\.html)(?:#[^"]*)?"', text):
            path = (site / name).parent / html.unescape(target)
            assert path.resolve().exists(), (name, target)


def test_pages_load_nothing_from_the_network(site):
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        # The drawing of the architecture is made by a script of mermaid.
        if "mermaid" in text and path.name == "architecture.html":
            continue
        loaded = re.findall(
            r"<(?:script|link|img|iframe)[^>]+(?:src|href)=[\"'](https?:[^\"']+)", text
        )
        assert not [url for url in loaded if "mathjax" not in url], path
        assert not re.findall(r"(?:url\(|@import )[\"']?(?:https?:)?//", text)


def test_site_has_a_search_and_equations(site):
    assert (site / "searchindex.js").stat().st_size > 100_000
    masks = (site / "masks.html").read_text(encoding="utf-8")
    assert 'class="math notranslate nohighlight"' in masks and "mathjax" in masks


def test_notebooks_are_shown_with_their_pictures(site):
    page = (site / "notebooks" / "translation.html").read_text(encoding="utf-8")
    assert re.search(r'<img[^>]+src="\.\./_images/[0-9a-f]+\.png"', page)


def test_layers_have_an_equation():
    without = [
        name
        for name in layers.__all__
        if isinstance(getattr(layers, name), type) and not equations(getattr(layers, name))
    ]
    assert not without


def test_the_page_of_layers_names_every_layer():
    page = (ROOT / "docs" / "layers.md").read_text(encoding="utf-8")
    for name in layers.__all__:
        assert not inspect.isclass(getattr(layers, name)) or f"`{name}`" in page, name
