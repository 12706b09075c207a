"""Single steps give the same outputs as a full pass."""

import dataclasses

import numpy as np
from conformance.harness import built, make_arrays, outputs_of, real_part, run
from conformance.table import rows_where


@rows_where(lambda row: row.step, jax=True, torch=True)
def test_step_by_step_equals_all_at_once(row):
    at_once = outputs_of(row)[0]
    (stepwise,) = run(dataclasses.replace(row, call=row.step), built(row), make_arrays(row))
    np.testing.assert_allclose(
        real_part(row, 0, stepwise), real_part(row, 0, at_once), rtol=0, atol=row.tolerance
    )
