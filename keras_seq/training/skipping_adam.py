"""Adam that leaves out what would ruin the weights, and adds up gradients of several batches."""

from typing import Any

import keras
from keras import ops

from keras_seq import backend

# Gradients of nothing but zeros would let a scale grow until it is infinite.
_LARGEST_SCALE = 2.0**24


@keras.saving.register_keras_serializable(package="keras_seq")
class SkippingAdam(keras.optimizers.Adam):
    """Adam that skips an update whose gradients are not finite, and counts it.

    One NaN in a gradient makes all weights NaN, for good. Such an update changes
    here neither weights nor moments nor averages nor the step of the schedule.
    The norm of all gradients is looked at, so gradients so large that it
    overflows are skipped too.

    With `micro_batches` of N an update is made from the mean gradient of N
    batches. All that an optimizer counts, the schedule and the moving average
    included, goes by updates; in Keras' own `gradient_accumulation_steps` the
    schedule and the average go by batches. If a gradient of one of the N
    batches is not finite, the update is skipped as a whole.

    The momentum of the moving average (`use_ema`) rises: after t updates it is no larger than
    t / (t + 9), as in `tf.train.ExponentialMovingAverage` with `num_updates`. So the average
    is one of about the last ninth of a short training, and not mostly of its first weights.

    With `initial_loss_scale` the loss is multiplied by a scale before its gradients are
    computed, which are divided by it afterwards: what would vanish in float16 does
    not. A scale that is too large makes gradients infinite; such an update is left out,
    the scale is halved, and nothing is counted as skipped unless the scale is 1
    already. After so many updates without that it is doubled.

    Args:
        *arguments: Those of `keras.optimizers.Adam`.
        micro_batches: Positive integer N. Defaults to 1.
        initial_loss_scale: Float from 1 to 2 ** 24, or None for no scale. Defaults to None.
        loss_scale_growth_steps: Positive integer, updates after which the scale is
            doubled. Defaults to 2000.
        **options: Others of `keras.optimizers.Adam`, without
            `gradient_accumulation_steps`.

    Attributes:
        skipped: Integer variable, updates skipped so far.
        skipped_in_row: Integer variable, those since the last one made.
        loss_scale: Float variable, the present scale.
        scratch: Variables that mean nothing between two updates.

    Raises:
        ValueError: If a number is not positive, the scale out of bounds, or Keras'
            accumulation is asked for; in `fit`, if the model has replicas on several devices
            (`tf.distribute`).

    Example:

    >>> optimizer = SkippingAdam(0.1)
    >>> weight = keras.Variable([1.0])
    >>> optimizer.build([weight])
    >>> optimizer.apply([ops.convert_to_tensor([float("nan")])])
    >>> float(weight[0]), int(optimizer.skipped), int(optimizer.iterations)
    (1.0, 1, 0)
    """

    _passed = False
    # The sum of squares of all gradients of an update, while it is made.
    _squares: Any = None
    # Made by `build`.
    skipped: Any = None
    skipped_in_row: Any = None

    def __init__(
        self,
        *arguments,
        micro_batches=1,
        initial_loss_scale=None,
        loss_scale_growth_steps=2000,
        **options,
    ):
        if not isinstance(micro_batches, int) or micro_batches < 1:
            raise ValueError(
                f"`micro_batches` must be a positive integer, received {micro_batches!r}."
            )
        if initial_loss_scale is not None and not 1 <= initial_loss_scale <= _LARGEST_SCALE:
            raise ValueError(
                "`initial_loss_scale` must be None or from 1 to 2 ** 24, "
                f"received {initial_loss_scale!r}."
            )
        if not isinstance(loss_scale_growth_steps, int) or loss_scale_growth_steps < 1:
            raise ValueError(
                "`loss_scale_growth_steps` must be a positive integer, "
                f"received {loss_scale_growth_steps!r}."
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
        super().build(variables)
        self.skipped = self.add_variable((), "zeros", "int32", name="skipped")
        self.skipped_in_row = self.add_variable((), "zeros", "int32", name="skipped_in_row")
        if self.initial_loss_scale is not None:
            initial = keras.initializers.Constant(self.initial_loss_scale)
            self.loss_scale = self.add_variable((), initial, "float32", name="loss_scale")
            self.steps_since_change = self.add_variable(
                (), "zeros", "int32", name="loss_scale_steps"
            )
        # The last ones, so that the numbers of the others do not depend on them.
        self.scratch = []
        if self.micro_batches > 1:
            self.micro_batch = self.add_variable((), "zeros", "int32", name="micro_batch")
            self._sums = self.add_optimizer_variables(variables, "gradient_sum")
            self.scratch = [self.micro_batch, *self._sums]

    def scale_loss(self, loss):
        """The loss that gradients are computed of, as `fit` asks for it."""
        if self.initial_loss_scale is None:
            return super().scale_loss(loss)
        return loss * (self.loss_scale if self.built else self.initial_loss_scale)

    def begin_last_micro_batch(self):
        """Makes the next batch complete an update, as a rehearsal wants it."""
        if self.micro_batches > 1:
            self.micro_batch.assign(self.micro_batches - 1)

    def apply(self, grads, trainable_variables=None):
        if not self.built and trainable_variables is not None:
            self.build(trainable_variables)
        if self._passed:
            self._update(grads, trainable_variables)
            return
        strategy = backend.strategy_of_this_replica()
        if strategy is not None:
            # TensorFlow would say that `merge_call` was called in a new graph.
            raise ValueError(
                "SkippingAdam was asked for an update within a replica of "
                f"{type(strategy).__name__}, where none can be skipped for all replicas: compile "
                "with `keras.optimizers.Adam`, or let `keras_seq.train` share the model among "
                "devices."
            )
        variables = list(trainable_variables or self._trainable_variables)
        if backend.name() == "jax":
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
        # Keras squares what TensorFlow gives for some rows of a table as it is, where a row may
        # come more than once: norm and second moments would be wrong.
        grads = [gradient if gradient is None else backend.dense(gradient) for gradient in grads]
        if self.micro_batches == 1:
            self._update_if_finite(grads, variables)
        else:
            self._add_up(grads, variables)

    def _add_up(self, grads, variables):
        sums = [
            None if gradient is None else self._sums[self._get_variable_index(variable)]
            for gradient, variable in zip(grads, variables, strict=True)
        ]
        pairs = [(total, grad) for total, grad in zip(sums, grads, strict=True) if grad is not None]

        def begin():
            # Whatever the last update left there, NaN included, is not looked at.
            for total, gradient in pairs:
                self.assign(total, gradient)

        def add():
            for total, gradient in pairs:
                self.assign_add(total, gradient)

        def go_on():
            self.micro_batch.assign_add(1)

        def finish():
            self.micro_batch.assign(0)
            self._update_if_finite(self._means(sums), variables)

        ops.cond(ops.equal(self.micro_batch, 0), begin, add)
        ops.cond(ops.equal(self.micro_batch, self.micro_batches - 1), finish, go_on)

    def _means(self, sums):
        return [None if total is None else total / self.micro_batches for total in sums]

    def _update_if_finite(self, grads, variables):
        self._squares = _sum_of_squares(grads)
        finite = ops.isfinite(self._squares)
        ops.cond(finite, lambda: self._update(grads, variables), self._skip)
        self._squares = None

    def stateless_apply(self, optimizer_variables, grads, trainable_variables):
        # Under JAX the branches of a condition return values instead of assigning them.
        if self.micro_batches == 1:
            return self._stateless_update(optimizer_variables, grads, trainable_variables)
        places = {id(variable): place for place, variable in enumerate(self.variables)}
        values = list(optimizer_variables)
        number = values[places[id(self.micro_batch)]]
        last = ops.equal(number, self.micro_batches - 1)
        values[places[id(self.micro_batch)]] = ops.where(last, 0, number + 1)
        sums = []
        for variable, gradient in zip(self._sums, grads, strict=True):
            place = places[id(variable)]
            values[place] = ops.where(ops.equal(number, 0), gradient, values[place] + gradient)
            sums.append(values[place])
        return ops.cond(
            last,
            lambda: self._stateless_update(values, self._means(sums), trainable_variables),
            lambda: (list(trainable_variables), values),
        )

    def _stateless_update(self, optimizer_variables, grads, trainable_variables):
        def update():
            self._passed = True
            try:
                return parent(optimizer_variables, grads, trainable_variables)
            finally:
                self._passed = False

        def skip():
            mapping = list(zip(self.variables, optimizer_variables, strict=True))
            with keras.StatelessScope(state_mapping=mapping) as scope:
                self._skip()
            values = [scope.get_current_value(variable) for variable in self.variables]
            return list(trainable_variables), values

        parent = super().stateless_apply
        return ops.cond(ops.isfinite(_sum_of_squares(grads)), update, skip)

    def _backend_update_step(self, grads, trainable_variables, learning_rate):
        strategy = backend.strategy_of_all_replicas()
        if strategy is not None:
            # Keras leaves a replica's context for this, which whoever trains replicas with this
            # has left already: the gradients are those of all, and in a replica no update is
            # conditional.
            values = [variable.value for variable in trainable_variables]
            pairs = list(zip(grads, values, strict=True))
            self._distributed_tf_update_step(strategy, pairs, learning_rate)
        elif self.amsgrad or not backend.computes_on_one_processor():
            super()._backend_update_step(grads, trainable_variables, learning_rate)
        else:
            # What Keras writes as a dozen passes over all weights.
            places = [self._get_variable_index(variable) for variable in trainable_variables]
            backend.apply_adam(
                trainable_variables,
                [self._momentums[place] for place in places],
                [self._velocities[place] for place in places],
                grads,
                self.iterations + 1,
                {
                    "lr": learning_rate,
                    "beta1": self.beta_1,
                    "beta2": self.beta_2,
                    "epsilon": self.epsilon,
                },
            )

    def _update_model_variables_moving_average(self, trainable_variables):
        if not self.use_ema:
            return
        # Keras has the same momentum from the second update on, and so for hundreds of updates
        # little but the first weights. It also makes the factors anew for each weight.
        updates = ops.cast(self.iterations, "float32")
        momentum = ops.minimum(updates / (updates + 9.0), self.ema_momentum)
        factors = {}
        for variable, average in zip(
            trainable_variables, self._model_variables_moving_average, strict=True
        ):
            if average is None:
                continue
            if variable.dtype not in factors:
                kept = ops.cast(momentum, variable.dtype)
                factors[variable.dtype] = kept, ops.subtract(1, kept)
            kept, added = factors[variable.dtype]
            average.assign(ops.add(ops.multiply(kept, average), ops.multiply(added, variable)))

    def _clip_gradients(self, grads):
        if self._squares is None or self.clipnorm or not self.global_clipnorm:
            return super()._clip_gradients(grads)
        # Keras would sum the squares once more.
        factor = self.global_clipnorm / ops.maximum(ops.sqrt(self._squares), self.global_clipnorm)
        return [gradient * ops.cast(factor, gradient.dtype) for gradient in grads]

    def _update(self, grads, trainable_variables):
        if self.initial_loss_scale is not None:
            inverse = 1.0 / self.loss_scale
            grads = [None if gradient is None else gradient * inverse for gradient in grads]
            self._squares = None
        super().apply(grads, trainable_variables)
        self.skipped_in_row.assign(0)
        if self.initial_loss_scale is not None:
            scale, steps = ops.convert_to_tensor(self.loss_scale), self.steps_since_change + 1
            grown = ops.greater_equal(steps, self.loss_scale_growth_steps)
            doubled = ops.minimum(scale * 2.0, _LARGEST_SCALE)
            self.loss_scale.assign(ops.where(grown, doubled, scale))
            self.steps_since_change.assign(ops.where(grown, 0, steps))

    def _skip(self):
        counted = 1
        if self.initial_loss_scale is not None:
            scale = ops.convert_to_tensor(self.loss_scale)
            counted = ops.cast(scale <= 1.0, "int32")
            self.loss_scale.assign(ops.maximum(scale / 2.0, 1.0))
            self.steps_since_change.assign(0)
        self.skipped.assign_add(counted)
        self.skipped_in_row.assign_add(counted)

    def get_config(self):
        return {
            **super().get_config(),
            "micro_batches": self.micro_batches,
            "initial_loss_scale": self.initial_loss_scale,
            "loss_scale_growth_steps": self.loss_scale_growth_steps,
        }


def _sum_of_squares(gradients):
    return backend.sum_of_squares([gradient for gradient in gradients if gradient is not None])
