"""Bounds the size of a JSON document before it is parsed.

Python needs seconds for megabytes of `[],`, and answers no other request meanwhile.
"""

from __future__ import annotations

import numpy as np

from keras_seq.serving.http.errors import RequestError
from keras_seq.serving.http.limits import Limits

_QUOTE, _COMMA = ord('"'), ord(",")
# This bit is the only difference between `[` and `{`, and between `]` and `}`.
_BRACE_BIT = ord("[") ^ ord("{")


def check_json_size(body: bytes, limits: Limits) -> None:
    """Raises RequestError if a JSON document has too many or too deep lists, or too many values.

    The document need not be valid: everything up to its first error is counted.
    """
    # Characters in strings count here, so these numbers are upper bounds, and fast to compute.
    lists = body.count(b"[") + body.count(b"{")
    if lists <= min(limits.depth, limits.lists) and body.count(b",") + lists < limits.values:
        return
    characters = _outside_strings(body)
    braces = characters | _BRACE_BIT
    opening, closing = braces == ord("{"), braces == ord("}")
    lists = int(np.count_nonzero(opening))
    if lists > limits.lists:
        raise RequestError(
            f"JSON Parse error: {lists:,} lists and objects, at most {limits.lists:,} are read"
        )
    values = int(np.count_nonzero(characters == _COMMA)) + lists + 1
    if values > limits.values:
        raise RequestError(
            f"JSON Parse error: {values:,} values, at most {limits.values:,} are read"
        )
    steps = opening[opening | closing].astype(np.int64) * 2 - 1
    if np.cumsum(steps).max(initial=0) > limits.depth:
        raise RequestError(
            f"JSON Parse error: nested too deep, at most {limits.depth} levels are read"
        )


def _outside_strings(body: bytes) -> np.ndarray:
    """Returns the characters of a JSON document that are not part of strings."""
    # Without escapes, each quote begins or ends a string.
    plain = body.replace(rb"\\", b"").replace(rb"\"", b"")
    characters = np.frombuffer(plain, np.uint8)
    in_string = np.bitwise_xor.accumulate((characters == _QUOTE).view(np.uint8))
    return characters[in_string == 0]
