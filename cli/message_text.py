"""Messages as a terminal shows them."""

from keras_seq_cli.control_characters import show_controls

# Longer messages quote something that is not meant to be read; both ends explain it.
_MAX_CHARACTERS = 2000
_END_CHARACTERS = 500
_CUT = " ... "


def message_text(line: str) -> str:
    """Returns a message with control characters as `\\x1b`, cut in the middle if it is very long.

    >>> len(message_text("a" * 3000))
    2000
    """
    line = show_controls(line)
    if len(line) <= _MAX_CHARACTERS:
        return line
    begin = _MAX_CHARACTERS - len(_CUT) - _END_CHARACTERS
    return f"{line[:begin]}{_CUT}{line[-_END_CHARACTERS:]}"
