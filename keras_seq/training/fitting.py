"""`fit`, left in good order whatever ends it."""

from __future__ import annotations

import gc
import traceback
from typing import Any

import keras


def run_fit(model: keras.Model, batches: Any, **options: Any) -> None:
    """Calls `fit`, quietly and in the order of the batches.

    The iterator that `fit` leaves in a cycle, or in the frames of an exception, has threads that
    run Python code; a process that ends meanwhile waits for them for ever. So here it goes first.

    Args:
        model: Compiled.
        batches: From `backend.batch_feed`.
        **options: Others of `fit`.
    """
    try:
        model.fit(batches, verbose=0, shuffle=False, **options)
    except BaseException as error:
        traceback.clear_frames(error.__traceback__)
        raise
    finally:
        del batches
        gc.collect()
