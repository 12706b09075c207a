"""Cores of one processor that each take a part of every batch, under TensorFlow."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import keras
import tensorflow as tf

from keras_seq.cluster.alone import PartsOf
from keras_seq.cluster.tensorflow_loop import (
    PartialGradients,
    TensorFlowLoop,
    Update,
    signature_of,
)
from keras_seq.runtime.malloc import keep_freed_memory


class TensorFlowCores(TensorFlowLoop):
    """A thread for each part of a batch, all with the same weights.

    Threads that share each operation wait for each other at its end, some thousand times an
    update, and those of the small ones have nothing to share. So the rows are shared out, and
    threads meet once an update. It is of use where TensorFlow has one thread for an
    operation and as many operations at a time as there are parts (`threads.configure_threads`).

    Args:
        parts: Of a batch; fewer where it has fewer rows.
    """

    def __init__(self, parts: int) -> None:
        self._parts = parts
        keep_freed_memory()

    @contextlib.contextmanager
    def _updates(self, model: keras.Model, example: Any, split_batch: PartsOf) -> Iterator[Update]:
        gradients, apply = self._made_for(model, lambda: _functions(model, example))
        with ThreadPoolExecutor(max(1, self._parts - 1)) as pool:

            def update(batch: Any) -> Any:
                arrays = tf.nest.map_structure(lambda tensor: tensor.numpy(), batch)
                parts = split_batch(arrays, self._parts)
                others = [
                    pool.submit(gradients, part, number)
                    for number, part in enumerate(parts[1:], start=1)
                ]
                first = gradients(parts[0], 0)
                return apply([first, *(other.result() for other in others)])

            yield update


def _functions(model: keras.Model, example: Any) -> tuple[Any, Any]:
    partial = PartialGradients(model)

    def apply(parts: Any) -> Any:
        found, losses, counters = zip(*parts, strict=True)
        summed = [None if same[0] is None else tf.add_n(same) for same in zip(*found, strict=True)]
        partial.apply(summed, counters[0])
        return tf.add_n(losses)

    scalar = tf.TensorSpec([], tf.int32)
    compiled = tf.function(partial, autograph=False)
    # Traced here, for Keras keeps its settings for each thread apart.
    traced = compiled.get_concrete_function(signature_of(example), scalar)

    def gradients(part: Any, number: int) -> Any:
        return traced(tf.nest.map_structure(tf.constant, part), tf.constant(number))

    return gradients, tf.function(apply, autograph=False)
