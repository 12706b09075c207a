"""Where the trainings of a test file are, and a cache of what JAX compiled for them."""

import pytest
from faults.training_process import write_corpus


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    write_corpus(folder)
    return folder


@pytest.fixture(scope="module", autouse=True)
def keep_compiled_programs(tmp_path_factory):
    """Compilation dominates these small trainings, and many of them need the same program."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAX_COMPILATION_CACHE_DIR", str(tmp_path_factory.mktemp("compiled")))
        patch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
        yield
