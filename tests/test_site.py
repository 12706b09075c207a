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
from matplotlib.mathtext import MathTextParser

from keras_seq import layers

# Building the site takes a minute, so the tests of it are weekly, too.
pytestmark = pytest.mark.docs

ROOT = Path(__file__).parents[1]
# The extensions of the site.
sys.path.insert(0, str(ROOT / "docs" / "_site"))
formulas = importlib.import_module("formulas")
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


def blocks(documented):
    """Returns the indented blocks before the docstring's first section, each a list of lines."""
    sections = r"^(?:Shapes|Args|Attributes|Call arguments|Returns|Raises|Example|Reference):"
    head = re.split(sections, inspect.getdoc(documented) or "", flags=re.MULTILINE)[0]
    parts = [part.strip("\n").split("\n") for part in head.split("\n\n")]
    return [lines for lines in parts if lines[0].startswith("    ")]


@pytest.mark.weekly
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
        for lines in blocks(documented):
            if formulas.is_formula(lines):
                lines = formulas.latex(lines)
            for line in lines:
                assert line.strip() in shown, (public, line)


@pytest.mark.parametrize(
    ("plain", "expected"),
    [
        ("h~_t = tanh(W [c_t; s_t])", r"\tilde{h}_{t} &= \tanh (W [c_{t}; s_{t}])"),
        ("c[t] = sum over s of a[t, s]", r"c[t] &= \sum_{s} a[t, s]"),
        ("P(y | x) = mean_m P_m(y)", r"P(y \mid x) &= \operatorname{mean}_{m} P_{m}(y)"),
        ("y = x / sqrt(D_k) ** (1 / 4)", r"y &= x / \sqrt{D_{k}}^{1 / 4}"),
        ("w = 1 / 10000^(2i / D)", r"w &= 1 / 10000^{2i / D}"),
        ("mean:  y = x, if k <= 2", r"\text{mean}: & \quad y = x, \text{ if } k \leq  2"),
    ],
)
def test_equations_are_converted_to_latex(plain, expected):
    assert formulas.is_formula([f"    {plain}"])
    assert formulas.latex([f"    {plain}"]) == [expected]


@pytest.mark.parametrize(
    "text", ["    model, search = load(run)", "    x = layers with dropout on top"]
)
def test_code_and_descriptions_are_no_formulas(text):
    assert not formulas.is_formula([text])


def test_every_formula_is_valid_latex():
    parser = MathTextParser("path")
    parsed = 0
    for name in MODULES:
        module = importlib.import_module(f"keras_seq.{name}")
        for public in module.__all__:
            for lines in filter(formulas.is_formula, blocks(getattr(module, public))):
                for row in formulas.latex(lines):
                    # The parser reads one line, and has neither alignment nor these commands.
                    line = re.sub(r"(?<!\\)&|\\\\$", "", row).replace(
                        "operatorname*", "operatorname"
                    )
                    parser.parse(f"${line.replace('texttt', 'text')}$")
                    parsed += 1
    assert parsed > 150


@pytest.mark.weekly
def test_arguments_are_lists_and_names_are_links(site):
    page = (site / "reference" / "keras_seq.layers.AttentionDecoder.html").read_text("utf-8")
    assert re.search(r"Parameters.*?<strong>cell</strong>", page, re.DOTALL)
    assert 'href="keras_seq.layers.AttentionCell.html#keras_seq.layers.AttentionCell"' in page
    plain = text_of(site / "reference" / "keras_seq.layers.BahdanauAttention.html")
    assert "units, normalize=False" in plain


@pytest.mark.weekly
def test_every_link_within_the_site_leads_somewhere(site):
    pages = {path.relative_to(site).as_posix(): path for path in site.rglob("*.html")}
    texts = {name: path.read_text(encoding="utf-8") for name, path in pages.items()}
    for name, text in texts.items():
        for target in re.findall(r'href="([^"#:]+\.html)(?:#[^"]*)?"', text):
            path = (site / name).parent / html.unescape(target)
            assert path.resolve().exists(), (name, target)


@pytest.mark.weekly
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


@pytest.mark.weekly
def test_site_has_a_search_and_equations(site):
    assert (site / "searchindex.js").stat().st_size > 100_000
    masks = (site / "masks.html").read_text(encoding="utf-8")
    assert 'class="math notranslate nohighlight"' in masks and "mathjax" in masks


@pytest.mark.weekly
def test_notebooks_are_shown_with_their_pictures(site):
    page = (site / "notebooks" / "translation.html").read_text(encoding="utf-8")
    assert re.search(r'<img[^>]+src="\.\./_images/[0-9a-f]+\.png"', page)


def test_layers_have_an_equation():
    without = [
        name
        for name in layers.__all__
        if isinstance(getattr(layers, name), type) and not blocks(getattr(layers, name))
    ]
    assert not without


def test_the_page_of_layers_names_every_layer():
    page = (ROOT / "docs" / "layers.md").read_text(encoding="utf-8")
    for name in layers.__all__:
        assert not inspect.isclass(getattr(layers, name)) or f"`{name}`" in page, name
