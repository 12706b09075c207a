"""Where the trainings of a test file lie, and what JAX compiled for them."""

import os

import pytest
from faults.training_process import write_corpus


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    write_corpus(folder)
    return folder


@pytest.fixture(scope="module", autouse=True)
def keep_what_is_compiled(tmp_path_factory):
    """Most of a small training's time is compiling, and many here need the same program."""
    options = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path_factory.mktemp("compiled")),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "XLA_FLAGS": f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=0",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in options.items():
            patch.setenv(name, value)
        yield
