"""Self-contained HTML pages, made from a template and data."""

import base64
import hashlib
import html
import json
import os
import re
from importlib import resources
from pathlib import Path
from typing import Any

from keras_seq.storage import named_errors

# What a template contains in place of a file that templates share.
_PARTS = {
    "/*base*/": "base.css",
    "/*attention style*/": "attention.css",
    "<!--top-->\n": "top.html",
    "/*helpers*/": "base.js",
    "/*attention*/": "attention.js",
}


class Page(str):
    """An HTML page, which a notebook shows as the result of a cell."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the page to a file."""
        # Replace lone surrogates, because an error here would lose the result of a long search.
        with named_errors(path):
            Path(path).write_text(self, encoding="utf-8", errors="replace", newline="\n")

    def _repr_html_(self) -> str:
        # A frame of its own keeps the style and the script of the page apart from the notebook's.
        return (
            f'<iframe srcdoc="{html.escape(self)}" sandbox="allow-scripts" '
            'style="width: 100%; height: 36em; border: 0"></iframe>'
        )


def make_page(name: str, data: Any) -> Page:
    """Returns an HTML page that contains its script, style and data.

    The content security policy of the page lists the hashes of its script and style, so browsers
    run nothing else, whatever the data contains.

    `name` is the file name of the template without `.html`. `data` must be serializable as JSON and
    is never parsed as markup. Raises ValueError if `data` contains a number that is not finite.
    """
    text = json.dumps(data, ensure_ascii=False, allow_nan=False)
    # Escaping `<` prevents the data from closing the script element or starting a comment.
    for character, escaped in (("<", "\\u003c"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029")):
        text = text.replace(character, escaped)
    # A lone surrogate has no encoding in UTF-8.
    text = text.encode("utf-8", "replace").decode()
    page = _read("head.html") + _read(f"{name}.html")
    for mark, file in _PARTS.items():
        page = page.replace(mark, _read(file), 1)
    page = page.replace("/*data*/null", text, 1)
    # Replaces only the first occurrence, which is in the head, because the data may contain more.
    for tag in ("script", "style"):
        page = page.replace(f"{{{tag}}}", _hash_of(tag, page), 1)
    return Page(page)


def _read(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _hash_of(tag: str, page: str) -> str:
    """Returns the hash of the only `tag` element of a page, for a content security policy."""
    element = re.search(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
    content = element[1] if element else ""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"
