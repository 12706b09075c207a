"""Trainings without attention images, which take a tenth of a small training."""

from collections.abc import Iterator

import pytest
from training.toy import without_tensorboard


@pytest.fixture(scope="module", autouse=True)
def no_pictures() -> Iterator[None]:
    """Tests of events and images have a fixture of this name that does nothing."""
    with without_tensorboard():
        yield
