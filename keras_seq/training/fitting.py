"""`fit`, left in good order whatever ends it."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any

import keras

from keras_seq import backend
from keras_seq.cluster import Cluster, PartsOf
from keras_seq.runtime.tensorflow_graphs import release_graphs
from keras_seq.training.batch_splitting import split_batch


def run_fit(
    cluster: Cluster,
    model: keras.Model,
    batches: Callable[[], Iterator[Any]],
    example: Any,
    split_batch: PartsOf = split_batch,
    **options: Any,
) -> None:
    """Calls `fit`, quietly and in the order of the batches.

    The iterator that `fit` leaves in a cycle, or in the frames of an exception, has threads that
    run Python code; a process that ends meanwhile waits for them for ever, or they say at its end
    that there is no Python any more. So here it goes first.

    Args:
        cluster: Whose `fit` is called.
        model: Compiled.
        batches: Function that gives an iterator over batches.
        example: One of them.
        split_batch: Shares the rows of a batch out to cores.
        **options: `steps_per_epoch`, `epochs` and `callbacks` of `fit`.
    """
    try:
        cluster.fit(model, batches, example, split_batch, **options)
    except BaseException as error:
        _clear_frames(error)
        raise
    finally:
        release_graphs()
        gc.collect()
        backend.wait_for_feeds()


def _clear_frames(error: BaseException) -> None:
    """Lets go of the variables of all that was called from here.

    Keras leaves its own frames out of the traceback; those of our callbacks still lead to them.
    """
    here = sys._getframe(1)
    entry: TracebackType | None = error.__traceback__
    while entry is not None:
        frame: FrameType | None = entry.tb_frame
        while frame is not None and frame is not here:
            caller = frame.f_back
            # One that runs cannot be cleared.
            with contextlib.suppress(RuntimeError):
                frame.clear()
            frame = caller
        entry = entry.tb_next
