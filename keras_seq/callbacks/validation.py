"""Evaluates at regular updates, keeps the best, and stops early."""

import math

from keras_seq.callbacks.counting_callback import CountingCallback


class Validation(CountingCallback):
    """Evaluates every `every` updates and at the end, and stops early.

    Keras' `EarlyStopping` sees what `fit` computes at the end of an epoch; this
    one takes any function, such as the BLEU of decoded text, at any update.

    A score of decoded text often stays at one value for the first evaluations, such as 0, while
    the model already improves. If `loss` is given, the loss therefore decides until the
    score moves: as long as every value has equaled the first or `is_worst`, the evaluation
    with the lowest loss is the best, and each new lowest loss restarts the patience.

    Args:
        evaluate: Called with the number of updates done; returns a dict of
            numbers.
        every: Positive integer, updates between two evaluations.
        monitor: Key of that dict to judge by.
        patience: Evaluations without a better value after which `fit` is
            stopped; 0 never stops it.
        on_best: Optional function, called with the number of updates and the
            dict whenever the evaluation is the best so far.
        report: Optional function, called with the number of updates and the
            dict of every evaluation.
        initial_step: Updates done before this `fit`.
        mode: "max" where a larger value is better, "min" where a smaller one is.
        tie_break: Optional key of a number that decides between equal values; lower is better.
        loss: Optional key of a loss. It decides until the value moves, and between
            evaluations that are equal by `monitor` and `tie_break`; the latter does not
            restart the patience.
        is_worst: Optional function of a value, True if the value shows no skill, as a
            score of 0 does. Used with `loss`.

    Attributes:
        best: The value of the best evaluation so far, None before the first.
        best_step: The number of updates of that evaluation.
        without_better: Evaluations since the last better one.
        results: The dict of the last evaluation, None before it.
        state: A dict of the above for JSON; `restore` takes it.

    Raises:
        ValueError: If `every` is not a positive integer, `patience` is
            negative, or `mode` is neither of the two.

    Example:

    >>> callback = Validation(evaluate=lambda step: {"bleu": 0.0}, every=500, monitor="bleu")
    """

    def __init__(
        self,
        evaluate,
        every,
        monitor,
        patience=0,
        on_best=None,
        initial_step=0,
        report=None,
        mode="max",
        tie_break=None,
        loss=None,
        is_worst=None,
    ):
        super().__init__(initial_step)
        if not isinstance(every, int) or every < 1:
            raise ValueError(f"`every` must be a positive integer, received {every!r}.")
        if patience < 0:
            raise ValueError(f"`patience` must be 0 or more, received {patience!r}.")
        if mode not in ("max", "min"):
            raise ValueError(f'`mode` must be "max" or "min", received {mode!r}.')
        self.mode = mode
        self.evaluate = evaluate
        self.every = every
        self.monitor = monitor
        self.patience = patience
        self.on_best = on_best
        self.report = report
        self.tie_break = tie_break
        self.loss = loss
        self.is_worst = is_worst or (lambda value: False)
        self.results = None
        self.restore({})

    @property
    def state(self):
        return {
            "monitor": self.monitor,
            "best": self.best,
            "best_step": self.best_step,
            "best_tie": self._best_tie,
            "best_loss": self._best_loss,
            "first": self._first,
            "moved": self._moved,
            "without_better": self.without_better,
            "validated": self._validated,
        }

    def restore(self, state):
        """Takes over the `state` of an earlier `fit`; one of another monitor is not used.

        Args:
            state: The dict; an empty one begins anew.
        """
        if state.get("monitor", self.monitor) != self.monitor:
            # Values of two metrics cannot be compared, so the next evaluation is the first.
            state = {}
        self.best = state.get("best")
        self.best_step = state.get("best_step")
        self._best_tie = state.get("best_tie")
        self._best_loss = state.get("best_loss")
        self._first = state.get("first", self.best)
        self._moved = state.get("moved", self.best is not None and not self.is_worst(self.best))
        self.without_better = state.get("without_better", 0)
        self._validated = state.get("validated")

    @property
    def out_of_patience(self):
        """Whether nothing got better for too long."""
        return 0 < self.patience <= self.without_better

    def catch_up(self):
        """Evaluates if that was due at `initial_step`, before the next `fit`."""
        if self.step and self.step % self.every == 0 and self.step != self._validated:
            self._validate()

    def on_train_batch_end(self, batch, logs=None):
        super().on_train_batch_end(batch, logs)
        if self._due(self.every):
            self._validate()

    def on_train_end(self, logs=None):
        if self.step != self._validated:
            self._validate()

    def _validate(self):
        # On JAX `fit` holds the weights itself; to ask for the model puts them back into it.
        _ = self.model
        results = self.results = self.evaluate(self.step)
        # Not before: what is saved meanwhile has to do this evaluation again.
        self._validated = self.step
        if self.report:
            self.report(self.step, results)
        better, restarts = self._compared(results)
        self.without_better = 0 if restarts else self.without_better + 1
        if better:
            self.best, self.best_step = results[self.monitor], self.step
            self._best_tie = self._number(results, self.tie_break)
            self._best_loss = self._number(results, self.loss)
            if self.on_best:
                self.on_best(self.step, results)
        if self.out_of_patience:
            self.model.stop_training = True

    def _compared(self, results):
        """Whether an evaluation is the best so far, and whether it restarts the patience."""
        value = results[self.monitor]
        if math.isnan(value):
            # Not even the first NaN is the best.
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
        if self.best is None:
            return self._rank(value) > -math.inf, self._rank(value) > -math.inf
        rank, best = self._rank(value), self._rank(self.best)
        if rank != best:
            return rank > best, rank > best
        tie = self._number(results, self.tie_break)
        if tie is not None and self._best_tie is not None and tie != self._best_tie:
            return tie < self._best_tie, tie < self._best_tie
        return lower_loss, False

    def _rank(self, value):
        return value if self.mode == "max" else -value

    def _number(self, results, key):
        """A number of the results, None if there is none that can be compared and stored."""
        if key is None or not math.isfinite(results[key]):
            return None
        return float(results[key])
