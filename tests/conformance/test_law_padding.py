"""Outputs depend neither on the content of padding nor on its length."""

import numpy as np
from conformance.gradients import gradients, gradients_of
from conformance.harness import (
    LENGTHS,
    ROOM,
    SIZES,
    Row,
    assert_same,
    built,
    letters,
    make_arrays,
    outputs_of,
    real_part,
    run,
    step_mask,
)
from conformance.table import every_row_on_torch, rows_where

masked_rows = rows_where(lambda row: row.masks, torch=True)


def spoil(row: Row, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Replaces the padding of float arguments by NaN."""
    spoiled = dict(arrays)
    for name in row.float_inputs:
        axis = letters(row.inputs[name])[1]
        if axis in row.masks.values():
            real = step_mask(axis, SIZES, LENGTHS)
            real = real.reshape(*real.shape, *[1] * (arrays[name].ndim - 2))
            spoiled[name] = np.where(real, arrays[name], np.nan).astype("float32")
    return spoiled


@masked_rows
def test_nan_in_padding_does_not_change_the_outputs(row):
    arrays = make_arrays(row)
    spoiled = spoil(row, arrays)
    assert any(np.isnan(array).any() for array in spoiled.values())
    assert_same(row, run(row, built(row), spoiled), outputs_of(row))


@rows_where(lambda row: row.masks, jax=True, torch=True)
def test_nan_in_padding_does_not_change_the_gradients(row):
    expected = gradients_of(row)
    for path, gradient in gradients(row, built(row), spoil(row, make_arrays(row))).items():
        assert np.isfinite(gradient).all(), path
        np.testing.assert_allclose(
            gradient, expected[path], rtol=0, atol=10 * row.tolerance, err_msg=path
        )


@every_row_on_torch
def test_more_padding_does_not_change_the_outputs(row):
    longer = run(row, built(row), make_arrays(row, longer={"S": ROOM, "T": ROOM}))
    assert_same(row, longer, outputs_of(row))


@rows_where(lambda row: row.padded_axes)
def test_more_padding_does_not_change_the_gradients(row):
    expected = gradients_of(row)
    padding = dict.fromkeys(row.padded_axes, ROOM)
    longer = gradients(row, built(row), make_arrays(row, longer=padding))
    for path, gradient in longer.items():
        np.testing.assert_allclose(
            real_gradient(row, path, gradient),
            real_gradient(row, path, expected[path]),
            rtol=0,
            atol=10 * row.tolerance,
            err_msg=path,
        )


def real_gradient(row: Row, name: str, gradient: np.ndarray) -> np.ndarray:
    """Cuts the gradient of a lengthened argument to its first length, and asserts 0 beyond it."""
    for position, axis in enumerate(letters(row.inputs[name]) if name in row.inputs else ""):
        if axis in row.padded_axes:
            gradient, beyond = np.split(gradient, [SIZES[axis]], axis=position)
            assert not beyond.any(), name
    return gradient


@every_row_on_torch
def test_a_wholly_masked_row_is_finite(row):
    nothing = {axis: (0, *rest) for axis, (_, *rest) in LENGTHS.items()}
    arrays = make_arrays(row, lengths=nothing)
    for output in run(row, built(row), arrays):
        assert np.isfinite(output).all()
    for path, gradient in gradients(row, built(row), arrays).items():
        assert np.isfinite(gradient).all(), path


@every_row_on_torch
def test_a_wholly_masked_row_leaves_the_others_alone(row):
    nothing = {axis: (0, *rest) for axis, (_, *rest) in LENGTHS.items()}
    got = run(row, built(row), make_arrays(row, lengths=nothing))
    expected = outputs_of(row)
    for index, (left, right) in enumerate(zip(got, expected, strict=True)):
        np.testing.assert_allclose(
            real_part(row, index, left)[1:],
            real_part(row, index, right)[1:],
            rtol=0,
            atol=row.tolerance,
        )
