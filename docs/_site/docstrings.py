"""Converts docstrings, which are Markdown with Google's sections, to reStructuredText."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import formulas
import keras
import public_names

# What Keras asks of every layer is not repeated for each: a layer is called, and its docstring says
# how.
_OF_KERAS = {
    "build",
    "call",
    "compute_mask",
    "compute_output_shape",
    "get_config",
    "from_config",
    "supports_masking",
}
_CODE = re.compile(r"`([^`]+)`", re.DOTALL)
_LINK = re.compile(r"\[([^\]]+)\]\((https?://[^)\s]+)\)")
_ITEM = re.compile(r"^ {4}[\w*][\w*, ]*: ")
_SECTION = re.compile(
    r"^(?:Args|Call arguments|Attributes|Returns|Yields|Raises|Example|References?):$"
)


def skip(app, what, name, member, skipped, options):
    """Leaves out the methods that Keras calls, and members without a docstring."""
    if name in _OF_KERAS or (not skipped and not getattr(member, "__doc__", None)):
        return True
    return None


def convert(app, what, name, obj, options, lines):
    """Replaces the lines of a docstring, before napoleon reads its sections."""
    lines[:] = [line for block in _blocks(lines) for line in (*block, "")]


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    """Yields the blocks between blank lines, converted."""
    is_in_section = False
    for block in _split(lines):
        is_in_section = is_in_section or bool(_SECTION.match(block[0]))
        first = block[0].lstrip()
        if first.startswith(">>>"):
            yield block
        elif first.startswith("|"):
            yield from _table(block)
        elif block[0].startswith("    ") and not is_in_section:
            if formulas.is_formula(block):
                yield [".. math::", "", *(f"    {line}" for line in formulas.latex(block))]
            else:
                yield [".. code-block:: none", "", *(f"    {line}" for line in block)]
        elif _SECTION.match(block[0]) and len(block) > 1:
            yield _section(block)
        else:
            yield _text(block)


def _section(block: list[str]) -> list[str]:
    """Returns a section with one line for each of its items, as napoleon expects them."""
    title, *lines = block
    items: list[str] = []
    for line in lines:
        if line.startswith("     ") and items:
            items[-1] += f" {line.strip()}"
        else:
            items.append(line)
    if title == "Returns:" and all(map(_ITEM.match, items)):
        title = "Outputs:"
    return [title, *_text(items)]


def _split(lines: list[str]) -> Iterator[list[str]]:
    block: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            block.append(line)
        elif block:
            yield block
            block = []


def _text(block: list[str]) -> list[str]:
    parts = _CODE.split("\n".join(block))
    # Bars are absolute values, not substitutions.
    parts[::2] = [part.replace("|", "\\|") for part in parts[::2]]
    parts[1::2] = map(_code, parts[1::2])
    text = "".join(parts)
    text = _LINK.sub(r"`\1 <\2>`__", text)
    # Stars of arguments such as *args are no emphasis.
    text = re.sub(r"(?<![\w`*])(\*{1,2})(?=\w+[:,])", lambda found: "\\*" * len(found[1]), text)
    return text.split("\n")


def _code(text: str) -> str:
    content = " ".join(text.split())
    name = content.removesuffix("()").removeprefix("keras_seq.")
    path = public_names.paths().get(name.rpartition(".")[2])
    if path is not None and path.endswith(name):
        return f":py:obj:`{content} <{path}>`"
    return f"``{content}``"


def _table(block: list[str]) -> Iterator[list[str]]:
    head, _, *rows = ([cell.strip() for cell in row.strip("| ").split("|")] for row in block)
    yield [
        ".. list-table::",
        "    :header-rows: 1",
        "",
        *(
            f"    {'*' if number == 0 else ' '} - {_text([cell])[0]}"
            for row in (head, *rows)
            for number, cell in enumerate(row)
        ),
    ]


def signature(app, what, name, obj, options, signature, return_annotation):
    """Returns the arguments of a class, which Keras hides behind a wrapper."""
    if what != "class" or not issubclass(obj, keras.Operation):
        return None
    parameters = list(inspect.signature(obj.__init__).parameters.values())[1:]
    shown = [parameter.replace(annotation=parameter.empty) for parameter in parameters]
    return str(inspect.Signature(shown)), None
