"""Pages that need nothing but themselves: data to one HTML file."""

from .page import make_page

__all__ = ["make_page"]
