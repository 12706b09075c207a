"""The mean of the last or the best few states of the weights."""

import math

import keras
import numpy as np

from keras_seq.callbacks.counting_callback import CountingCallback


class AverageWeights(CountingCallback):
    """Keeps the weights at regular updates, and leaves the mean of the last or the best.

    A model that is averaged over its last checkpoints is usually better than the
    last; so is one averaged over those that validated best. The states are kept in
    memory, `count` copies of the trainable weights. `ExactCheckpoint.carry` saves them in every
    checkpoint, so that the mean after a kill is that of a `fit` without.

    Args:
        count: Positive integer, states averaged; fewer where `fit` is shorter.
        every: Positive integer, updates between two of them.
        set_at_end: Whether the model has the mean when `fit` ends. Otherwise it is had
            by `average` alone.
        judge: Optional function of the number of updates done that gives a number; the
            states with the `count` largest are averaged in place of the last. Of equals the
            earlier one is kept; one judged NaN never is.
        initial_step: Updates done before this `fit`.

    Attributes:
        average: List of float32 arrays, the mean so far, one for each trainable
            weight; None before the first state.
        kept: List of the updates after which the states averaged were taken, ascending.
        state: A dict for JSON, of what each is kept for.
        arrays: The states themselves, a dict of arrays by name; `restore` takes both.

    Raises:
        ValueError: If `count` or `every` is not a positive integer.

    Example:

    >>> callback = AverageWeights(count=5, every=1000)

    The best of those that a `Validation`, which comes before it in the list of callbacks,
    has evaluated at the same updates:

    >>> from keras_seq.callbacks import Validation
    >>> validation = Validation(lambda step: {"bleu": 0.0}, every=1000, monitor="bleu")
    >>> callback = AverageWeights(5, 1000, judge=lambda step: validation.results["bleu"])

    Reference:
        Vaswani et al., "Attention Is All You Need", 2017, section 6.1,
        https://arxiv.org/abs/1706.03762
    """

    def __init__(self, count, every, set_at_end=True, judge=None, initial_step=0):
        super().__init__(initial_step)
        for name, value in (("count", count), ("every", every)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"`{name}` must be a positive integer, received {value!r}.")
        self.every = every
        self.set_at_end = set_at_end
        self.count = count
        self.judge = judge
        # By step: the value it is kept for, and the arrays.
        self._kept: dict = {}

    @property
    def kept(self):
        return sorted(self._kept)

    @property
    def average(self):
        if not self._kept:
            return None
        return [
            (np.sum(states, axis=0, dtype=np.float64) / len(states)).astype(np.float32)
            for states in zip(*(self._kept[step][1] for step in self.kept), strict=True)
        ]

    @property
    def state(self):
        return {"step": self.step, "kept": [[step, self._kept[step][0]] for step in self.kept]}

    @property
    def arrays(self):
        return {
            f"{step}/{i:05d}": array
            for step in self.kept
            for i, array in enumerate(self._kept[step][1])
        }

    def restore(self, state, arrays):
        """Takes over what an earlier `fit` had as `state` and `arrays`."""
        # Later, if another `fit` went on meanwhile that did not keep this.
        self.step, self._kept = max(self.step, state["step"]), {}
        for step, value in state["kept"]:
            names = sorted(name for name in arrays if name.startswith(f"{step}/"))
            self._kept[step] = (value, [arrays[name] for name in names])

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(batch, logs)
        if not self._due(self.every):
            return
        # On JAX `fit` holds the weights itself; to ask for the model puts them back into it.
        weights = self.model.trainable_weights
        value = self.step if self.judge is None else float(self.judge(self.step))
        if math.isnan(value):
            return
        if len(self._kept) == self.count:
            worst = min(self._kept, key=lambda step: (self._kept[step][0], -step))
            if not value > self._kept[worst][0]:
                return
            del self._kept[worst]
        self._kept[self.step] = (
            value,
            [np.array(keras.ops.convert_to_numpy(weight.value)) for weight in weights],
        )

    def on_train_end(self, logs=None):
        average = self.average
        if self.set_at_end and average is not None:
            for weight, mean in zip(self.model.trainable_weights, average, strict=True):
                weight.assign(mean)
