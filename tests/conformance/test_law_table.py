"""Every public name has a row, and every exemption is needed."""

import inspect

import keras
import pytest
from conformance.table import NOT_LAYERS, ROWS

from keras_seq import layers, models

PUBLIC = [*layers.__all__, *models.__all__]


@pytest.mark.parametrize("name", PUBLIC)
def test_public_name_has_a_row(name):
    covered = {row.public_name for row in ROWS}
    assert (name in covered) != (name in NOT_LAYERS), (
        f"`{name}` needs a row in tests/conformance/table.py"
    )


def test_exempt_names_are_public_and_not_layers():
    for name in NOT_LAYERS:
        assert name in PUBLIC
        exempt = getattr(layers, name, None) or getattr(models, name)
        assert inspect.isfunction(exempt) or not issubclass(exempt, keras.layers.Layer)


def test_row_names_are_public_and_unique():
    names = [row.name for row in ROWS]
    assert sorted(names) == sorted(set(names))
    assert {row.public_name for row in ROWS} <= set(PUBLIC)
