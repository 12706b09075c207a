"""A mask attached to a tensor has the same effect as the mask as an argument."""

import keras
import numpy as np
from conformance.harness import (
    LENGTHS,
    SIZES,
    assert_same,
    built,
    make_arrays,
    run,
    step_mask,
    symbolic_inputs,
)
from conformance.table import rows_where


def whose(mask):
    """Returns the argument that a mask belongs to. With a single tensor, the mask is called
    `mask`."""
    return "inputs" if mask == "mask" else mask.removesuffix("_mask")


@rows_where(lambda row: row.masks and not row.masked_by_lengths)
def test_implicit_masks_equal_mask_arguments(row):
    layer = built(row)
    arrays = make_arrays(row)
    for name, axis in row.masks.items():
        # `Masking` masks the steps that are all 0.
        masked = whose(name)
        arrays[masked] = arrays[masked] * step_mask(axis, SIZES, LENGTHS)[..., None]
    expected = run(row, layer, arrays)

    inputs = {
        name: tensor for name, tensor in symbolic_inputs(row).items() if name not in row.masks
    }
    carrying = dict(inputs)
    for name in row.masks:
        masked = whose(name)
        carrying[masked] = keras.layers.Masking()(inputs[masked])
    model = keras.Model(inputs, keras.tree.flatten(row.call(layer, carrying)))
    outputs = keras.tree.flatten(model({name: np.asarray(arrays[name]) for name in inputs}))
    assert_same(row, [keras.ops.convert_to_numpy(output) for output in outputs], expected)
