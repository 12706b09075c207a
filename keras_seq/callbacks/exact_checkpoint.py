"""Saves all of a `fit`, so that a killed one goes on as if nothing had happened."""

import functools

import keras
import numpy as np

from keras_seq import backend
from keras_seq.callbacks.counting_callback import CountingCallback

# What ends an epoch that was begun by an earlier `fit`; others who stop `fit` say True.
_EPOCH_IS_OVER = "the epoch is over"


class ExactCheckpoint(CountingCallback):
    """Saves everything that the next update depends on, and goes on from there.

    That is the weights, the optimizer's variables, the state of every seed generator
    of the model, the metrics of the epoch so far, the number of the batch, and
    what other callbacks count. A `fit` that is killed at any moment and begun
    anew by the same script ends with the weights of one that never was, to the last bit,
    if a batch depends on its number alone. `keras.callbacks.BackupAndRestore` goes
    on with other dropout and from the start of the epoch.

    Put it last in the list of callbacks, so that it sees what the others have counted.
    While `fit` runs, no other process and no other object of this kind gets the folder.

    Args:
        store: Where the checkpoints go; see `keras_seq.storage.checkpoints.CheckpointStore`.
        every: Positive integer, batches between two checkpoints. One more is made when
            `fit` ends or is stopped.
        steps_per_epoch: Positive integer, batches in an epoch, as `fit` has it.

    Attributes:
        step: Batches trained on, in all epochs.
        epoch: Whole epochs, the `initial_epoch` of `fit`.

    Raises:
        ValueError: If `every` or `steps_per_epoch` is not a positive integer, or `fit` is
            called in a way that would not go on where the checkpoint was made, or the model
            has replicas on several devices (`tf.distribute`).
        keras_seq.InputError: In `restore`, if no checkpoint is whole, or they
            are of another model; in `fit`, if a weight is no longer finite, or another `fit` is
            at work in the folder.

    Example:

    >>> import tempfile
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

    def __init__(self, store, every, steps_per_epoch):
        super().__init__()
        for name, value in (("every", every), ("steps_per_epoch", steps_per_epoch)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"`{name}` must be a positive integer, received {value!r}.")
        self.store = store
        self.every = every
        self.steps_per_epoch = steps_per_epoch
        self._saved = 0
        self._lock = None
        self._carried = {}
        self._states = {}
        self._arrays = {}
        self._restored = None
        self._begun_at = None
        self._within_epoch = False

    @property
    def epoch(self):
        return self.step // self.steps_per_epoch

    def restore(self, model):
        """Puts the newest whole checkpoint into a model; without any, changes nothing.

        Args:
            model: Compiled, and built as the one that was saved.

        Returns:
            The number of batches trained on, 0 without a checkpoint.
        """
        if not model.built or getattr(model, "optimizer", None) is None:
            raise ValueError(
                "`restore` needs a model that is compiled and whose weights exist: "
                "call `compile`, and `build` or the model on a batch, before."
            )
        strategy = getattr(model, "distribute_strategy", None)
        replicas = getattr(strategy, "num_replicas_in_sync", 1)
        if replicas > 1:
            raise ValueError(
                f"ExactCheckpoint received a model of {type(strategy).__name__} with "
                f"{replicas} replicas, whose own parts of the state it cannot "
                "put back: build the model without a strategy, or let `keras_seq.train` share it "
                "among devices, which goes on exactly, too."
            )
        if not model.optimizer.built:
            model.optimizer.build(model.trainable_variables)
        if model is not self._restored:
            # `fit` tells callbacks of its end only where that is no exception.
            object.__setattr__(model, "fit", self._unlocking(model.fit))
        self._restored = model
        if not self.store.steps:
            return self.step
        arrays = _arrays(model)
        specs = {part: _specs(arrays[part]) for part in arrays}
        loaded = self.store.load(specs, "latest", check_all=True)
        if loaded.state["steps_per_epoch"] != self.steps_per_epoch:
            raise ValueError(
                f"`steps_per_epoch` is {self.steps_per_epoch}, the checkpoint was made with "
                f"{loaded.state['steps_per_epoch']}: give the same."
            )
        for part, variables in _variables(model).items():
            for name, variable in variables.items():
                variable.assign(_shaped(loaded.tensors[part][name], variable))
        self.step = self._saved = loaded.step
        self._states = loaded.state["callbacks"]
        self._arrays = self._load_arrays(loaded.step, loaded.state.get("arrays", {}))
        for name in self._carried:
            self._put_back(name)
        return self.step

    def carry(self, name, callback, attributes=None):
        """Saves what another callback counts, and puts back what was saved of it.

        Args:
            name: Text that stands for it in the checkpoint.
            callback: One with a dict `state` that JSON can hold and a method `restore`
                that takes it, such as `Validation`. Where it has a dict `arrays` of arrays by
                name as well, `restore` takes both, as that of `AverageWeights` does.
            attributes: Names of attributes that hold a number, for one without:
                `("best", "wait")` of `keras.callbacks.EarlyStopping`. They are
                put back when `fit` begins.

        Returns:
            The callback.
        """
        if attributes is None and not (hasattr(callback, "state") and hasattr(callback, "restore")):
            raise TypeError(
                f"{type(callback).__name__} has no `state` and `restore`: name its `attributes`."
            )
        self._carried[name] = (callback, attributes)
        self._put_back(name)
        return callback

    def remaining(self, batch, lengths_vary=False):
        """The batches not trained on yet, as data for `fit`.

        Args:
            batch: Function of a number from 0 that gives what `fit` takes as a batch,
                the tuple `(inputs, targets)` for instance, always the same for the same
                number. Numbers go on through the epochs.
            lengths_vary: Whether axes other than the first differ from batch to batch.

        Returns:
            What goes into one `fit`, with `shuffle=False`.
        """
        if self._restored is None:
            raise ValueError("Call `restore(model)` before `remaining`.")
        self._begun_at = first = self.step
        example = batch(first)
        # Otherwise `fit` would make the metrics with its first batch, too late to be restored.
        self._restored._symbolic_build(data_batch=example)
        if lengths_vary and backend.name() == "tensorflow":
            return backend.batch_feed(lambda: _from(batch, first), example)
        return _from(batch, first)

    def set_model(self, model):
        super().set_model(model)
        # To ask for `self.model` copies the weights on JAX; not at every batch.
        self._fitted = model

    def on_train_begin(self, logs=None):
        if self._begun_at != self.step:
            raise ValueError("Give `fit` the batches that are left: `remaining(batch)`.")
        steps = self.params.get("steps")
        if steps != self.steps_per_epoch:
            raise ValueError(
                f"An epoch of `fit` has {steps} batches; expected "
                f"`steps_per_epoch={self.steps_per_epoch}`."
            )
        super().on_train_begin(logs)
        self._lock = self.store.lock("`fit` with an ExactCheckpoint")
        for name, (_, attributes) in self._carried.items():
            # Those of Keras start anew with `fit`.
            if attributes is not None:
                self._put_back(name)

    def on_epoch_begin(self, epoch, logs=None):
        super().on_epoch_begin(epoch, logs)
        if epoch != self.epoch:
            raise ValueError(
                f"Epoch {epoch} begins, but {self.step} batches are {self.epoch} epochs: give "
                "`fit` `initial_epoch=checkpoint.epoch`."
            )
        self._within_epoch = self.step % self.steps_per_epoch != 0
        # All callbacks share them; `RecentLoss` asks.
        self.params["batches_before"] = self.step % self.steps_per_epoch
        if self._within_epoch and self.step == self._begun_at:
            metrics = _metrics(self.model)
            specs = _specs({name: _bits(variable) for name, variable in metrics.items()})
            saved = self.store.load({"metrics": specs}, self.step).tensors["metrics"]
            for name, variable in metrics.items():
                variable.assign(_shaped(saved[name], variable))

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(batch, logs)
        if self.step % self.steps_per_epoch:
            if self._due(self.every) or self._fitted.stop_training:
                self._save()
        elif self._within_epoch and not self._fitted.stop_training:
            # `fit` would make this epoch as long as the others. What is saved, is saved when the
            # others have seen its end.
            self._fitted.stop_training = _EPOCH_IS_OVER

    def on_epoch_end(self, epoch, logs=None):
        if self._fitted.stop_training == _EPOCH_IS_OVER:
            self._fitted.stop_training = False
        last = epoch + 1 == self.params["epochs"]
        # Not at the end of `fit`, where the optimizer's average has replaced the weights.
        if self.step != self._saved and (
            self._due(self.every) or last or self._fitted.stop_training
        ):
            self._save()

    def on_train_end(self, logs=None):
        self._unlock()

    def _unlocking(self, fit):
        @functools.wraps(fit)
        def fit_and_unlock(*arguments, **options):
            try:
                return fit(*arguments, **options)
            finally:
                self._unlock()

        return fit_and_unlock

    def _unlock(self):
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    def _save(self):
        # On JAX `fit` holds the weights itself; to ask for the model puts them back into it.
        model = self.model
        metrics = {name: _bits(variable) for name, variable in _metrics(model).items()}
        states = {
            name: callback.state
            if attributes is None
            else {key: np.asarray(getattr(callback, key)).item() for key in attributes}
            for name, (callback, attributes) in self._carried.items()
        }
        # What is not carried now may be by the next script.
        arrays = self._arrays | {
            name: callback.arrays
            for name, (callback, attributes) in self._carried.items()
            if attributes is None and hasattr(callback, "arrays")
        }
        tensors = {**_arrays(model), "metrics": metrics}
        named = _joined(arrays)
        if named:
            tensors["callbacks"] = named
        self.store.save(
            self.step,
            tensors,
            {
                "steps_per_epoch": self.steps_per_epoch,
                "callbacks": self._states | states,
                "arrays": {name: _specs(arrays[name]) for name in arrays},
            },
        )
        self._saved = self.step

    def _load_arrays(self, step, specs):
        expected = _joined(specs)
        if not expected:
            return {name: {} for name in specs}
        found = self.store.load({"callbacks": expected}, step).tensors["callbacks"]
        return {name: {key: found[f"{name}/{key}"] for key in specs[name]} for name in specs}

    def _put_back(self, name):
        callback, attributes = self._carried[name]
        if name not in self._states:
            return
        if attributes is None:
            arrays = [self._arrays.pop(name)] if name in self._arrays else []
            callback.restore(self._states[name], *arrays)
            return
        for key in attributes:
            setattr(callback, key, self._states[name][key])


def _from(batch, first):
    while True:
        yield batch(first)
        first += 1


def _joined(parts):
    return {f"{name}/{key}": part[key] for name, part in parts.items() for key in part}


def _variables(model):
    # By number: a name that Keras makes up depends on how many models a notebook has made before.
    return {
        "model": {f"{i:05d}": variable for i, variable in enumerate(model.variables)},
        "optimizer": {f"{i:05d}": variable for i, variable in enumerate(model.optimizer.variables)},
    }


def _metrics(model):
    return {f"{i:05d}": variable for i, variable in enumerate(model.metrics_variables)}


def _arrays(model):
    # What an optimizer adds up within an update may hold a NaN that it will skip.
    scratch = {id(variable) for variable in getattr(model.optimizer, "scratch", ())}
    return {
        part: {
            name: _bits(variable) if id(variable) in scratch else _array(variable)
            for name, variable in variables.items()
        }
        for part, variables in _variables(model).items()
    }


def _array(variable):
    return np.array(keras.ops.convert_to_numpy(variable.value))


def _bits(variable):
    """The bytes of a variable that need not be finite, which a store asks of floats."""
    return np.frombuffer(_array(variable).tobytes(), np.uint8)


def _shaped(array, variable):
    current = _array(variable)
    return np.frombuffer(array.tobytes(), current.dtype).reshape(current.shape)


def _specs(arrays):
    return {name: (array.shape, array.dtype.name) for name, array in arrays.items()}
