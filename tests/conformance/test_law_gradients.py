"""Gradients equal finite differences of the outputs in double precision."""

import keras
import numpy as np
from conformance.gradients import functions_of, point, scalar
from conformance.harness import fill, functional, make_arrays, policy_of, to_tensors
from conformance.table import every_row_on_all_backends

# The remainder of a central difference grows with the square of the step, its noise with the
# inverse: in double precision both are below a billionth at this step.
STEP = 1e-5
PRECISION = 1e-6
# Where a layer, or Keras itself, rounds to float32 on the way: the best of some steps. Long ones
# cross the kinks of relu, short ones drown in the noise.
ROUNDED_STEPS = (1e-3, 1e-2, 3e-4, 1e-4)
ROUNDED_PRECISION = 3e-3


@every_row_on_all_backends
def test_gradients_equal_finite_differences(row):
    with policy_of("float64"):
        layer = row.make()
        if keras.backend.backend() == "torch":
            # There, Keras infers shapes by calling the layer on longer inputs, which takes 6 to 18
            # s for a loop.
            row.call(layer, to_tensors(make_arrays(row)))
        else:
            # Build without a call on arrays, for which JAX would compile a program per operation.
            functional(row, layer)
        fill(layer)
        arrays = make_arrays(row)
        arrays |= {name: arrays[name].astype("float64") for name in row.float_inputs}
        at = point(row, layer, arrays)
        assert len(at) == len(layer.trainable_weights) + len(row.float_inputs)
        value_at, gradients_at = functions_of(scalar(row, layer, arrays, "float64"))
        gradients = gradients_at(at)
        check_along(random_direction(gradients), value_at, at, gradients)


def check_along(direction, value_at, at, gradients):
    """Asserts that the slope of the gradients in a direction is that of the function."""

    def change(step):
        moved = {name: array + step * direction[name] for name, array in at.items()}
        return value_at(moved)

    def difference(step):
        return (change(step) - change(-step)) / (2 * step)

    shares = [np.sum(gradients[name] * direction[name]) for name in at]
    expected, scale = sum(shares), max(1.0, np.linalg.norm(shares))
    exact = difference(STEP)
    # A function of numbers rounded to float32 is a staircase, which has another slope from nearby.
    if abs(difference(STEP * 1e-3) - exact) < 1e-3 * scale:
        assert abs(exact - expected) <= PRECISION * scale, (exact, expected)
        return
    near = (abs(difference(step) - expected) for step in ROUNDED_STEPS)
    assert any(distance <= ROUNDED_PRECISION * scale for distance in near), (exact, expected)


def random_direction(gradients):
    """Returns a direction in all arrays, scaled so that each contributes similarly to the slope.

    One is enough: what is wrong in any number of any array shows in a slope drawn by chance.
    """
    generator = np.random.default_rng(5)
    sizes = {name: np.linalg.norm(gradient) for name, gradient in gradients.items()}
    # Move arrays without a gradient too, because a missing gradient may be the fault.
    least = 1e-2 * max(sizes.values()) or 1.0
    return {
        name: generator.normal(size=gradients[name].shape) / max(sizes[name], least)
        for name in sorted(gradients)
    }
