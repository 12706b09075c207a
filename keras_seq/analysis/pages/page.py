"""A template and data to one file that a browser opens from disk."""

import base64
import hashlib
import json
import re
from importlib import resources
from typing import Any

_DATA = "/*data*/null"


def make_page(name: str, data: Any) -> str:
    """Puts data into a page of this package.

    Where the template's policy has `{script}` and `{style}`, the hashes of its script and
    style go there: nothing else runs in the page, whatever the data says.

    Args:
        name: Of the template, without `.html`.
        data: Whatever JSON can hold. Nothing in it is taken for markup.

    Returns:
        The page's text, with its script, style and data inside.

    Raises:
        ValueError: If there is a number in the data that JSON cannot hold.
    """
    template = resources.files(__package__).joinpath(f"{name}.html").read_text(encoding="utf-8")
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    # In a script an HTML parser looks for its end alone, and for comments.
    for character, written in (("<", "\\u003c"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029")):
        text = text.replace(character, written)
    # A lone surrogate is no text, and has no place in UTF-8.
    text = text.encode("utf-8", "replace").decode()
    page = template.replace(_DATA, text, 1)
    # The first of each stands in the head, before all data.
    for tag in ("script", "style"):
        page = page.replace(f"{{{tag}}}", _hash_of(tag, page), 1)
    return page


def _hash_of(tag: str, page: str) -> str:
    """As a content security policy names what is in the page's one element of a kind."""
    found = re.search(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    content = found[1] if found else ""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
