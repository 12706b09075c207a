"""Adam that skips updates with non-finite gradients and can add up gradients of several batches."""

import contextlib
import types
from typing import Any

import keras
from keras import ops

from keras_seq import backend
from keras_seq.callbacks.counting_callback import check_positive_integers
from keras_seq.training.replica_update import sum_of_squares, update_replicas

# Without a bound, updates whose gradients are all zero would double the scale up to infinity.
_MAX_LOSS_SCALE = 2.0**24


@keras.saving.register_keras_serializable(package="keras_seq")
class SkippingAdam(keras.optimizers.Adam):
    """Adam that skips and counts updates whose gradients are not finite.

    A single NaN in a gradient would make all weights NaN for good. A skipped update changes
    neither weights nor moments, moving averages or the step of the learning rate schedule. The
    test is on the global norm, so gradients whose norm overflows are skipped as well.

    With `micro_batches` of N, each update uses the mean gradient of N batches. Everything that
    the optimizer counts, including the schedule and the moving average, counts updates. (With
    `gradient_accumulation_steps` of Keras, the schedule and the average count batches.) If the
    gradient of any of the N batches is not finite, the whole update is skipped.

    The momentum of the moving average (`use_ema`) rises: after t updates it is at most
    t / (t + 9), as in `tf.train.ExponentialMovingAverage` with `num_updates`. In a short
    training, the average thus covers about the last ninth instead of mostly the initial weights.

    With `initial_loss_scale`, the loss is multiplied by a scale before differentiation and the
    gradients are divided by it afterwards, so that small gradients do not vanish in float16. If
    the scale makes gradients infinite, the update is skipped and the scale is halved; such an
    update counts as skipped only if the scale is already 1. The scale is doubled after
    `loss_scale_growth_steps` updates without overflow.

    Args:
        *arguments: Positional arguments of `keras.optimizers.Adam`.
        micro_batches: Positive integer N, batches per update. Defaults to 1.
        initial_loss_scale: Float from 1 to 2 ** 24, or None for no loss scaling. Defaults to None.
        loss_scale_growth_steps: Positive integer, updates without overflow after which the loss
            scale is doubled. Defaults to 2000.
        **options: Keyword arguments of `keras.optimizers.Adam`, except
            `gradient_accumulation_steps`.

    Attributes:
        skipped: Integer variable, number of updates skipped so far.
        skipped_in_row: Integer variable, number of updates skipped since the last one made.
        loss_scale: Float variable, the current loss scale.
        scratch: Variables without meaning between two updates.

    Raises:
        ValueError: If a number is not positive, if the loss scale is out of bounds, or if
            `gradient_accumulation_steps` is set; in `fit`, if the model has replicas on several
            devices (`tf.distribute`).

    Example:

    >>> optimizer = SkippingAdam(0.1)
    >>> weight = keras.Variable([1.0])
    >>> optimizer.build([weight])
    >>> optimizer.apply([ops.convert_to_tensor([float("nan")])])
    >>> float(weight[0]), int(optimizer.skipped), int(optimizer.iterations)
    (1.0, 1, 0)
    """

    use_ema: bool  # Set by Keras.
    # Created by `build`.
    skipped: Any = None
    skipped_in_row: Any = None
    # True while `stateless_apply` of Keras calls `apply`.
    _gradients_are_finite = False

    def __init__(
        self,
        *arguments,
        micro_batches=1,
        initial_loss_scale=None,
        loss_scale_growth_steps=2000,
        **options,
    ):
        check_positive_integers(
            micro_batches=micro_batches, loss_scale_growth_steps=loss_scale_growth_steps
        )
        if initial_loss_scale is not None and not 1 <= initial_loss_scale <= _MAX_LOSS_SCALE:
            raise ValueError(
                "`initial_loss_scale` must be None or from 1 to 2 ** 24, "
                f"received {initial_loss_scale!r}."
            )
        if options.get("gradient_accumulation_steps") is not None:
            raise ValueError(
                "SkippingAdam has no `gradient_accumulation_steps`, received "
                f"{options['gradient_accumulation_steps']!r}: use `micro_batches`."
            )
        super().__init__(*arguments, **options)
        self.micro_batches = micro_batches
        self.initial_loss_scale = initial_loss_scale
        self.loss_scale_growth_steps = loss_scale_growth_steps

    def build(self, variables):
        if self.built:
            return
        # Checkpoints store the averages first, then the moments, then the variables of this class.
        averages = self.add_optimizer_variables(variables, "average") if self.use_ema else []
        with self._without_ema_of_keras():
            super().build(variables)
        # Keras would add the weights to `variables` if they were an attribute.
        self._of_weights = types.SimpleNamespace(
            weights=list(variables),
            index={id(variable): i for i, variable in enumerate(variables)},
            averages=averages,
            moments={},
            decays=None,
        )
        if backend.computes_on_one_processor() and not self.amsgrad:
            # `Adam.build` adds a momentum and a velocity for each weight.
            moments = [moment.value for moment in self.variables[-2 * len(variables) :]]
            pairs = zip(moments[::2], moments[1::2], strict=True)
            keys = (id(variable.value) for variable in variables)
            self._of_weights.moments.update(zip(keys, pairs, strict=True))
        self.skipped = self.add_variable((), "zeros", "int32", name="skipped")
        self.skipped_in_row = self.add_variable((), "zeros", "int32", name="skipped_in_row")
        if self.initial_loss_scale is not None:
            initial = keras.initializers.Constant(self.initial_loss_scale)
            self.loss_scale = self.add_variable((), initial, "float32", name="loss_scale")
            name = "loss_scale_steps"
            self.steps_since_change = self.add_variable((), "zeros", "int32", name=name)
        self.scratch = []
        if self.micro_batches > 1:
            self.micro_batch = self.add_variable((), "zeros", "int32", name="micro_batch")
            self._sums = self.add_optimizer_variables(variables, "gradient_sum")
            self.scratch = [self.micro_batch, *self._sums]

    def scale_loss(self, loss):
        if self.initial_loss_scale is None:
            return super().scale_loss(loss)
        return loss * (self.loss_scale if self.built else self.initial_loss_scale)

    def finalize_variable_values(self, var_list):
        if self.use_ema:
            for variable, average in zip(var_list, self._of_weights.averages, strict=True):
                variable.assign(average)

    def begin_last_micro_batch(self):
        """Makes the next batch complete an update."""
        if self.micro_batches > 1:
            self.micro_batch.assign(self.micro_batches - 1)

    def apply(self, grads, trainable_variables=None):
        if not self.built:
            if trainable_variables is None:
                # Keras raises an error, because the variables are missing.
                super().apply(grads)
            self.build(trainable_variables)
        variables = list(trainable_variables or self._of_weights.weights)
        if self._gradients_are_finite:
            self._update(grads, variables)
            return
        strategy = backend.strategy_of_this_replica()
        if strategy is not None:
            raise ValueError(
                f"SkippingAdam cannot update from within a replica of {type(strategy).__name__}, "
                "because it could not skip the update for all replicas: compile with "
                "`keras.optimizers.Adam`, or let `keras_seq.train` share the model among devices."
            )
        if backend.name() == "jax":
            own = [variable.value for variable in self.variables]
            weights = [variable.value for variable in variables]
            new_weights, new_own = self.stateless_apply(own, grads, weights)
            values = new_weights + new_own
            for variable, value in zip(variables + self.variables, values, strict=True):
                variable.assign(value)
            return
        # The sparse gradient of an embedding can contain a row several times. Keras would square
        # each entry separately, and the norm and the second moments would be wrong.
        grads = [gradient if gradient is None else backend.dense(gradient) for gradient in grads]
        if self.micro_batches == 1:
            self._update_if_finite(grads, variables)
        else:
            self._accumulate(grads, variables)

    def stateless_apply(self, optimizer_variables, grads, trainable_variables):
        # In JAX, the branches of a condition return values instead of assigning variables.
        if self.micro_batches == 1:
            return self._stateless_update(optimizer_variables, grads, trainable_variables)
        index = {id(variable): i for i, variable in enumerate(self.variables)}
        values = list(optimizer_variables)
        number = values[index[id(self.micro_batch)]]
        is_last = ops.equal(number, self.micro_batches - 1)
        values[index[id(self.micro_batch)]] = ops.where(is_last, 0, number + 1)
        sums = []
        for variable, gradient in zip(self._sums, grads, strict=True):
            i = index[id(variable)]
            values[i] = ops.where(ops.equal(number, 0), gradient, values[i] + gradient)
            sums.append(values[i])
        return ops.cond(
            is_last,
            lambda: self._stateless_update(values, self._means(sums), trainable_variables),
            lambda: (list(trainable_variables), values),
        )

    def _stateless_update(self, optimizer_variables, grads, trainable_variables):
        parent = super().stateless_apply

        def update():
            self._gradients_are_finite = True
            try:
                return parent(optimizer_variables, grads, trainable_variables)
            finally:
                self._gradients_are_finite = False

        def skip():
            mapping = list(zip(self.variables, optimizer_variables, strict=True))
            with keras.StatelessScope(state_mapping=mapping) as scope:
                self._skip()
            values = [scope.get_current_value(variable) for variable in self.variables]
            return list(trainable_variables), values

        return ops.cond(_are_finite(grads), update, skip)

    def _accumulate(self, grads, variables):
        index = self._of_weights.index
        sums = [
            None if gradient is None else self._sums[index[id(variable)]]
            for gradient, variable in zip(grads, variables, strict=True)
        ]
        pairs = [(total, grad) for total, grad in zip(sums, grads, strict=True) if grad is not None]

        def begin():
            # Overwrites the sums of the last update, which may be NaN.
            for total, gradient in pairs:
                self.assign(total, gradient)

        def add():
            for total, gradient in pairs:
                self.assign_add(total, gradient)

        def wait():
            self.micro_batch.assign_add(1)

        def finish():
            self.micro_batch.assign(0)
            self._update_if_finite(self._means(sums), variables)

        ops.cond(ops.equal(self.micro_batch, 0), begin, add)
        ops.cond(ops.equal(self.micro_batch, self.micro_batches - 1), finish, wait)

    def _means(self, sums):
        return [None if total is None else total / self.micro_batches for total in sums]

    def _update_if_finite(self, grads, variables):
        ops.cond(_are_finite(grads), lambda: self._update(grads, variables), self._skip)

    def _update(self, grads, variables):
        updates = ops.cast(self.iterations, "float32")
        if self.initial_loss_scale is not None:
            inverse = 1.0 / self.loss_scale
            grads = [None if gradient is None else gradient * inverse for gradient in grads]
        strategy = backend.strategy_of_all_replicas()
        if strategy is None:
            with self._without_ema_of_keras(), self._with_decays():
                super().apply(grads, variables)
        else:
            update_replicas(self, strategy, grads, variables)
        self._update_averages(updates)
        self.skipped_in_row.assign(0)
        if self.initial_loss_scale is not None:
            scale, steps = ops.convert_to_tensor(self.loss_scale), self.steps_since_change + 1
            grow = ops.greater_equal(steps, self.loss_scale_growth_steps)
            doubled = ops.minimum(scale * 2.0, _MAX_LOSS_SCALE)
            self.loss_scale.assign(ops.where(grow, doubled, scale))
            self.steps_since_change.assign(ops.where(grow, 0, steps))

    def update_step(self, gradient, variable, learning_rate):
        moments = self._of_weights.moments.get(id(variable))
        if moments is None:
            super().update_step(gradient, variable, learning_rate)
        else:
            # One fused operation instead of about twenty.
            momentum, velocity = moments
            backend.adam_step(
                variable,
                momentum,
                velocity,
                gradient,
                decays=self._of_weights.decays,
                learning_rate=learning_rate,
                beta_1=self.beta_1,
                beta_2=self.beta_2,
                epsilon=self.epsilon,
            )

    @contextlib.contextmanager
    def _with_decays(self):
        """Computes beta_1^t and beta_2^t of update t once for all weights."""
        if self._of_weights.moments:
            step = ops.cast(self.iterations + 1, "float32")
            self._of_weights.decays = self.beta_1**step, self.beta_2**step
        try:
            yield
        finally:
            # The tensors would keep their graph.
            self._of_weights.decays = None

    def _update_averages(self, updates):
        if not self.use_ema:
            return
        # Keras uses the full momentum from the second update on, so that for hundreds of updates
        # the average is mostly the initial weights.
        momentum = ops.minimum(updates / (updates + 9.0), self.ema_momentum)
        rest = 1.0 - momentum
        weights, averages = self._of_weights.weights, self._of_weights.averages
        for variable, average in zip(weights, averages, strict=True):
            dtype = variable.dtype
            average.assign(ops.cast(momentum, dtype) * average + ops.cast(rest, dtype) * variable)
            if self.ema_overwrite_frequency:
                is_due = ops.equal((updates + 1.0) % self.ema_overwrite_frequency, 0.0)
                new, old = ops.convert_to_tensor(average), ops.convert_to_tensor(variable)
                variable.assign(ops.where(is_due, new, old))

    def _skip(self):
        counted = 1
        if self.initial_loss_scale is not None:
            scale = ops.convert_to_tensor(self.loss_scale)
            counted = ops.cast(scale <= 1.0, "int32")
            self.loss_scale.assign(ops.maximum(scale / 2.0, 1.0))
            self.steps_since_change.assign(0)
        self.skipped.assign_add(counted)
        self.skipped_in_row.assign_add(counted)

    @contextlib.contextmanager
    def _without_ema_of_keras(self):
        use_ema, self.use_ema = self.use_ema, False
        try:
            yield
        finally:
            self.use_ema = use_ema

    def get_config(self):
        names = ("micro_batches", "initial_loss_scale", "loss_scale_growth_steps")
        return super().get_config() | {name: getattr(self, name) for name in names}


def _are_finite(gradients):
    return ops.isfinite(sum_of_squares(gradients))
