"""Where the trainings of a test file lie."""

import pytest
from faults.training_process import write_corpus


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shared")
    write_corpus(folder)
    return folder
