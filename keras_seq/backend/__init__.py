"""What differs by Keras backend; all else uses `keras.ops`.

Here are functions for what Keras 3 has no public word for: compiling a function, feeding batches of
changing shapes, and reading the variables of a model in the middle of `fit`.
"""

from keras_seq.backend.compile import compiled, on_host, padded, wants_static_shapes
from keras_seq.backend.device import (
    computes_on_one_processor,
    device,
    initialize,
    matmul_seconds,
    name,
)
from keras_seq.backend.distribution import strategy_of_all_replicas, strategy_of_this_replica
from keras_seq.backend.feed import batch_feed, wait_for_feeds
from keras_seq.backend.ops import apply_adam, dense, gather, multiply_no_nan, sum_of_squares
from keras_seq.backend.variables import sync_variables, to_numpy

__all__ = [
    "apply_adam",
    "batch_feed",
    "compiled",
    "computes_on_one_processor",
    "dense",
    "device",
    "gather",
    "name",
    "on_host",
    "padded",
    "multiply_no_nan",
    "matmul_seconds",
    "strategy_of_all_replicas",
    "strategy_of_this_replica",
    "sum_of_squares",
    "sync_variables",
    "to_numpy",
    "wait_for_feeds",
    "initialize",
    "wants_static_shapes",
]
