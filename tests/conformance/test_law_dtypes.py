"""Outputs have the dtype of the policy and, within its precision, the same numbers."""

import numpy as np
import pytest
from conformance.harness import build, make_arrays, outputs_of, policy_of, real_part, run
from conformance.table import FIRST, ROWS, marked

from keras_seq import models

# Tolerance relative to the largest output: a few roundings of 2^-11 and 2^-8.
PRECISION = {"mixed_float16": 2e-2, "mixed_bfloat16": 1e-1, "float64": 1e-5}


# The layers of a model have rows too, so one policy suffices for a model, every week, and for the
# further rows of a layer.
CASES = [
    marked(
        row,
        name,
        row,
        now=row.public_name not in models.__all__,
        jax=name == "mixed_bfloat16" and "weekly",
        torch=name != "float64",
    )
    for row in ROWS
    for name in PRECISION
    if name == "mixed_bfloat16"
    or row.name in FIRST.values()
    and row.public_name not in models.__all__
]


@pytest.mark.parametrize(("name", "row"), CASES)
def test_dtype_policy_sets_dtypes_and_keeps_outputs_close(name, row):
    arrays = make_arrays(row)
    # What is in float32 comes first.
    expected = outputs_of(row)
    with policy_of(name) as policy:
        layer = build(row)
        outputs = run(row, layer, arrays)
    for weight in layer.trainable_weights:
        assert weight.dtype == policy.variable_dtype, weight.path
    for index, output in enumerate(outputs):
        if output.dtype.kind == "i":
            assert output.dtype == "int32"
        elif index in row.float32_outputs:
            assert str(output.dtype) in {"float32", policy.variable_dtype}
        else:
            assert str(output.dtype) == policy.compute_dtype
        reference = real_part(row, index, expected[index])
        error = np.abs(real_part(row, index, output.astype("float64")) - reference).max()
        assert error <= PRECISION[name] * max(1, np.abs(reference).max())
