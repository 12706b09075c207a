"""One device of one host, as Keras trains on it; the others derive from it."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np

from keras_seq import backend

Numbers = Sequence[float] | np.ndarray
# Of a batch as many parts as a number says, or fewer, none without rows.
PartsOf = Callable[[Any, int], Sequence[Any]]


class Cluster:
    """What shares the rows of each batch; here one device that gets them all.

    Attributes:
        host: The place of this process among all, from 0; that of the first, which writes.
        hosts: How many processes there are.
        row_multiple: Rows of a host's batches are a multiple of it.
        words: What it is, for the user; "" for one device.
    """

    host = 0
    hosts = 1
    row_multiple = 1
    words = ""

    @property
    def follows(self) -> bool:
        """Whether another host writes the run."""
        return self.host > 0

    def scope(self) -> contextlib.AbstractContextManager[Any]:
        """Within it models are built, trained and used."""
        return contextlib.nullcontext()

    def fit(
        self,
        model: keras.Model,
        batches: Callable[[], Iterator[Any]],
        example: Any,
        split_batch: PartsOf,
        **options: Any,
    ) -> None:
        """Trains a compiled model, as its own `fit` does, in the order of the batches.

        Args:
            model: Built in `scope`, compiled, its optimizer built.
            batches: Function that gives an iterator over this host's batches.
            example: One of them, for its ranks.
            split_batch: Shares the rows of a batch out to cores that take a part each.
            **options: `steps_per_epoch`, `epochs` and `callbacks` of `keras.Model.fit`.
        """
        feed = backend.batch_feed(batches, example)
        model.fit(feed, verbose=0, shuffle=False, **options)

    def largest(self, values: Numbers) -> np.ndarray:
        """The largest of each number over all hosts, which all must ask for it.

        Args:
            values: As many on each host.

        Returns:
            Float64 array.
        """
        return np.asarray(values, np.float64)

    def of_first(self, values: Numbers) -> np.ndarray:
        """The numbers of the first host, which all must ask for; for arguments see `largest`."""
        return self.largest(np.full(len(values), -np.inf) if self.follows else values)

    def differs(self, values: Numbers) -> bool:
        """Whether not all hosts have the same numbers, which all must ask."""
        array = np.asarray(values, np.float64)
        return not np.array_equal(self.largest(array), -self.largest(-array))
