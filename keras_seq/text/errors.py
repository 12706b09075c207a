"""The one error for whatever is wrong with a user's files."""


class InputError(ValueError):
    """A file, or a line of one, that cannot be used as it is.

    The message is one line made for the person who owns the file:
    `FILE:LINE: what is wrong` or `FILE: what is wrong`. A command line prints
    it and exits with 2; it never needs a traceback.

    Example:

    >>> str(InputError("train.de:7: invalid UTF-8"))
    'train.de:7: invalid UTF-8'
    """
