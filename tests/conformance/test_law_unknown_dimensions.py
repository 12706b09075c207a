"""Batch and time may be unknown; feature axes never are."""

import keras
import numpy as np
from conformance.harness import (
    FREE,
    SIZES,
    built,
    functional,
    letters,
    make_arrays,
    run,
    run_eagerly,
)
from conformance.table import every_row


@every_row
def test_only_batch_and_time_are_unknown(row):
    model = functional(row, built(row))
    for output, spec in zip(model.outputs, row.outputs, strict=True):
        assert len(output.shape) == len(letters(spec))
        for size, letter in zip(output.shape, letters(spec), strict=True):
            assert size == SIZES[letter] or (size is None and letter in FREE)


@every_row
def test_one_compiled_graph_serves_all_sizes(row):
    layer = built(row)
    model = functional(row, layer)
    for longer, own in (({}, run_eagerly), ({"B": -1, "T": 2, "S": 3}, run)):
        arrays = make_arrays(row, longer=longer)
        outputs = keras.tree.flatten(model.predict_on_batch(arrays))
        for got, expected in zip(outputs, own(row, layer, arrays), strict=True):
            np.testing.assert_allclose(got, expected, rtol=0, atol=row.tolerance)
