"""The training loop: callbacks around `fit`, checkpoints, validation and limits."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Sequence
from typing import Any

import keras

from keras_seq import backend
from keras_seq.callbacks import Checkpoint, NanGuard, Progress, StopAtLimit, Validation
from keras_seq.cluster import Cluster
from keras_seq.process.memory import is_out_of_memory
from keras_seq.run import Run
from keras_seq.settings import MONITORS
from keras_seq.training.checkpointing import Checkpointer, TrainingProgress
from keras_seq.training.errors import DivergedError
from keras_seq.training.event_log import EventLog
from keras_seq.training.feed import FitBatch
from keras_seq.training.once_per_update import OncePerUpdate
from keras_seq.training.result import TrainingResult, load_result, model_card, store_result
from keras_seq.training.setup import Notice, TrainingSetup
from keras_seq.training.stopping import SignalStop
from keras_seq.training.validator import Validator, rounded

# With fewer updates, the duration of a training is not announced.
_MIN_ANNOUNCED_UPDATES = 200


class TrainingLoop:
    """Trains a run from its latest checkpoint up to a limit.

    This process has locked the run. `stop` is the entered handler of signals; the loop marks each
    update and each save. The loop is created and used in the scope of the cluster. All hosts run
    the same loop; where their measurements differ, those of the first host count.
    """

    def __init__(
        self,
        run: Run,
        notice: Notice,
        stop: SignalStop,
        cluster: Cluster | None = None,
        callbacks: Sequence[keras.callbacks.Callback] = (),
    ) -> None:
        self.run = run
        self.notice = notice
        self.stop = stop
        self.callbacks = list(callbacks)
        self.cluster = cluster or Cluster()
        self.setup = TrainingSetup(run, notice, self.cluster)
        self.settings = run.settings
        self.model = self.setup.model
        self.train_model = self.setup.train_model
        self.micro_batches = self.setup.micro_batches
        self.checkpointer = Checkpointer(self.setup, stop)
        self.initial = self.checkpointer.restore(notice)
        self.tokens = 0
        self._make_callbacks()
        self._make_validation()
        self._start = time.monotonic()

    def _make_callbacks(self) -> None:
        training = self.settings.training
        initial: dict[str, Any] = {"initial_step": self.initial.step}
        limits: dict[str, Any] = {
            "max_steps": self.setup.max_steps,
            "max_minutes": training.max_minutes,
            "initial_minutes": self.initial.minutes,
        }
        self.limit = StopAtLimit(**limits, **initial)
        self.progress = Progress(
            tokens=lambda: self.tokens,
            report=self._log_training,
            stream=None if self.cluster.is_chief else io.StringIO(),
            **limits,
            **initial,
        )
        self.checkpoint = Checkpoint(self._save, every=training.checkpoint_every, **initial)
        self.guard = NanGuard(training.max_skipped, self._report_skipped, on_limit=self._diverge)
        directory = self.run.tensorboard_directory
        self.events = EventLog(directory, enabled=self.cluster.is_chief, **initial)

    def _make_validation(self) -> None:
        state = self.initial.validation
        if state and self.settings.task == "translate":
            # The first version of the format did not store the monitor.
            state = {"monitor": "bleu", **state}
        resumed = state.get("monitor")
        evaluation = self.setup.task.evaluation(self.run, self.model, self.train_model, resumed)
        self.evaluation = evaluation
        self.validator = Validator(self.run, self.train_model, evaluation, self.notice, self.events)
        self.validator.signature = self.initial.signature
        monitor = MONITORS[evaluation.monitor]
        self.validation = Validation(
            self._validate,
            every=self.settings.training.validate_every,
            monitor=evaluation.monitor,
            mode=monitor.mode,
            patience=self.settings.training.patience,
            on_best=lambda step, results: self.run.mark_best(step),
            initial_step=self.initial.step,
            tie_break=evaluation.tie_break,
            loss=None if monitor.worst is None else "loss",
            is_worst=monitor.is_worst,
        )
        self.validation.set_model(self.train_model)
        self.validation.restore(state)
        # They may see a validation before `fit` begins.
        for callback in self.callbacks:
            callback.set_model(self.train_model)

    def fit(self) -> TrainingResult:
        """Trains until a limit is reached.

        Raises TrainingError if memory runs out, or gradients or weights are not finite.
        """
        stream = self.setup.stream
        per_update = f", {self.micro_batches:,} an update" if self.micro_batches > 1 else ""
        self.notice(
            f"model {self.settings.model.family}, {self.model.count_params():,} parameters, "
            f"{stream.batches_per_epoch:,} batches an epoch{per_update}"
        )
        known = self._known_result()
        if known is not None:
            change = "a higher limit" if self.limit.reached() else "a larger training.patience"
            trained = f"trained already, {known.steps:,} updates"
            self.notice(f"{self.run.path}: {trained}; resume with {change}")
            return known
        if self.initial.step and not self.limit.reached():
            self.notice(f"resuming after step {self.initial.step:,}")
        self._rewind_logs()
        if self.limit.reached():
            # The earlier process was killed during its last validation. Repeat the validation.
            self.validation.on_train_end()
            self._end_callbacks()
        else:
            self._train()
        self.events.close()
        return self._finish()

    def _train(self) -> None:
        try:
            self._fit()
        except Exception as error:
            if is_out_of_memory(error):
                # The failing batch is unknown. No batch is larger than this one.
                raise self.setup.out_of_memory(self.setup.largest[0]) from None
            raise
        if self.validation.out_of_patience:
            wait = f"{self.validation.wait:,} validations"
            self.notice(f"stopped early: no improvement in {wait} (training.patience)")

    def _fit(self) -> None:
        self.setup.require_space()
        self.setup.probe_largest_batches()
        self._announce_duration()
        self.validation.catch_up()
        if self.validation.out_of_patience:
            self._end_callbacks()
            return
        # The validation runs after the checkpoint, because it marks a saved checkpoint as best.
        callbacks = [
            self.progress,
            self.limit,
            self.guard,
            keras.callbacks.LambdaCallback(on_train_batch_end=self._after_update),
            self.checkpoint,
            # The last validation comes before the end of the logs in `self.callbacks`.
            keras.callbacks.LambdaCallback(on_train_end=self.validation.on_train_end),
            # Before the validation, so that they know the update that it belongs to.
            *self.callbacks,
            self.validation,
        ]
        if self.micro_batches > 1:
            self.checkpointer.record_seeds()
            within = keras.callbacks.LambdaCallback(on_train_batch_end=self._within_update)
            callbacks = [within, OncePerUpdate(callbacks, self.micro_batches)]
        updates = self.setup.updates_per_epoch
        self.setup.fit(self._batches, updates, epochs=10**9, callbacks=callbacks)

    def _end_callbacks(self) -> None:
        """Lets the callbacks write a validation without updates, for which `fit` does not run."""
        for callback in self.callbacks:
            callback.on_train_begin()
            callback.on_train_end()

    def _announce_duration(self) -> None:
        updates = (self.limit.max_steps or 0) - self.limit.step
        if updates < _MIN_ANNOUNCED_UPDATES or self.cluster.hosts > 1:
            return
        minutes = self.setup.seconds_per_update() * updates / 60
        if minutes >= 1:
            sooner = "; early stopping may end it sooner" if self.validation.patience else ""
            duration = f"about {minutes:.0f} minutes for {updates:,} updates"
            self.notice(f"{duration} and validation time{sooner}")

    def _batches(self) -> Iterator[FitBatch]:
        for batch in self.setup.batches(self.initial.step):
            yield batch
            # Runs when `fit` requests the next batch, one or two batches ahead of the training.
            self.tokens += self.setup.objective.tokens(batch)

    def _rewind_logs(self) -> None:
        """Removes what was logged after the checkpoint that the training resumes from."""
        self.run.remove_result()
        self.run.logs.truncate(self.initial.log_sizes)
        best_step = self.validation.best_step
        if best_step in self.run.checkpoints.steps:
            self.run.mark_best(best_step)

    def _known_result(self) -> TrainingResult | None:
        """The stored result if the training is finished, otherwise None."""
        result, wait = load_result(self.run)
        if result is None or result.steps != self.initial.step:
            return None
        # Ignore earlier early stopping if it used a different monitor: the new one may still
        # improve.
        same_metric = result.metric == self.evaluation.monitor
        stopped_early = same_metric and 0 < self.validation.patience <= wait
        return result if self.limit.reached() or stopped_early else None

    def _finish(self) -> TrainingResult:
        result = TrainingResult(
            path=str(self.run.path),
            steps=self.limit.step,
            minutes=self._minutes(),
            metric=self.evaluation.monitor,
            best=float(self.validation.best or 0.0),
            best_step=int(self.validation.best_step or 0),
            signature=self.validator.signature,
            reason=self.evaluation.reason,
        )
        card = model_card(self.settings, result, self.model.count_params(), self.run.start_step)
        self.run.write_card(card)
        # A limit can end training with a validation that is not due. This validation must not count
        # for early stopping when the training resumes with a higher limit.
        is_due = self.limit.step % self.validation.every == 0
        store_result(self.run, result, self.validation.wait if is_due else 0)
        return result

    def _minutes(self) -> float:
        return self.initial.minutes + (time.monotonic() - self._start) / 60

    def _after_update(self, batch: int, logs: Any = None) -> None:
        self.stop.mark_dirty()
        self._agree_to_stop()
        if self.micro_batches > 1:
            self.checkpointer.record_seeds()
        if self.stop.agreed is not None or self.limit.step in self.setup.cycle_ends:
            self._save(self.limit.step)

    def _within_update(self, batch: int, logs: Any = None) -> None:
        # On a stop request, the update is not completed. Its batches are repeated on resume.
        is_last = (batch + 1) % self.micro_batches == 0
        if self.cluster.hosts == 1 and self.stop.agreed is not None and not is_last:
            self._save(self.limit.step)

    def _agree_to_stop(self) -> None:
        """Makes all hosts stop at the same update."""
        if self.cluster.hosts > 1:
            requests = [self.stop.received or 0, self.train_model.stop_training]
            agreed, stop_training = self.cluster.largest(requests)
            self.stop.agreed = int(agreed) or None
            self.train_model.stop_training = bool(stop_training)

    def _report_skipped(self, count: int) -> None:
        self.progress.finish_line()
        step = f"step {self.limit.step:,}"
        self.notice(f"{step}: gradients are not finite; {count:,} updates skipped so far")

    def _diverge(self, count: int) -> None:
        saved = self.run.checkpoints.latest_step
        raise DivergedError(
            f"{self.run.path}: gradients are not finite, {count:,} updates in a row were skipped "
            f"(training.max_skipped): lower training.learning_rate or training.clip_norm; "
            + ("nothing was saved" if saved is None else f"step {saved:,} is saved")
        )

    def _log_training(self, numbers: dict[str, float]) -> None:
        self.run.logs.append_metrics({"kind": "training", **rounded(numbers)})
        step = int(numbers.pop("step"))
        self.events.write(step, numbers, group="training/")

    def _validate(self, step: int) -> dict[str, float]:
        self.progress.finish_line()
        # Saved before validating, so that an interruption loses no update.
        self._save(step)
        results = self.validator(step, self._minutes())
        agreed = self.cluster.of_first([*results.values()])
        results = dict(zip(results, map(float, agreed), strict=True))
        self.events.write(step, results, group="validation/")
        for callback in self.callbacks:
            callback.on_test_end(dict(results))
        self.progress.restart_clock()
        return results

    def _save(self, step: int) -> None:
        if step in self.setup.cycle_ends:
            self.run.make_permanent(step)
        progress = TrainingProgress(
            step=step,
            minutes=self._minutes(),
            validation=self.validation.state,
            signature=self.validator.signature,
            backend=backend.name(),
            log_sizes=self.run.logs.sizes(),
        )
        self.checkpointer.save(progress)
