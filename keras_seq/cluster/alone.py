"""The base class of clusters: a single device that trains with `fit` of Keras."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import numpy as np

from keras_seq import backend

Batches = Callable[[], Iterator[Any]]
Numbers = Sequence[float] | np.ndarray


class Cluster:
    """The devices that share each batch of a training; this class uses a single device.

    `host` is the index of this process among all `hosts` processes. Host 0 is the chief, which
    writes the run. The number of rows in a host's batch is a multiple of `row_multiple`.
    `description` is for the user, "" for a single device.
    """

    host = 0
    hosts = 1
    row_multiple = 1
    description = ""

    @property
    def is_chief(self) -> bool:
        return self.host == 0

    def scope(self) -> contextlib.AbstractContextManager[Any]:
        """Context in which models are built, trained and used."""
        return contextlib.nullcontext()

    def fit(self, model: keras.Model, batches: Batches, example: Any, **options: Any) -> None:
        """Trains a compiled model like `keras.Model.fit`, on batches in the given order.

        `model` is built in `scope`, and so is its optimizer. `batches` returns an iterator over the
        batches of this host, and `example` is one of them. `options` are `steps_per_epoch`,
        `epochs` and `callbacks` of `keras.Model.fit`.
        """
        model.fit(backend.batch_feed(batches, example), verbose=0, shuffle=False, **options)

    def largest(self, values: Numbers) -> np.ndarray:
        """The elementwise maximum over all hosts, float64. All hosts must call this method."""
        return np.asarray(values, np.float64)

    def of_first(self, values: Numbers) -> np.ndarray:
        """The numbers of the first host. All hosts must call this method."""
        return self.largest(values if self.is_chief else np.full(len(values), -np.inf))

    def differs(self, values: Numbers) -> bool:
        """Returns True if the numbers differ between hosts. All hosts must call this method."""
        array = np.asarray(values, np.float64)
        return not np.array_equal(self.largest(array), -self.largest(-array))


def describe(kind: str, devices: int, hosts: int) -> str:
    """The description of a cluster of several devices."""
    return f"devices {devices} ({kind})" + (f" of {hosts} hosts" if hosts > 1 else "")
