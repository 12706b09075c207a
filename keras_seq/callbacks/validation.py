"""Evaluation at regular intervals, with early stopping."""

import math
import sys
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any

from keras_seq.callbacks.counting_callback import PeriodicCallback

# The kind of each value of a state, and whether it may be None.
_STATE = {
    "monitor": ("text", False),
    "best": ("a number", True),
    "best_step": ("a count", True),
    "best_tie": ("a number", True),
    "best_loss": ("a number", True),
    "first": ("a number", True),
    "moved": ("true or false", False),
    "without_better": ("a count", False),
    "validated": ("a count", True),
}


def check_state(state: Mapping[str, Any]) -> None:
    """Checks the values of a `Validation.state` that was stored; none needs to be there.

    Raises ValueError, with the name of the value, if one has the wrong kind.
    """
    for name, (kind, optional) in _STATE.items():
        if name not in state or (optional and state[name] is None):
            continue
        if not _is_of_kind(state[name], kind):
            received = repr(state[name])[:80]
            raise ValueError(f"{name}: received {received}, expected {kind}")


def _is_of_kind(value: Any, kind: str) -> bool:
    if kind == "text":
        return isinstance(value, str)
    if kind == "true or false":
        return isinstance(value, bool)
    if isinstance(value, bool):
        return False
    if kind == "a count":
        return isinstance(value, Integral) and 0 <= int(value) <= sys.maxsize
    if not isinstance(value, Real):
        return False
    size: Any = abs(value)
    # A perplexity may be infinite; NaN is never stored. JSON has integers beyond all floats.
    return bool(size == math.inf or size <= sys.float_info.max)


class Validation(PeriodicCallback):
    """Evaluates every N updates and at the end of `fit`, and stops early.

    `keras.callbacks.EarlyStopping` uses the metrics that `fit` computes at the end of an epoch.
    This callback calls any function, such as one that computes the BLEU score of decoded text, at
    any update.

    The score of decoded text often stays at one value, such as 0, for the first evaluations,
    although the model improves. With `loss`, the loss therefore decides until the score moves: as
    long as every value equals the first one or `is_worst`, the evaluation with the lowest loss is
    the best, and each new lowest loss restarts the patience.

    Args:
        evaluate: Function that takes the number of updates and returns a dict of numbers.
        every: Positive integer N, updates between two evaluations.
        monitor: Key of the value that decides which evaluation is the best.
        patience: Number of evaluations without improvement after which `fit` stops; 0 disables
            early stopping.
        on_best: Optional function, called with the number of updates and the dict of each new best
            evaluation.
        initial_step: Number of updates before this `fit`.
        report: Optional function, called with the number of updates and each dict of `evaluate`.
        mode: "max" if larger values are better, "min" if smaller ones are.
        tie_break: Optional key of a number that decides between equal values; lower is better.
        loss: Optional key of a loss. The loss decides until the value moves, and between
            evaluations that are equal by `monitor` and `tie_break`. In the second case, it does not
            restart the patience.
        is_worst: Optional function that takes a value and returns whether the value shows no skill,
            like a score of 0. Used with `loss`.

    Attributes:
        best: Value of the best evaluation, None before the first evaluation.
        best_step: Number of updates of the best evaluation.
        wait: Number of evaluations since the last improvement.
        results: Dict of the last evaluation, None before the first evaluation.
        state: Dict of these values for JSON; `restore` takes it.

    Raises:
        ValueError: If `every` is not a positive integer, `patience` is negative, or `mode` is
            neither "max" nor "min".

    Example:

    >>> callback = Validation(evaluate=lambda step: {"bleu": 0.0}, every=500, monitor="bleu")
    """

    def __init__(
        self,
        evaluate: Callable[[int], dict[str, float]],
        every: int,
        monitor: str,
        patience: int = 0,
        on_best: Callable[[int, dict[str, float]], Any] | None = None,
        initial_step: int = 0,
        report: Callable[[int, dict[str, float]], Any] | None = None,
        mode: str = "max",
        tie_break: str | None = None,
        loss: str | None = None,
        is_worst: Callable[[float], bool] | None = None,
    ) -> None:
        super().__init__(every, initial_step)
        if patience < 0:
            raise ValueError(f"`patience` must be 0 or more, received {patience!r}.")
        if mode not in ("max", "min"):
            raise ValueError(f'`mode` must be "max" or "min", received {mode!r}.')
        self.mode = mode
        self.evaluate = evaluate
        self.monitor = monitor
        self.patience = patience
        self.on_best = on_best
        self.report = report
        self.tie_break = tie_break
        self.loss = loss
        self.is_worst = is_worst or (lambda value: False)
        self.results: dict[str, float] | None = None
        self.restore({})

    @property
    def state(self) -> dict[str, Any]:
        return {
            "monitor": self.monitor,
            "best": self.best,
            "best_step": self.best_step,
            "best_tie": self._best_tie,
            "best_loss": self._best_loss,
            "first": self._first,
            "moved": self._moved,
            "without_better": self.wait,
            "validated": self._acted_at,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restores the `state` of an earlier `fit`.

        If `state` is empty or belongs to a different monitor, the evaluations start anew, because
        values of different metrics cannot be compared. Raises ValueError if a value has the wrong
        kind, and restores nothing then.
        """
        check_state(state)
        if state.get("monitor", self.monitor) != self.monitor:
            state = {}
        self.best = state.get("best")
        self.best_step = state.get("best_step")
        self._best_tie = state.get("best_tie")
        self._best_loss = state.get("best_loss")
        self._first = state.get("first", self.best)
        moved = self.best is not None and not self.is_worst(self.best)
        self._moved = bool(state.get("moved", moved))
        self.wait = state.get("without_better", 0)
        self._acted_at = state.get("validated")

    @property
    def out_of_patience(self) -> bool:
        """True if `patience` evaluations have passed without improvement."""
        return 0 < self.patience <= self.wait

    def catch_up(self) -> None:
        """Runs the evaluation at `initial_step`, if it was due and did not happen."""
        if self.step and self.step % self.every == 0:
            self.on_train_end()

    def _act(self) -> None:
        results = self.results = self.evaluate(self.step)
        # Set after the evaluation: a run resumed from a checkpoint saved during it evaluates again.
        self._acted_at = self.step
        if self.report:
            self.report(self.step, results)
        better, restarts = self._compare(results)
        self.wait = 0 if restarts else self.wait + 1
        if better:
            self.best, self.best_step = results[self.monitor], self.step
            self._best_tie = self._number(results, self.tie_break)
            self._best_loss = self._number(results, self.loss)
            if self.on_best:
                self.on_best(self.step, results)
        if self.out_of_patience:
            self.model.stop_training = True

    def _compare(self, results: dict[str, float]) -> tuple[bool, bool]:
        """Returns two bools: the evaluation is the best so far; it resets the patience counter."""
        value = results[self.monitor]
        if math.isnan(value):
            # NaN is never the best, even in the first evaluation.
            return False, False
        loss = self._number(results, self.loss)
        lower_loss = loss is not None and (self._best_loss is None or loss < self._best_loss)
        if self._first is None:
            self._first = value
        if self.loss is not None and not self._moved:
            if value == self._first or self.is_worst(value):
                better = self.best is None or lower_loss
                return better, better
            self._moved = True
        rank = self._rank(value)
        best = -math.inf if self.best is None else self._rank(self.best)
        if self.best is None or rank != best:
            return rank > best, rank > best
        tie = self._number(results, self.tie_break)
        if tie is not None and self._best_tie is not None and tie != self._best_tie:
            return tie < self._best_tie, tie < self._best_tie
        return lower_loss, False

    def _rank(self, value: float) -> float:
        return value if self.mode == "max" else -value

    def _number(self, results: dict[str, float], key: str | None) -> float | None:
        """Returns `results[key]`, or None without a key or for a value that is not finite."""
        if key is None or not math.isfinite(results[key]):
            return None
        return float(results[key])
