"""Where the trainings of a test file lie, and what JAX compiled for them."""

import pytest
from compiling import quickly_and_once
from faults.training_process import write_corpus


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    write_corpus(folder)
    return folder


@pytest.fixture(scope="module", autouse=True)
def keep_what_is_compiled(tmp_path_factory):
    """Most of a small training's time is compiling, and many here need the same program."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in quickly_and_once(tmp_path_factory.mktemp("compiled")).items():
            patch.setenv(name, value)
        yield
