"""Frozen weights."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

import keras

from keras_seq.run.models import named_weights
from keras_seq.text import InputError


def freeze(model: keras.Model, patterns: str | Sequence[str] | None) -> list[str]:
    """Excludes weights from training, and returns their paths. Call it before `compile`.

    A pattern is a weight path, or its beginning up to a slash, with the wildcards `*` and `?`:
    `"embedding"`, `"encoder_*"`, `"*/bias"`. Raises InputError if a pattern matches no weight, or
    if all weights are frozen.
    """
    names = named_weights(model)
    frozen: dict[str, None] = {}
    for pattern in [patterns] if isinstance(patterns, str) else patterns or []:
        matches = fnmatch.filter(names, pattern) + fnmatch.filter(names, f"{pattern}/*")
        if not matches:
            parts = ", ".join(dict.fromkeys(name.split("/")[0] for name in names))
            raise InputError(
                f"training.freeze: received {pattern!r}, expected a pattern of weight names, such "
                f"as {next(iter(names))!r}, whose first parts are: {parts}"
            )
        frozen.update(dict.fromkeys(matches))
    for name in frozen:
        names[name].trainable = False
    if not model.trainable_weights:
        raise InputError("training.freeze: all weights are frozen, nothing is left to train")
    return list(frozen)
