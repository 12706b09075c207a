"""Names, shapes and dtypes of the weights are those of the golden text."""

import keras
from conformance.golden import FOLDER, parameter_tree
from conformance.harness import built
from conformance.table import ROWS, every_row, rows_where

from keras_seq import models


@every_row
def test_parameter_tree_equals_the_golden_text(row):
    golden = (FOLDER / f"{row.name}.txt").read_text(encoding="utf-8")
    assert parameter_tree(built(row)) == golden, (
        "If the change is meant: PYTHONPATH=tests python -m conformance.golden"
    )


def test_every_golden_text_has_a_row():
    assert {path.stem for path in FOLDER.glob("*.txt")} == {row.name for row in ROWS}


@rows_where(lambda row: row.public_name in models.__all__)
def test_weight_names_do_not_depend_on_earlier_models(row):
    # Checkpoints have these names, and may be read by a process that has built other models.
    first = [weight.path for weight in row.make().weights]
    keras.layers.StackedRNNCells([keras.layers.GRUCell(2), keras.layers.LSTMCell(2)])
    keras.layers.Bidirectional(keras.layers.LSTM(2))
    assert [weight.path for weight in row.make().weights] == first
    assert len(set(first)) == len(first)
