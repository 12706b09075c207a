"""The mean of the last or the best states of the weights."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np

from keras_seq.callbacks.counting_callback import PeriodicCallback, check_positive_integers


class AverageWeights(PeriodicCallback):
    """Averages the last or the best N states of the weights.

    The average of the last or the best checkpoints is usually better than the last checkpoint. The
    states are kept in memory, as N copies of the trainable weights. With `ExactCheckpoint.carry`,
    each checkpoint contains the states, so that a `fit` that is killed and resumed computes the
    same average as an uninterrupted `fit`.

    Args:
        count: Positive integer N, maximum number of states to average.
        every: Positive integer, updates between two states.
        set_at_end: Whether to set the weights of the model to the average at the end of `fit`. If
            False, only the attribute `average` has it.
        judge: Optional function that takes the number of updates and returns a score. The N states
            with the largest scores are averaged instead of the last N. Between equal scores, the
            earlier state is kept. States with the score NaN are dropped.
        initial_step: Number of updates before this `fit`.

    Attributes:
        average: The current average, a list with a float32 array per trainable weight; None before
            the first state.
        kept: Sorted list of the updates whose states are averaged.
        state: Dict for JSON with the scores of the states.
        arrays: The states, a dict of arrays by name. `restore` takes `state` and `arrays`.

    Raises:
        ValueError: If `count` or `every` is not a positive integer.

    Example:

    >>> callback = AverageWeights(count=5, every=1000)

    The best five states, scored by a `Validation` that precedes this callback in the list of
    callbacks and evaluates at the same updates:

    >>> from keras_seq.callbacks import Validation
    >>> validation = Validation(lambda step: {"bleu": 0.0}, every=1000, monitor="bleu")
    >>> callback = AverageWeights(5, 1000, judge=lambda step: validation.results["bleu"])

    Reference:
        Vaswani et al., "Attention Is All You Need", 2017, section 6.1,
        https://arxiv.org/abs/1706.03762
    """

    def __init__(
        self,
        count: int,
        every: int,
        set_at_end: bool = True,
        judge: Callable[[int], float] | None = None,
        initial_step: int = 0,
    ) -> None:
        super().__init__(every, initial_step)
        check_positive_integers(count=count)
        # Maps the number of an update to the score and the weights after that update.
        self._states: dict[int, tuple[float, list[np.ndarray]]] = {}
        self.set_at_end = set_at_end
        self.count = count
        self.judge = judge

    @property
    def kept(self) -> list[int]:
        return sorted(self._states)

    @property
    def average(self) -> list[np.ndarray] | None:
        if not self._states:
            return None
        return [
            np.asarray(np.sum(states, axis=0, dtype=np.float64) / len(states), np.float32)
            for states in zip(*(self._states[step][1] for step in self.kept), strict=True)
        ]

    @property
    def state(self) -> dict[str, Any]:
        return {"step": self.step, "kept": [[step, self._states[step][0]] for step in self.kept]}

    @property
    def arrays(self) -> dict[str, np.ndarray]:
        return {
            f"{step}/{i:05d}": array
            for step in self.kept
            for i, array in enumerate(self._states[step][1])
        }

    def restore(self, state: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
        """Restores the `state` and `arrays` of an earlier `fit`."""
        # A `fit` without this callback may have continued after the saved step.
        self.step, self._states = max(self.step, state["step"]), {}
        for step, value in state["kept"]:
            names = sorted(name for name in arrays if name.startswith(f"{step}/"))
            self._states[step] = (value, [arrays[name] for name in names])

    def _act(self) -> None:
        value = self.step if self.judge is None else float(self.judge(self.step))
        if math.isnan(value):
            return
        if len(self._states) == self.count:
            worst = min(self._states, key=lambda step: (self._states[step][0], -step))
            if not value > self._states[worst][0]:
                return
            del self._states[worst]
        weights = [weight.value for weight in self.model.trainable_weights]
        arrays = [np.array(keras.ops.convert_to_numpy(weight)) for weight in weights]
        self._states[self.step] = (value, arrays)

    def on_train_end(self, logs: Any = None) -> None:
        average = self.average
        if self.set_at_end and average is not None:
            for weight, mean in zip(self.model.trainable_weights, average, strict=True):
                weight.assign(mean)
