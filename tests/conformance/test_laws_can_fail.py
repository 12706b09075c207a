"""The laws can fail: each is run on a layer that breaks it."""

import keras
import numpy as np
import pytest
from conformance import (
    test_law_batch_mates,
    test_law_config,
    test_law_dtypes,
    test_law_gradients,
    test_law_padding,
    test_law_steps,
    test_law_unknown_dimensions,
)
from conformance.harness import Row
from keras import ops

from keras_seq.layers.internal.custom_gradient import custom_gradient

pytestmark = [pytest.mark.jax, pytest.mark.torch]


class Broken(keras.layers.Layer):
    """A layer that calls a function of the inputs and their mask."""

    def __init__(self, function=None, **kwargs):
        super().__init__(**kwargs)
        self.function = function
        self.supports_masking = True

    def call(self, inputs, inputs_mask=None):
        return self.function(inputs, inputs_mask)

    def get_config(self):
        return {"name": self.name}


def row(function, **changes):
    arguments = {
        "name": "Broken",
        "make": lambda: Broken(function),
        "inputs": {"inputs": "BTD"},
        "masks": {"inputs_mask": "T"},
        "outputs": ["BTD"],
    }
    return Row(**{**arguments, **changes})


def mean_over_padding(x, mask):
    return x + ops.mean(x, axis=1, keepdims=True)


def mean_over_batch(x, mask):
    return x + ops.mean(x, axis=0, keepdims=True)


def mask_by_product(x, mask):
    mask = ops.cast(mask, x.dtype)[..., None]
    return ops.sum(x * mask, axis=1, keepdims=True) * mask


def divides_by_length(x, mask):
    return x / ops.sum(ops.cast(mask, x.dtype), axis=1)[:, None, None]


def wrong_gradient(x, mask):
    # `where` removes the NaN of a padded step, but not the NaN times 0 in its gradient.
    return ops.where(mask[..., None], ops.sqrt(ops.abs(x)), 0.0)


@pytest.mark.parametrize(
    ("law", "function"),
    [
        (test_law_padding.test_more_padding_does_not_change_the_outputs, mean_over_padding),
        (test_law_padding.test_nan_in_padding_does_not_change_the_outputs, mask_by_product),
        (test_law_padding.test_nan_in_padding_does_not_change_the_gradients, wrong_gradient),
        (test_law_padding.test_a_wholly_masked_row_is_finite, divides_by_length),
        (test_law_batch_mates.test_other_batch_mates_change_nothing, mean_over_batch),
        (test_law_unknown_dimensions.test_only_batch_and_time_are_unknown, lambda x, _: x[..., :1]),
    ],
)
def test_laws_fail_on_a_broken_layer(law, function):
    with pytest.raises(AssertionError):
        law(row(function))


def test_config_law_fails_on_a_missing_argument():
    with pytest.raises(AssertionError):
        test_law_config.test_config_holds_every_constructor_argument(row(lambda x, _: x))


def test_dtype_law_fails_on_a_wrong_dtype():
    in_float32 = row(lambda x, _: ops.cast(x, "float32"))
    with pytest.raises(AssertionError):
        test_law_dtypes.test_dtype_policy_sets_dtypes_and_keeps_outputs_close(
            "mixed_bfloat16", in_float32
        )


def test_step_law_fails_on_a_wrong_step():
    late = row(lambda x, _: ops.cumsum(x, axis=1), step=lambda layer, arrays: arrays["inputs"])
    with pytest.raises(AssertionError):
        test_law_steps.test_step_by_step_equals_all_at_once(late)


def not_the_derivative(factor):
    """Squares the inputs and returns `factor` times their gradient."""

    @custom_gradient
    def square(x):
        return ops.square(x), lambda upstream: upstream * x * (2 * factor)

    return row(lambda x, _: square(x))


def without_gradient(x, mask):
    return x + ops.stop_gradient(x)


def rounded(x, mask):
    return ops.cast(ops.cast(x, "float32") ** 2, x.dtype)


@pytest.mark.parametrize(
    "wrong",
    [
        not_the_derivative(-1.0),
        not_the_derivative(1.00001),
        row(without_gradient),
        row(lambda x, mask: ops.stop_gradient(x)),
        row(lambda x, mask: ops.stop_gradient(rounded(x, mask))),
        row(lambda x, mask: rounded(x, mask) + ops.stop_gradient(x) * 0.05),
    ],
)
def test_gradient_law_fails_on_a_wrong_gradient(wrong):
    with pytest.raises(AssertionError):
        test_law_gradients.test_gradients_equal_finite_differences(wrong)


@pytest.mark.parametrize("right", [not_the_derivative(1.0), row(rounded)])
def test_gradient_law_passes_on_a_right_gradient(right):
    test_law_gradients.test_gradients_equal_finite_differences(right)


def test_step_and_padding_laws_pass_on_a_right_layer():
    same = row(lambda x, _: x * 2, step=lambda layer, arrays: arrays["inputs"] * np.float32(2))
    test_law_steps.test_step_by_step_equals_all_at_once(same)
    test_law_padding.test_more_padding_does_not_change_the_outputs(same)
    test_law_padding.test_nan_in_padding_does_not_change_the_gradients(same)
