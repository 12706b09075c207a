"""Threads of TensorFlow and JAX. This module has no heavy imports."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from keras_seq.operating_system import usable_cores

_Batch = TypeVar("_Batch")
_Result = TypeVar("_Result")

_INTRA_OP, _INTER_OP = "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"
# XLA, which JAX uses, takes this environment variable as the number of cores.
_XLA = "NPROC"
# TensorFlow splits operations across threads on more cores. This was measured on two cores only.
_MAX_SHARDS = 8


def configure_threads(searches: int) -> None:
    """Gives TensorFlow one thread for each of several concurrent searches.

    A step of a search has hundreds of small operations. Two threads that share an operation wait
    for each other; two searches with one thread each do not. The same holds for the shards of a
    batch in training. JAX, which runs one search after another, gets a single thread for a single
    search. Environment variables that are already set are kept. Once TensorFlow is imported, this
    function does nothing.
    """
    if "tensorflow" in sys.modules:
        return
    if searches == 1:
        os.environ.setdefault(_XLA, "1")
    os.environ.setdefault(_INTRA_OP, "1")
    os.environ.setdefault(_INTER_OP, str(searches))


def num_search_threads() -> int:
    """Number of concurrent searches that TensorFlow has threads for; by default all cores."""
    setting = os.environ.get(_INTER_OP, "")
    return int(setting) if setting.isdecimal() and int(setting) else usable_cores()


def configure_training_threads() -> None:
    """Gives TensorFlow one thread for each shard of a batch, on machines with few cores."""
    if usable_cores() <= _MAX_SHARDS:
        configure_threads(usable_cores())


def share_training_cores() -> None:
    """Like `configure_training_threads`, and also after TensorFlow is imported.

    Once TensorFlow has computed something, this function does nothing.
    """
    configure_training_threads()
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is None or _INTRA_OP in os.environ or usable_cores() > _MAX_SHARDS:
        return
    threading = tensorflow.config.threading
    try:
        threading.set_intra_op_parallelism_threads(1)
        threading.set_inter_op_parallelism_threads(usable_cores())
    except RuntimeError:
        return
    os.environ[_INTRA_OP], os.environ[_INTER_OP] = "1", str(usable_cores())


def num_training_threads() -> int:
    """Number of shards that TensorFlow has threads for; 1 if it splits single operations."""
    return num_search_threads() if os.environ.get(_INTRA_OP) == "1" else 1


def parallel_map(
    search: Callable[[_Batch], _Result], batches: Sequence[_Batch], threads: int
) -> Iterator[_Result]:
    """Like `map(search, batches)`, on several threads.

    The calling thread runs the first batch alone, because it traces the function and Keras keeps
    its settings per thread.
    """
    if not batches:
        return
    yield search(batches[0])
    threads = min(threads, len(batches) - 1)
    if threads < 2:
        yield from map(search, batches[1:])
        return
    pool = ThreadPoolExecutor(threads)
    try:
        yield from pool.map(search, batches[1:])
    finally:
        pool.shutdown(cancel_futures=True)
