"""Runs `fit` and cleans up after it."""

from __future__ import annotations

import contextlib
import gc
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import keras

from keras_seq import backend
from keras_seq.cluster import Cluster


def run_fit(
    cluster: Cluster,
    model: keras.Model,
    batches: Callable[[], Iterator[Any]],
    example: Any,
    **options: Any,
) -> None:
    """Runs `fit` and frees its batch iterator, even after an exception.

    The iterator of TensorFlow has threads that run Python code. A process that exits while such a
    thread is alive can hang. The iterator is part of a reference cycle, and the frames of an
    exception refer to it.
    """
    try:
        with _full_tracebacks():
            cluster.fit(model, batches, example, **options)
    except BaseException as error:
        traceback.clear_frames(error.__traceback__)
        raise
    finally:
        gc.collect()
        backend.wait_for_feeds()


@contextlib.contextmanager
def _full_tracebacks() -> Iterator[None]:
    """Keeps the frames of Keras in tracebacks, so that `clear_frames` reaches them."""
    filtered = keras.config.is_traceback_filtering_enabled()
    keras.config.disable_traceback_filtering()
    try:
        yield
    finally:
        if filtered:
            keras.config.enable_traceback_filtering()
