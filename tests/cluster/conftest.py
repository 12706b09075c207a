"""Fixtures for the cluster tests: a folder with a corpus and a cache of compiled JAX programs."""

import pytest
from faults.training_process import QUICK_TO_COMPILE, write_corpus


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    write_corpus(folder)
    return folder


@pytest.fixture(scope="session")
def compiled_programs(tmp_path_factory):
    return tmp_path_factory.mktemp("compiled")


@pytest.fixture(scope="module", autouse=True)
def keep_compiled_programs(compiled_programs):
    """Caches compiled programs, because compilation dominates these small trainings.

    XLA partitions a program before optimizing it, so optimization can be turned off here.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XLA_FLAGS", QUICK_TO_COMPILE)
        patch.setenv("JAX_COMPILATION_CACHE_DIR", str(compiled_programs))
        patch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
        yield
