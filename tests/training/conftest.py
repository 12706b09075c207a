"""How the trainings of these tests are compiled."""

import pytest
from compiling import graphs_as_they_are


@pytest.fixture(scope="package", autouse=True)
def graphs():
    """They have few updates: nearly all their time is to begin."""
    with graphs_as_they_are():
        yield
