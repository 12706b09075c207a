"""The mean of the last few states of the weights."""

import collections

import keras
import numpy as np


class AverageWeights(keras.callbacks.Callback):
    """Keeps the weights at regular updates, and leaves the mean of the last ones.

    A model that is averaged over its last checkpoints is usually better than the
    last. The states are kept in memory, `count` copies of the trainable weights.

    Args:
        count: Positive integer, states averaged; fewer where `fit` is shorter.
        every: Positive integer, updates between two of them.
        set_at_end: Whether the model has the mean when `fit` ends. Otherwise it is had
            by `average` alone.

    Attributes:
        average: List of float32 arrays, the mean so far, one for each trainable
            weight; None before the first state.

    Raises:
        ValueError: If `count` or `every` is not a positive integer.

    Example:

    >>> callback = AverageWeights(count=5, every=1000)

    Reference:
        Vaswani et al., "Attention Is All You Need", 2017, section 6.1,
        https://arxiv.org/abs/1706.03762
    """

    def __init__(self, count, every, set_at_end=True):
        super().__init__()
        for name, value in (("count", count), ("every", every)):
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"`{name}` must be a positive integer, received {value!r}.")
        self.every = every
        self.set_at_end = set_at_end
        self._kept: collections.deque = collections.deque(maxlen=count)
        self._step = 0

    @property
    def average(self):
        if not self._kept:
            return None
        return [
            (np.sum(states, axis=0, dtype=np.float64) / len(states)).astype(np.float32)
            for states in zip(*self._kept, strict=True)
        ]

    def on_train_batch_end(self, batch, logs=None):
        self._step += 1
        if self._step % self.every == 0:
            # On JAX `fit` holds the weights itself; to ask for the model puts them back into it.
            weights = self.model.trainable_weights
            self._kept.append([np.array(keras.ops.convert_to_numpy(w.value)) for w in weights])

    def on_train_end(self, logs=None):
        average = self.average
        if self.set_at_end and average is not None:
            for weight, mean in zip(self.model.trainable_weights, average, strict=True):
                weight.assign(mean)
