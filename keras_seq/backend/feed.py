"""Batches for `fit`."""

import itertools
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import keras

from keras_seq.backend.device import name


def batch_feed(batches: Callable[[], Iterator[Any]], example: Any) -> Any:
    """Wraps a generator function so that `fit` takes batches of changing shapes.

    Args:
        batches: Returns an iterator over structures of int32 arrays.
        example: One such structure, for the ranks.

    Returns:
        What `keras.Model.fit` takes as its data.
    """
    if name() == "tensorflow":
        import tensorflow as tf

        signature = keras.tree.map_structure(
            lambda array: tf.TensorSpec([None] * array.ndim, array.dtype), example
        )
        source = [batches]
        feed = tf.data.Dataset.from_generator(_counted(source), output_signature=signature)
        # TensorFlow keeps the function as long as the process lives, and with it, by this one,
        # all that a training needed.
        weakref.finalize(feed, source.clear).atexit = False
        options = tf.data.Options()
        # There is nothing to tune, and the thread that would sleeps for up to ten seconds after the
        # last batch, for which the end of `fit` waits.
        options.autotune.enabled = False
        return feed.prefetch(2).with_options(options)
    return batches()


def wait_for_feeds(seconds: float = 2.0) -> None:
    """Waits until threads of TensorFlow's have let go of all that `batch_feed` gave.

    Args:
        seconds: How long at most.
    """
    with _feeds_end:
        _feeds_end.wait_for(lambda: not _open_feeds, timeout=seconds)


_open_feeds: set[int] = set()


_feeds_end = threading.Condition()


_feed_numbers = itertools.count()


def _counted(source: list[Callable[[], Iterator[Any]]]) -> Callable[[], Iterator[Any]]:
    """The function that is the only one in a list, made to say when its iterators have ended."""

    def counted() -> Iterator[Any]:
        number = next(_feed_numbers)
        _open_feeds.add(number)
        try:
            yield from source[0]()
        finally:
            with _feeds_end:
                _open_feeds.discard(number)
                _feeds_end.notify_all()

    return counted
