"""The output of a row does not depend on the other rows of the batch."""

import numpy as np
from conformance.harness import built, make_arrays, outputs_of, run
from conformance.table import every_row_on_torch


@every_row_on_torch
def test_row_alone_gives_the_same_outputs_as_in_a_batch(row):
    """The second row has padding; the next law compares the first row, which has none."""
    alone = {name: array[1:2] for name, array in make_arrays(row).items()}
    for got, together in zip(run(row, built(row), alone), outputs_of(row), strict=True):
        np.testing.assert_allclose(got, together[1:2], rtol=0, atol=row.tolerance)


@every_row_on_torch
def test_other_batch_mates_change_nothing(row):
    arrays = make_arrays(row)
    others = make_arrays(row, seed=1)
    mixed = {name: np.concatenate([array[:1], others[name][1:]]) for name, array in arrays.items()}
    changed = False
    for got, before in zip(run(row, built(row), mixed), outputs_of(row), strict=True):
        np.testing.assert_allclose(got[:1], before[:1], rtol=0, atol=row.tolerance)
        changed |= not np.array_equal(got[1:], before[1:])
    assert changed
