"""Code that differs by Keras backend. All other code uses `keras.ops`."""

from keras_seq.backend.compile import (
    compiled,
    on_host,
    padded,
    wants_static_shapes,
    without_gradients,
)
from keras_seq.backend.device import (
    computes_on_one_processor,
    device,
    initialize,
    matmul_seconds,
    name,
)
from keras_seq.backend.distribution import strategy_of_all_replicas, strategy_of_this_replica
from keras_seq.backend.feed import batch_feed, wait_for_feeds
from keras_seq.backend.inputs import call_model
from keras_seq.backend.ops import (
    adam_step,
    argmax,
    dense,
    gather,
    multiply_no_nan,
    random_uint16,
    shape,
    sum_of_squares,
    sum_words,
    top_k,
    word,
)
from keras_seq.backend.variables import sync_variables, to_numpy

__all__ = [
    "adam_step",
    "argmax",
    "batch_feed",
    "call_model",
    "compiled",
    "computes_on_one_processor",
    "dense",
    "device",
    "gather",
    "initialize",
    "matmul_seconds",
    "multiply_no_nan",
    "name",
    "on_host",
    "padded",
    "random_uint16",
    "shape",
    "strategy_of_all_replicas",
    "strategy_of_this_replica",
    "sum_of_squares",
    "sum_words",
    "sync_variables",
    "to_numpy",
    "top_k",
    "wait_for_feeds",
    "wants_static_shapes",
    "without_gradients",
    "word",
]
