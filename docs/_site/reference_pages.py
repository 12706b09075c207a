"""Writes the pages of the API reference: one per package, and one per public name."""

from __future__ import annotations

import inspect
from pathlib import Path

import public_names


def write(source: Path) -> None:
    """Writes `reference/` in the folder of pages. Files of removed names are deleted."""
    folder = source / "reference"
    pages = {"index": _index()}
    for package, names in public_names.public_names().items():
        own = [name for name in names if public_names.paths()[name.name] == name.path]
        pages[_page_of(package)] = _package(package, names)
        pages |= {name.path: _name(name, package) for name in own}
    folder.mkdir(exist_ok=True)
    for path in folder.glob("*.rst"):
        if path.stem not in pages:
            path.unlink()
    for name, text in pages.items():
        path = folder / f"{name}.rst"
        # Unchanged pages are not read again.
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8", newline="\n")


def _page_of(package: str) -> str:
    return f"package-{package or 'keras_seq'}"


def _title(text: str) -> str:
    return f"{text}\n{'=' * len(text)}\n\n"


def _index() -> str:
    pages = "".join(f"    {_page_of(package)}\n" for package in public_names.PACKAGES)
    text = (
        "Every public class and function: import each from the package in its name, as in "
        "``from keras_seq.layers import BahdanauAttention``.\n\n"
    )
    return _title("Reference") + text + f".. toctree::\n    :maxdepth: 1\n\n{pages}"


def _package(package: str, names: list) -> str:
    rows = "".join(
        f"    * - :py:obj:`{name.name} <{public_names.paths()[name.name]}>`\n"
        f"      - {_summary(name.object)}\n"
        for name in names
    )
    path = ".".join(filter(None, ("keras_seq", package)))
    table = f".. list-table::\n    :widths: 30 70\n\n{rows}\n"
    title = f"{public_names.PACKAGES[package]}: {path}"
    return _title(title) + f".. py:module:: {path}\n\n" + table


def _summary(public: object) -> str:
    from docstrings import _text

    first = (inspect.getdoc(public) or "").partition("\n\n")[0]
    return " ".join(_text([" ".join(first.split())]))


def _name(name, package: str) -> str:
    # An orphan is in no table of contents. Otherwise the side bar of each page would list all
    # names, and the site would take more than twice as long to build.
    text = ":orphan:\n\n" + _title(name.name) + f"In :doc:`{_page_of(package)}`.\n\n"
    text += f".. py:currentmodule:: {name.path.rpartition('.')[0]}\n\n"
    if not inspect.isclass(name.object):
        return text + f".. autofunction:: {name.path}\n"
    kind = "autoexception" if issubclass(name.object, BaseException) else "autoclass"
    return text + f".. {kind}:: {name.path}\n    :members:\n"
