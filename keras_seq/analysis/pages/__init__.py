"""Self-contained HTML pages."""

from .page import make_page

__all__ = ["make_page"]
