"""Feeds batches of changing shapes to `fit`."""

import itertools
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import keras

from keras_seq.backend.device import name

_open_feeds: set[int] = set()
_feed_closed = threading.Condition()
_feed_numbers = itertools.count()


def batch_feed(batches: Callable[[], Iterator[Any]], example: Any) -> Any:
    """Returns data for `fit` from a function that iterates over batches of changing shapes.

    `example` is one batch, a nested structure of arrays, for its ranks and dtypes.
    """
    if name() != "tensorflow":
        # Keras accepts generators, but no other iterators.
        return (batch for batch in batches())
    import tensorflow as tf

    signature = keras.tree.map_structure(
        lambda array: tf.TensorSpec([None] * array.ndim, array.dtype), example
    )
    source = [batches]
    feed = tf.data.Dataset.from_generator(_tracked(source), output_signature=signature)
    # TensorFlow keeps the generator function until the process ends. Clearing the list frees all
    # objects of the training that the function refers to.
    weakref.finalize(feed, source.clear).atexit = False
    options = tf.data.Options()
    # Otherwise `fit` can wait ten seconds for the autotuning thread after the last batch.
    options.autotune.enabled = False
    return feed.prefetch(2).with_options(options)


def wait_for_feeds(seconds: float = 2.0) -> None:
    """Waits at most N seconds until TensorFlow has closed all iterators of `batch_feed`."""
    with _feed_closed:
        _feed_closed.wait_for(lambda: not _open_feeds, timeout=seconds)


def _tracked(source: list[Callable[[], Iterator[Any]]]) -> Callable[[], Iterator[Any]]:
    """Wraps the generator function in a list, so that `wait_for_feeds` sees its iterators."""

    def generate() -> Iterator[Any]:
        number = next(_feed_numbers)
        _open_feeds.add(number)
        try:
            yield from source[0]()
        finally:
            with _feed_closed:
                _open_feeds.discard(number)
                _feed_closed.notify_all()

    return generate
