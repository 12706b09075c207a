"""CPU cores that each compute a shard of every batch, on TensorFlow."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import keras
import tensorflow as tf

from keras_seq.cluster.tensorflow_loop import ShardGradients, TensorFlowLoop, Update, signature_of
from keras_seq.operating_system import keep_freed_memory


class TensorFlowCores(TensorFlowLoop):
    """Data parallelism on the cores of one CPU: one thread per core, with shared weights.

    If several threads share each operation, they synchronize after each of the thousands of
    operations of an update, and small operations cannot be shared at all. Here, each thread
    computes the gradients of a shard of the batch, so threads synchronize once per update. This
    needs one TensorFlow thread per operation and as many concurrent operations as there are shards
    (`threads.configure_threads`).
    """

    def __init__(self, shards: int) -> None:
        self._shards = shards
        keep_freed_memory()

    @contextlib.contextmanager
    def _updates(self, model: keras.Model, example: Any) -> Iterator[Update]:
        gradients, apply = self._made_for(model, lambda: _functions(model, example))
        with ThreadPoolExecutor(max(1, self._shards - 1)) as pool:

            def update(batch: Any) -> Any:
                shards = split_batch(batch, self._shards)
                futures = [pool.submit(gradients, shards[i], i) for i in range(1, len(shards))]
                first = gradients(shards[0], 0)
                return apply([first, *(future.result() for future in futures)])

            yield update


def split_batch(batch: Any, count: int) -> list[Any]:
    """Splits a batch of nested arrays `(B, ...)` into at most `count` shards.

    The numbers of rows differ by at most one, and no shard is empty.
    """
    rows = len(tf.nest.flatten(batch)[0])
    count = min(count, rows)
    ends = [rows * number // count for number in range(count + 1)]
    return [
        tf.nest.map_structure(lambda array, start=start, end=end: array[start:end], batch)
        for start, end in itertools.pairwise(ends)
    ]


def _functions(model: keras.Model, example: Any) -> tuple[Any, Any]:
    """Returns two functions: gradients of a shard, and an update with all shards' gradients."""
    shard_gradients = ShardGradients(model)

    def apply(results: Any) -> Any:
        gradients, losses, counters = zip(*results, strict=True)
        groups = zip(*gradients, strict=True)
        summed = [None if group[0] is None else tf.add_n(group) for group in groups]
        shard_gradients.apply(summed, counters[0])
        return tf.add_n(losses)

    compiled = tf.function(shard_gradients, autograph=False)
    # Traced in this thread, because Keras keeps its settings per thread.
    traced = compiled.get_concrete_function(signature_of(example), tf.TensorSpec([], tf.int32))

    def gradients(shard: Any, number: int) -> Any:
        return traced(tf.nest.map_structure(tf.convert_to_tensor, shard), tf.constant(number))

    return gradients, tf.function(apply, autograph=False)
