"""Checkpoints of a `fit` that resume bit-exactly."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import keras

from keras_seq import backend
from keras_seq.callbacks.checkpoint_content import (
    Arrays,
    CarriedCallbacks,
    assign_arrays,
    metric_arrays,
    metric_variables,
    model_arrays,
    model_variables,
    specs_of,
)
from keras_seq.callbacks.counting_callback import CountingCallback, check_positive_integers

# Value of `stop_training` that ends a resumed epoch but not `fit`. Other callbacks use True.
_EPOCH_IS_OVER = "the epoch is over"


class ExactCheckpoint(CountingCallback):
    """Saves the complete state of `fit`, and resumes bit-exactly.

    A checkpoint contains the weights, the variables of the optimizer, the state of every seed
    generator of the model, the metrics of the current epoch, the number of the batch, and the
    states of other callbacks (see `carry`). If each batch depends only on its number, a `fit` that
    is killed at any moment and started again by the same script produces weights bit-identical to
    an uninterrupted `fit`. `keras.callbacks.BackupAndRestore` resumes with different dropout masks
    and at the start of the epoch.

    Put this callback last in the list of callbacks, so that the others have counted the batch when
    it saves. While `fit` runs, the folder is locked.

    Args:
        store: The checkpoint store; see `keras_seq.storage.checkpoints.CheckpointStore`.
        every: Positive integer, batches between two checkpoints. Another checkpoint is saved when
            `fit` ends or is stopped.
        steps_per_epoch: Positive integer, batches per epoch, as passed to `fit`.

    Attributes:
        step: Number of batches trained on, in all epochs.
        epoch: Number of complete epochs; pass it to `fit` as `initial_epoch`.

    Raises:
        ValueError: If `every` or `steps_per_epoch` is not a positive integer, if the arguments of
            `fit` do not continue where the checkpoint was saved, or if the model has replicas on
            several devices (`tf.distribute`).
        keras_seq.InputError: In `restore`, if all checkpoints are damaged or belong to a different
            model; in `fit`, if a weight is not finite or the folder is locked.

    Example:

    >>> import tempfile
    >>> import numpy as np
    >>> from keras_seq.storage.checkpoints import CheckpointStore
    >>> def batch(step):
    ...     generator = np.random.default_rng(step)
    ...     return generator.normal(size=(8, 4)), generator.normal(size=(8, 1))
    >>> model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
    >>> model.compile("adam", "mse")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     checkpoint = ExactCheckpoint(CheckpointStore(folder), every=2, steps_per_epoch=3)
    ...     step = checkpoint.restore(model)
    ...     history = model.fit(
    ...         checkpoint.remaining(batch), initial_epoch=checkpoint.epoch, epochs=2,
    ...         steps_per_epoch=3, shuffle=False, verbose=0, callbacks=[checkpoint],
    ...     )
    >>> step, checkpoint.step
    (0, 6)
    """

    def __init__(self, store: Any, every: int, steps_per_epoch: int) -> None:
        super().__init__()
        check_positive_integers(every=every, steps_per_epoch=steps_per_epoch)
        self.store = store
        self.every = every
        self.steps_per_epoch = steps_per_epoch
        self._saved = 0
        self._lock: Any = None
        self._carried = CarriedCallbacks()
        self._restored_model: Any = None
        self._first_step: int | None = None
        self._within_epoch = False

    @property
    def epoch(self) -> int:
        return self.step // self.steps_per_epoch

    def restore(self, model: keras.Model) -> int:
        """Restores the newest intact checkpoint; without a checkpoint, changes nothing.

        The model must be compiled, and built like the saved one. Returns the number of batches
        trained on, 0 without a checkpoint.
        """
        _check_model(model)
        if not model.optimizer.built:
            model.optimizer.build(model.trainable_variables)
        if model is not self._restored_model:
            # `fit` does not call `on_train_end` after an exception.
            object.__setattr__(model, "fit", self._unlocking(model.fit))
        self._restored_model = model
        if not self.store.steps:
            return self.step
        specs = {part: specs_of(arrays) for part, arrays in model_arrays(model).items()}
        loaded = self.store.load(specs, "latest", check_all=True)
        if loaded.state["steps_per_epoch"] != self.steps_per_epoch:
            raise ValueError(
                f"`steps_per_epoch` is {self.steps_per_epoch}, the checkpoint was made with "
                f"{loaded.state['steps_per_epoch']}: give the same."
            )
        for part, variables in model_variables(model).items():
            assign_arrays(variables, loaded.tensors[part])
        self.step = self._saved = loaded.step
        arrays = self._load_arrays(loaded.step, loaded.state.get("arrays", {}))
        self._carried.restore(loaded.state["callbacks"], arrays)
        return self.step

    def carry(
        self, name: str, callback: Any, attributes: Sequence[str] | None = None
    ) -> keras.callbacks.Callback:
        """Saves and restores the state of another callback with checkpoints; returns the callback.

        Args:
            name: Name of the state in the checkpoint.
            callback: A callback with a dict `state` for JSON and a method `restore` that takes it,
                such as `Validation`. If the callback also has a dict `arrays` of arrays by name,
                like `AverageWeights`, `restore` takes both.
            attributes: For other callbacks, the names of attributes that hold numbers, such as
                `("best", "wait")` of `keras.callbacks.EarlyStopping`. They are restored when `fit`
                begins.
        """
        self._carried.add(name, callback, attributes)
        return callback

    def remaining(self, batch: Callable[[int], Any], lengths_vary: bool = False) -> Any:
        """Returns the batches not trained on yet, as data for one `fit` with `shuffle=False`.

        Args:
            batch: Function that takes the number of a batch, from 0 and through all epochs, and
                returns the batch for `fit`, such as a tuple `(inputs, targets)`. It must return the
                same batch for the same number.
            lengths_vary: Whether axes other than the first differ between batches.
        """
        if self._restored_model is None:
            raise ValueError("Call `restore(model)` before `remaining`.")
        self._first_step = first = self.step
        example = batch(first)
        # Otherwise `fit` creates the metrics with its first batch, too late to restore them.
        self._restored_model._symbolic_build(data_batch=example)
        if lengths_vary and backend.name() == "tensorflow":
            return backend.batch_feed(lambda: _batches_from(batch, first), example)
        return _batches_from(batch, first)

    def set_model(self, model: keras.Model) -> None:
        super().set_model(model)
        # Access to `self.model` copies the weights on JAX, which is too slow for every batch.
        self._model_in_fit = model

    def on_train_begin(self, logs: Any = None) -> None:
        if self._first_step != self.step:
            raise ValueError("Give `fit` the batches that are left: `remaining(batch)`.")
        steps = self.params.get("steps")
        if steps != self.steps_per_epoch:
            expected = f"`steps_per_epoch={self.steps_per_epoch}`"
            raise ValueError(f"An epoch of `fit` has {steps} batches; expected {expected}.")
        super().on_train_begin(logs)
        self._lock = self.store.lock("`fit` with an ExactCheckpoint")
        self._carried.restore_attributes()

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_begin(epoch, logs)
        if epoch != self.epoch:
            raise ValueError(
                f"Epoch {epoch} begins, but {self.step} batches are {self.epoch} epochs: give "
                "`fit` `initial_epoch=checkpoint.epoch`."
            )
        self._within_epoch = self.step % self.steps_per_epoch != 0
        if self._within_epoch and self.step == self._first_step:
            specs = {"metrics": specs_of(metric_arrays(self.model))}
            arrays = self.store.load(specs, self.step).tensors["metrics"]
            assign_arrays(metric_variables(self.model), arrays)

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        super().on_train_batch_end(batch, logs)
        if self.step % self.steps_per_epoch:
            if self._due(self.every) or self._model_in_fit.stop_training:
                self._save()
        elif self._within_epoch and not self._model_in_fit.stop_training:
            # End a resumed epoch early, because `fit` expects a full epoch. `on_epoch_end` saves
            # after the other callbacks have handled the end of the epoch.
            self._model_in_fit.stop_training = _EPOCH_IS_OVER

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        model = self._model_in_fit
        if model.stop_training == _EPOCH_IS_OVER:
            model.stop_training = False
        is_last = epoch + 1 == self.params["epochs"]
        # At the end of `fit`, the optimizer has already replaced the weights with their average.
        is_due = self._due(self.every) or is_last or model.stop_training
        if self.step != self._saved and is_due:
            self._save()

    def on_train_end(self, logs: Any = None) -> None:
        self._unlock()

    def _unlocking(self, fit: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fit)
        def fit_and_unlock(*arguments: Any, **options: Any) -> Any:
            try:
                return fit(*arguments, **options)
            finally:
                self._unlock()

        return fit_and_unlock

    def _unlock(self) -> None:
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _save(self) -> None:
        model = self.model
        tensors = {**model_arrays(model), "metrics": metric_arrays(model)}
        arrays = self._carried.arrays
        if joined := _joined(arrays):
            tensors["callbacks"] = joined
        state = {
            "steps_per_epoch": self.steps_per_epoch,
            "callbacks": self._carried.states,
            "arrays": {name: specs_of(arrays[name]) for name in arrays},
        }
        self.store.save(self.step, tensors, state)
        self._saved = self.step

    def _load_arrays(self, step: int, specs: Mapping[str, Any]) -> dict[str, Arrays]:
        expected = _joined(specs)
        if not expected:
            return {name: {} for name in specs}
        arrays = self.store.load({"callbacks": expected}, step).tensors["callbacks"]
        return {name: {key: arrays[f"{name}/{key}"] for key in specs[name]} for name in specs}


def _check_model(model: keras.Model) -> None:
    if not model.built or getattr(model, "optimizer", None) is None:
        raise ValueError(
            "`restore` needs a model that is compiled and whose weights exist: "
            "call `compile`, and `build` or the model on a batch, before."
        )
    strategy = getattr(model, "distribute_strategy", None)
    replicas = getattr(strategy, "num_replicas_in_sync", 1)
    if replicas > 1:
        raise ValueError(
            f"ExactCheckpoint received a model of {type(strategy).__name__} with {replicas} "
            "replicas, whose separate states it cannot restore: build the model without a "
            "strategy, or let `keras_seq.train` share it among devices, which also resumes exactly."
        )


def _batches_from(batch: Callable[[int], Any], first: int) -> Iterator[Any]:
    while True:
        yield batch(first)
        first += 1


def _joined(parts: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    return {f"{name}/{key}": part[key] for name, part in parts.items() for key in part}
