"""Control characters in messages as text, because a terminal would obey them.

Names and numbers in the files of strangers may have some.
"""

# Line feeds and tabs stay. Some terminals also obey the C1 controls, U+0080 to U+009F.
_SHOWN = {number: f"\\x{number:02x}" for number in (*range(10), *range(11, 32), *range(127, 160))}
del _SHOWN[ord("\t")]


def show_controls(text: str) -> str:
    r"""Returns text whose control characters are shown as `\x1b`.

    >>> print(show_controls("a" + chr(27) + "[31m"))
    a\x1b[31m
    """
    return text.translate(_SHOWN)
