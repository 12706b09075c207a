"""Number of nodes of a graph after each call of a function is replaced by its body."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class Body(NamedTuple):
    """The number of nodes of a function, and the names of the functions that they call."""

    num_nodes: int
    called: list[str]


def expanded_nodes(outer: Body, functions: Mapping[str, Body]) -> float:
    """Returns the number of nodes that TensorFlow makes of a graph with functions.

    Functions that call others twice double the number with each level. The result is infinite if a
    function calls itself.
    """
    sizes: dict[str, float] = {}
    # Entries are a function and whether the functions that it calls are known. No Python function
    # calls itself here, because a chain of calls may be long.
    pending = [(name, False) for name in outer.called]
    active: set[str] = set()
    while pending:
        name, is_ready = pending.pop()
        if is_ready:
            active.remove(name)
            sizes[name] = _sum(functions[name], sizes)
        elif name in active:
            return float("inf")
        elif name in functions and name not in sizes:
            active.add(name)
            pending.append((name, True))
            pending += [(other, False) for other in functions[name].called]
    return _sum(outer, sizes)


def _sum(body: Body, sizes: Mapping[str, float]) -> float:
    return body.num_nodes + sum(sizes.get(name, 0.0) for name in body.called)
