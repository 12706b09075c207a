"""Cores shared out among searches."""

import os
import sys

from keras_seq.threads import searches_at_a_time, share_cores, usable_cores

NAMES = ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")


def without_threads(monkeypatch):
    for name in NAMES:
        # Set first, so that it is as it was when the test is over.
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def test_a_thread_for_each_search_before_tensorflow_is_imported(monkeypatch):
    without_threads(monkeypatch)
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
    share_cores(3)
    assert [os.environ[name] for name in NAMES] == ["1", "3"]
    assert searches_at_a_time() == 3
    share_cores(5)
    assert searches_at_a_time() == 3


def test_nothing_changes_afterwards(monkeypatch):
    without_threads(monkeypatch)
    monkeypatch.setitem(sys.modules, "tensorflow", os)
    share_cores(3)
    assert not set(NAMES) & set(os.environ)
    assert searches_at_a_time() == usable_cores() <= os.cpu_count()
