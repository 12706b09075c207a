"""Packing of short sequences into segments of one length."""

from collections.abc import Iterable, Iterator, Sequence

from keras_seq.text import BOS_ID, EOS_ID


def pack(sequences: Iterable[Sequence[int]], length: int) -> Iterator[list[int]]:
    """Concatenates sequences of ids and yields segments of `length` ids.

    An end and a begin token separate two sequences. The last segment may be shorter and ends with
    an end token. Batches of segments have no padding except for the last segment.

    Example:

    >>> list(pack([[5, 6], [7], [8, 9]], 4))
    [[5, 6, 3, 2], [7, 3, 2, 8], [9, 3]]
    """
    buffer: list[int] = []
    first = True
    for sequence in sequences:
        buffer += [*sequence, EOS_ID] if first else [BOS_ID, *sequence, EOS_ID]
        first = False
        while len(buffer) >= length:
            yield buffer[:length]
            del buffer[:length]
    if buffer:
        yield buffer
