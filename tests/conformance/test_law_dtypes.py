"""Each dtype policy gives its own dtype and, within its precision, the same numbers."""

import numpy as np
import pytest
from conformance.harness import build, make_arrays, outputs_of, policy_of, real_part, run
from conformance.table import every_row

# Relative to the largest output: a few roundings of 2^-11 and 2^-8.
PRECISION = {"float32": 1e-6, "mixed_float16": 2e-2, "mixed_bfloat16": 1e-1, "float64": 1e-5}


@pytest.fixture(params=PRECISION)
def policy(request, row):
    # What is in float32 comes first.
    outputs_of(row)
    with policy_of(request.param) as policy:
        yield policy


@every_row
def test_dtypes(row, policy):
    arrays = make_arrays(row)
    expected = outputs_of(row)
    layer = build(row)
    for weight in layer.trainable_weights:
        assert weight.dtype == policy.variable_dtype, weight.path
    for index, output in enumerate(run(row, layer, arrays)):
        if output.dtype.kind == "i":
            assert output.dtype == "int32"
        elif index in row.float32_outputs:
            assert str(output.dtype) in {"float32", policy.variable_dtype}
        else:
            assert str(output.dtype) == policy.compute_dtype
        reference = real_part(row, index, expected[index])
        error = np.abs(real_part(row, index, output.astype("float64")) - reference).max()
        assert error <= PRECISION[policy.name] * max(1, np.abs(reference).max())
