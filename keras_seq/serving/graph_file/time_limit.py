"""Time limit of each run of an untrusted graph, which may contain an endless loop."""

from __future__ import annotations

# Far more than a search takes: a run of a large model takes a second per row.
_SECONDS = 600
_SECONDS_PER_ROW = 10
ERROR = "did not end within {:,} s: a graph may contain an endless loop"


def seconds_for(rows: int) -> int:
    """Returns the seconds that a run with `rows` rows may take; 0 rows to load the graph.

    TensorFlow compares the time between two operations, so a single operation takes as long as it
    takes.
    """
    return _SECONDS + _SECONDS_PER_ROW * rows
