"""Cores, and how TensorFlow and JAX share them out; imports nothing heavy."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

_Given = TypeVar("_Given")
_Found = TypeVar("_Found")

_WITHIN, _BETWEEN = "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"
# What XLA, which computes for JAX, takes for the number of cores.
_XLA = "NPROC"
# Parts of a batch that are still worth their own pass over the weights; two were measured.
_MOST_PARTS = 8


def usable_cores() -> int:
    """Cores that this process may use, which can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def configure_threads(searches: int) -> None:
    """Asks TensorFlow for one thread for each of so many searches at a time.

    A step of a search is hundreds of small operations: two threads that share
    one wait for each other, two searches with a thread each do not. Nor do two parts of
    a batch in training. JAX, which takes a search after the other, is asked for one thread
    where there is one search. Does nothing once TensorFlow is imported; what is set already stays.
    """
    if "tensorflow" in sys.modules:
        return
    if searches == 1:
        os.environ.setdefault(_XLA, "1")
    os.environ.setdefault(_WITHIN, "1")
    os.environ.setdefault(_BETWEEN, str(searches))


def num_search_threads() -> int:
    """How many searches at a time TensorFlow has threads for: all cores, unless told otherwise."""
    told = os.environ.get(_BETWEEN, "")
    return int(told) if told.isdecimal() and int(told) else usable_cores()


def configure_training_threads() -> None:
    """Asks TensorFlow for a thread for each part of a batch, where cores are so few."""
    if usable_cores() <= _MOST_PARTS:
        configure_threads(usable_cores())


def num_training_threads() -> int:
    """How many parts of a batch TensorFlow has a thread for; 1 where threads share operations."""
    return num_search_threads() if os.environ.get(_WITHIN) == "1" else 1


def parallel_map(
    search: Callable[[_Given], _Found], batches: Sequence[_Given], threads: int
) -> Iterator[_Found]:
    """`map(search, batches)`, by so many threads; the first batch, which prepares, comes alone."""
    if not batches:
        return
    # What is traced is traced here: Keras keeps its settings for each thread apart.
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
