"""Names of weights in checkpoints."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

# On weights of models of plugins; see `name_weights`.
_ATTRIBUTE = "keras_seq_name"
_NUMBER = re.compile(r"_\d+$")


def name_weights(model: Any) -> None:
    """Gives the weights of a model names that do not depend on what was built before it.

    The models of keras_seq name all their layers. In other models, Keras numbers the layers of a
    process: the first dense layer is `dense`, the second is `dense_1`.
    """
    names = renumbered([weight.path for weight in model.weights])
    for weight, name in zip(model.weights, names, strict=True):
        setattr(weight, _ATTRIBUTE, name)


def stored_name(weight: Any) -> str:
    """Returns the name of a weight in checkpoints."""
    return getattr(weight, _ATTRIBUTE, weight.path)


def has_numbered_names(model: Any) -> bool:
    """Tests if `name_weights` named the weights of a model."""
    return any(hasattr(weight, _ATTRIBUTE) for weight in model.weights)


def renumbered(paths: Sequence[str]) -> list[str]:
    """Numbers the parts of paths anew, in the order of their first appearance.

    Example:

    >>> renumbered(["dense_7/kernel", "dense_7/bias", "dense_9/kernel", "gru_3/cell/kernel"])
    ['dense/kernel', 'dense/bias', 'dense_1/kernel', 'gru/cell/kernel']
    """
    known: dict[tuple[str, str], str] = {}
    taken: set[tuple[str, str]] = set()
    names = []
    for path in paths:
        name = ""
        for part in path.split("/"):
            if (name, part) not in known:
                base = _NUMBER.sub("", part)
                numbered = (f"{base}_{i}" if i else base for i in itertools.count())
                known[name, part] = next(one for one in numbered if (name, one) not in taken)
                taken.add((name, known[name, part]))
            name = f"{name}/{known[name, part]}" if name else known[name, part]
        names.append(name)
    return names
