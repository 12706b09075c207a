"""Step by step gives what all at once gives."""

import numpy as np
from conformance.harness import built, make_arrays, outputs_of, real_part, to_tensors
from conformance.table import every_row_with_steps
from keras import ops


@every_row_with_steps
def test_step_by_step_equals_all_at_once(row):
    arrays = make_arrays(row)
    at_once = outputs_of(row)[0]
    stepwise = ops.convert_to_numpy(row.step(built(row), to_tensors(arrays)))
    np.testing.assert_allclose(
        real_part(row, 0, stepwise), real_part(row, 0, at_once), rtol=0, atol=row.tolerance
    )
