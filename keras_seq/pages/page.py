"""A template and data to one file that a browser opens from disk."""

import json
from importlib import resources
from typing import Any

_MARK = "/*data*/null"


def make_page(name: str, data: Any) -> str:
    """Puts data into a page of this package.

    Args:
        name: Of the template, without `.html`.
        data: Whatever JSON can hold. Nothing in it is taken for markup.

    Returns:
        The page's text, with its script, style and data inside.
    """
    template = resources.files(__package__).joinpath(f"{name}.html").read_text(encoding="utf-8")
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    # In a script an HTML parser looks for its end alone, and for comments.
    for character, written in (("<", "\\u003c"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029")):
        text = text.replace(character, written)
    return template.replace(_MARK, text, 1)
