"""The demo page at `/`, a single file without external resources, and the HTTP headers."""

from __future__ import annotations

import base64
import hashlib
import html
import re
from importlib import resources

_TEMPLATE = resources.files(__package__).joinpath("page.html").read_text(encoding="utf-8")


def _inline_hash(tag: str) -> str:
    """Returns the hash that allows the inline script or style in the security policy."""
    match = re.search(rf"<{tag}>(.*?)</{tag}>", _TEMPLATE, flags=re.DOTALL)
    if match is None:
        raise RuntimeError(f"page.html has no <{tag}>.")
    digest = hashlib.sha256(match.group(1).encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


PAGE_HEADERS = {
    "Content-Security-Policy": (
        f"default-src 'none'; script-src {_inline_hash('script')}; "
        f"style-src {_inline_hash('style')}; connect-src 'self'; img-src data:; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}


def page(name: str) -> str:
    """Returns the demo page for the model `name`."""
    return _TEMPLATE.replace("{{model}}", html.escape(name, quote=True))
