"""Takes plugins away again after each test, or after the tests of a file."""

from collections.abc import Iterator

import pytest
from restored_plugins import restored_plugins


@pytest.fixture(autouse=True)
def _without_plugins() -> Iterator[None]:
    with restored_plugins():
        yield


@pytest.fixture(scope="module")
def module_plugins() -> Iterator[None]:
    with restored_plugins():
        yield
