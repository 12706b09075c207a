"""Adam that leaves out what would ruin the weights."""

import keras
from keras import ops

from keras_seq import backend


@keras.saving.register_keras_serializable(package="keras_seq")
class SkippingAdam(keras.optimizers.Adam):
    """Adam that skips an update whose gradients are not finite, and counts it.

    One NaN in a gradient makes all weights NaN, for good. Such an update changes
    here neither weights nor moments nor averages nor the step of the schedule.

    The norm of all gradients is looked at, so gradients so large that it
    overflows are skipped too. Arguments are those of `keras.optimizers.Adam`,
    without gradient accumulation.

    Attributes:
        skipped: Integer variable, updates skipped so far.
        skipped_in_row: Integer variable, those since the last one made.

    Example:

    >>> optimizer = SkippingAdam(0.1)
    >>> weight = keras.Variable([1.0])
    >>> optimizer.build([weight])
    >>> optimizer.apply([ops.convert_to_tensor([float("nan")])])
    >>> float(weight[0]), int(optimizer.skipped), int(optimizer.iterations)
    (1.0, 1, 0)
    """

    _passed = False

    def build(self, variables):
        if self.built:
            return
        super().build(variables)
        self.skipped = self.add_variable((), "zeros", "int32", name="skipped")
        self.skipped_in_row = self.add_variable((), "zeros", "int32", name="skipped_in_row")

    def apply(self, grads, trainable_variables=None):
        if not self.built and trainable_variables is not None:
            self.build(trainable_variables)
        if self._passed:
            self._update(grads, trainable_variables)
            return
        if backend.name() == "jax":
            variables = list(trainable_variables or self._trainable_variables)
            values = self.stateless_apply(
                [variable.value for variable in self.variables],
                grads,
                [variable.value for variable in variables],
            )
            for variable, value in zip(
                variables + self.variables, values[0] + values[1], strict=True
            ):
                variable.assign(value)
            return

        def skip():
            self.skipped.assign_add(1)
            self.skipped_in_row.assign_add(1)

        ops.cond(_all_finite(grads), lambda: self._update(grads, trainable_variables), skip)

    def stateless_apply(self, optimizer_variables, grads, trainable_variables):
        # Under JAX the branches of a condition return values instead of assigning them.
        def update():
            self._passed = True
            try:
                return parent(optimizer_variables, grads, trainable_variables)
            finally:
                self._passed = False

        def skip():
            counters = {id(self.skipped), id(self.skipped_in_row)}
            counted = [
                value + 1 if id(variable) in counters else value
                for variable, value in zip(self.variables, optimizer_variables, strict=True)
            ]
            return list(trainable_variables), counted

        parent = super().stateless_apply
        return ops.cond(_all_finite(grads), update, skip)

    def _update(self, grads, trainable_variables):
        super().apply(grads, trainable_variables)
        self.skipped_in_row.assign(0)


def _all_finite(gradients):
    total = 0.0
    for gradient in gradients:
        if gradient is not None:
            # Of a gradient that TensorFlow gives for some rows only, the rows.
            dense = getattr(gradient, "values", gradient)
            total = total + ops.sum(ops.square(ops.cast(dense, "float32")))
    return ops.isfinite(total)
