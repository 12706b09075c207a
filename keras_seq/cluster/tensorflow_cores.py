"""CPU cores that each compute a part of every batch, on TensorFlow."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import keras
import tensorflow as tf

from keras_seq.cluster.tensorflow_loop import PartialGradients, TensorFlowLoop, Update, signature_of
from keras_seq.runtime.malloc import keep_freed_memory


class TensorFlowCores(TensorFlowLoop):
    """Data parallelism on the cores of one CPU: one thread per core, with shared weights.

    If several threads share each operation, they synchronize after each of the thousands of
    operations of an update, and small operations cannot be shared at all. Here, each thread
    computes the gradients of a part of the batch, so threads synchronize once per update. This
    needs one TensorFlow thread per operation and as many concurrent operations as there are parts
    (`threads.configure_threads`).
    """

    def __init__(self, parts: int) -> None:
        self._parts = parts
        keep_freed_memory()

    @contextlib.contextmanager
    def _updates(self, model: keras.Model, example: Any) -> Iterator[Update]:
        gradients, apply = self._made_for(model, lambda: _functions(model, example))
        with ThreadPoolExecutor(max(1, self._parts - 1)) as pool:

            def update(batch: Any) -> Any:
                parts = split_batch(batch, self._parts)
                futures = [
                    pool.submit(gradients, part, number)
                    for number, part in enumerate(parts[1:], start=1)
                ]
                first = gradients(parts[0], 0)
                return apply([first, *(future.result() for future in futures)])

            yield update


def split_batch(batch: Any, count: int) -> list[Any]:
    """Splits a batch of nested arrays `(B, ...)` into at most `count` parts.

    The numbers of rows differ by at most one, and no part is empty.
    """
    rows = len(tf.nest.flatten(batch)[0])
    count = min(count, rows)
    ends = [rows * number // count for number in range(count + 1)]

    def part(start: int, end: int) -> Any:
        return tf.nest.map_structure(lambda array: array[start:end], batch)

    return [part(start, end) for start, end in itertools.pairwise(ends)]


def _functions(model: keras.Model, example: Any) -> tuple[Any, Any]:
    """The gradients of a part, and the update of the weights by those of all parts."""
    partial = PartialGradients(model)

    def apply(parts: Any) -> Any:
        gradients, losses, counters = zip(*parts, strict=True)
        partial.apply(
            [
                None if of_variable[0] is None else tf.add_n(of_variable)
                for of_variable in zip(*gradients, strict=True)
            ],
            counters[0],
        )
        return tf.add_n(losses)

    compiled = tf.function(partial, autograph=False)
    # Traced in this thread, because Keras keeps its settings per thread.
    traced = compiled.get_concrete_function(signature_of(example), tf.TensorSpec([], tf.int32))

    def gradients(part: Any, number: int) -> Any:
        return traced(tf.nest.map_structure(tf.convert_to_tensor, part), tf.constant(number))

    return gradients, tf.function(apply, autograph=False)
