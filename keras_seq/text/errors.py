"""Errors and notices about a user's files."""

from collections.abc import Callable

# A function that is called with each message for the user, a line of text.
Notice = Callable[[str], None]


class InputError(ValueError):
    """Raised if a file, or a line of a file, cannot be used as it is.

    The message is one line for the owner of the file: `FILE:LINE: problem` or `FILE: problem`.
    The command line prints the message without a traceback and exits with code 2.

    Example:

    >>> str(InputError("train.de:7: invalid UTF-8"))
    'train.de:7: invalid UTF-8'
    """


def silent(message: str) -> None:
    """A `Notice` that ignores its message."""
