"""The loop around `fit`: callbacks, checkpoints, and going on from one."""

from __future__ import annotations

import io
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import keras
import numpy as np

from keras_seq import backend
from keras_seq.callbacks import Checkpoint, NanGuard, Progress, StopAtLimit, Validation
from keras_seq.cluster import Cluster
from keras_seq.run import Run
from keras_seq.run.models import build_run_model, weight_arrays, weight_shapes
from keras_seq.settings import MONITORS, TASKS
from keras_seq.storage.checkpoints import NotFiniteError
from keras_seq.tasks.task import Task
from keras_seq.text import InputError
from keras_seq.training.averaging import averaged_weights
from keras_seq.training.batch_splitting import parts_by
from keras_seq.training.card import model_card
from keras_seq.training.errors import DivergedError, is_out_of_memory
from keras_seq.training.event_log import EventLog
from keras_seq.training.feed import (
    FitBatch,
    fit_batch,
    fit_batches,
    training_stream,
)
from keras_seq.training.fitting import run_fit
from keras_seq.training.freezing import freeze
from keras_seq.training.memory_probe import (
    largest_shapes,
    out_of_memory,
    probe_largest_batches,
    seconds_per_update,
)
from keras_seq.training.once_per_update import OncePerUpdate
from keras_seq.training.optimizer import compile_model
from keras_seq.training.precision import dtype_policy, resolve_precision
from keras_seq.training.progress import TrainingProgress
from keras_seq.training.result import TrainingResult
from keras_seq.training.rounding import rounded
from keras_seq.training.state import (
    restore_arrays,
    seed_arrays,
    training_arrays,
    training_shapes,
)
from keras_seq.training.stopping import SignalStop
from keras_seq.training.validator import Validator
from keras_seq.training.warm_start import initialize_weights

Notice = Callable[[str], None]


# Fewer are over soon.
_MANY_UPDATES = 200


class TrainingLoop:
    """The parts of one training and what passes between them.

    Args:
        run: Prepared, and locked by this process.
        notice: Called with each line for the user.
        stop: Entered; told when all is saved and when not.
        cluster: What it runs on, in whose scope this is made and used. All hosts do the
            same, and of what they see by themselves the first host's counts.

    Raises:
        InputError: Checkpoints that this training cannot go on from.
    """

    def __init__(
        self, run: Run, notice: Notice, stop: SignalStop, cluster: Cluster | None = None
    ) -> None:
        cluster = cluster or Cluster()
        resolve_precision(run, notice, cluster)
        self.cluster = cluster
        self.run = run
        self.stop = stop
        self.settings = run.settings
        self.notice = notice
        training = self.settings.training
        keras.utils.set_random_seed(self.settings.seed)
        self.task: Task = TASKS[self.settings.task]
        self.objective = self.task.objective(self.settings)
        self.stream = training_stream(run, cluster, self.objective.first_counted)
        # Before weights are made, for which the hosts of JAX compute together.
        self._check_hosts(self.stream.batches_per_epoch, *self._fingerprint())
        self.largest = largest_shapes(self.stream)
        self.model = build_run_model(run, dtype_policy(training.precision))
        freeze(self.model, training.freeze)
        # Of the same weights; what is trained, while `model` is what decodes.
        self.fitted = self.objective.model(self.model)
        compile_model(self.fitted, self.settings, self.objective.loss(self.model))
        self.begin = self._load()
        self.micro_batches = training.micro_batches
        self.seeds: dict[str, np.ndarray] = {}
        self.tokens = 0
        step, minutes = self.begin.step, self.begin.minutes
        max_steps = training.max_steps
        if training.max_epochs is not None:
            whole = -(-training.max_epochs * self.stream.batches_per_epoch // self.micro_batches)
            max_steps = whole if max_steps is None else min(max_steps, whole)
        self.progress = Progress(
            tokens=lambda: self.tokens,
            max_steps=max_steps,
            max_minutes=training.max_minutes,
            report=self._log_training,
            initial_step=step,
            initial_minutes=minutes,
            stream=io.StringIO() if cluster.follows else None,
        )
        self.limit = StopAtLimit(
            max_steps=max_steps,
            max_minutes=training.max_minutes,
            initial_step=step,
            initial_minutes=minutes,
        )
        self.checkpoint = Checkpoint(self._save, every=training.checkpoint_every, initial_step=step)
        self.events = EventLog(
            run.tensorboard_directory, initial_step=step, enabled=not cluster.follows
        )
        judged = self.begin.validation
        if judged and self.settings.task == "translate":
            # Checkpoints of the first version of the format do not name it.
            judged = {"monitor": "bleu", **judged}
        self.evaluation = self.task.evaluation(run, self.model, self.fitted, judged.get("monitor"))
        self.validator = Validator(run, self.fitted, self.evaluation, notice, self.events)
        self.validator.signature = self.begin.signature
        monitor = MONITORS[self.evaluation.monitor]
        self.validation = Validation(
            self._validate,
            every=training.validate_every,
            monitor=self.evaluation.monitor,
            mode=monitor.mode,
            patience=training.patience,
            on_best=lambda step, results: run.mark_best(step),
            initial_step=step,
            tie_break=self.evaluation.tie_break,
            loss=None if monitor.worst is None else "loss",
            is_worst=monitor.is_worst,
        )
        self.validation.set_model(self.fitted)
        self.validation.restore(judged)
        self.guard = NanGuard(
            limit=training.max_skipped, report=self._tell_skipped, on_limit=self._give_up
        )
        self.saved_step = step
        self.start = time.monotonic()

    def fit(self) -> TrainingResult:
        """Trains until a limit, or what is left until there.

        Raises:
            TrainingError: Memory ran out, or gradients or weights are not finite.
        """
        self.notice(
            f"model {self.settings.model.family}, {self.model.count_params():,} parameters, "
            f"{self.stream.batches_per_epoch:,} batches an epoch"
            + (f", {self.micro_batches:,} an update" if self.micro_batches > 1 else "")
        )
        known = self._known_result()
        if known is not None:
            more = "a higher limit" if self.limit.reached() else "a larger training.patience"
            self.notice(
                f"{self.run.path}: trained already, {known.steps:,} updates; {more} goes on"
            )
            return known
        if self.limit.reached():
            # Killed in its last validation.
            self._go_back_to_checkpoint()
            self.validation.on_train_end()
        else:
            if self.begin.step:
                self.notice(f"going on after step {self.begin.step:,}")
            self._go_back_to_checkpoint()
            try:
                self._train()
            except Exception as error:
                if is_out_of_memory(error):
                    # The batch is not known; memory ran short with one as large as this at most.
                    budget = self.settings.training.batch_tokens
                    raise out_of_memory(self.largest[0], budget) from None
                raise
            if self.validation.out_of_patience:
                count = self.validation.without_better
                self.notice(f"ended: nothing better in {count:,} validations (training.patience)")
        self.events.close()
        return self._finish()

    def probe_largest_batches(self) -> None:
        """Tries the largest batches, and takes back what they changed.

        Raises:
            OutOfMemoryError: One of them does not fit.
        """
        probe_largest_batches(
            self.cluster,
            self.fitted,
            self.largest,
            self.settings.training.batch_tokens,
            self.objective.fit_batch,
        )

    def try_updates(self, count: int) -> None:
        """Makes so many updates, of which nothing is kept but what they do to the model."""
        run_fit(
            self.cluster,
            self.fitted,
            self._batches,
            fit_batch(self.stream, 0, self.objective.fit_batch),
            parts_by(self.settings),
            steps_per_epoch=count * self.micro_batches,
        )

    def _say_duration(self) -> None:
        """Says beforehand about how long the training takes, if it is known where it ends."""
        updates = (self.limit.max_steps or 0) - self.limit.step
        if updates < _MANY_UPDATES or self.cluster.hosts > 1:
            return
        seconds = seconds_per_update(
            self.cluster,
            self.fitted,
            self.largest[0],
            self.objective.fit_batch,
            self.micro_batches,
        )
        minutes = seconds * updates / 60
        if minutes < 1:
            return
        patience = self.settings.training.patience
        sooner = "; it ends sooner when nothing gets better" if patience else ""
        self.notice(
            f"about {minutes:.0f} minutes for {updates:,} updates, validations not counted{sooner}"
        )

    def _train(self) -> None:
        self.probe_largest_batches()
        self._say_duration()
        self.validation.catch_up()
        if self.validation.out_of_patience:
            return
        # The validation comes last: what is the best must have been saved.
        callbacks = [
            self.progress,
            self.limit,
            self.guard,
            keras.callbacks.LambdaCallback(on_train_batch_end=self._after_update),
            self.checkpoint,
            self.validation,
        ]
        if self.micro_batches > 1:
            self._note_seeds()
            callbacks = [
                keras.callbacks.LambdaCallback(on_train_batch_end=self._within_update),
                OncePerUpdate(callbacks, self.micro_batches),
            ]
        updates = -(-self.stream.batches_per_epoch // self.micro_batches)
        run_fit(
            self.cluster,
            self.fitted,
            self._batches,
            fit_batch(self.stream, 0, self.objective.fit_batch),
            parts_by(self.settings),
            # What `fit` calls an epoch has whole updates; that of the stream need not.
            steps_per_epoch=updates * self.micro_batches,
            epochs=10**9,
            callbacks=callbacks,
        )

    def _load(self) -> TrainingProgress:
        """Where the last checkpoint left off, after its arrays were put into the model."""
        if not self.run.checkpoints.steps:
            self._check_hosts(0)
            initialize_weights(self.run, self.model, self.notice)
            return TrainingProgress()
        checkpoint = self.run.load_checkpoint(
            {"weights": weight_shapes(self.model), "training": training_shapes(self.fitted)}
        )
        try:
            standing = TrainingProgress.from_json(checkpoint.state)
        except ValueError as error:
            raise InputError(f"{self.run.path}: checkpoint {checkpoint.step}: {error}") from None
        if standing.backend != backend.name():
            raise InputError(
                f"{self.run.path}: was trained on {standing.backend}, whose batches are not those "
                f"of {backend.name()}: set KERAS_BACKEND={standing.backend} to go on"
            )
        self._check_hosts(standing.step)
        restore_arrays(self.fitted, checkpoint.tensors["training"])
        return standing

    def _go_back_to_checkpoint(self) -> None:
        """What the logs and the pointer say of later updates is said again."""
        self.run.remove_result()
        self.run.logs.truncate(self.begin.log_sizes)
        best_step = self.validation.best_step
        if best_step in self.run.checkpoints.steps:
            self.run.mark_best(best_step)

    def _known_result(self) -> TrainingResult | None:
        """The result of a training that is finished, None if there is something left to do."""
        stored = self.run.read_result() or {}
        patience = self.settings.training.patience
        try:
            result = TrainingResult(path=str(self.run.path), **stored["result"])
            # Values of another metric say nothing about whether this one still improves.
            same = result.metric == self.evaluation.monitor
            ended = self.limit.reached() or (same and 0 < patience <= stored["without_better"])
        except (KeyError, TypeError):
            return None
        return result if ended and result.steps == self.begin.step else None

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
        values = asdict(result)
        del values["path"]
        # Where a limit brought it about, a validation that was not due is no sign that the training
        # would have stopped: with a higher limit it goes on.
        due = self.limit.step % self.validation.every == 0
        without_better = self.validation.without_better if due else 0
        self.run.write_result({"result": values, "without_better": without_better})
        return result

    def _minutes(self) -> float:
        return self.begin.minutes + (time.monotonic() - self.start) / 60

    def _batches(self) -> Iterator[FitBatch]:
        for update in range(self.begin.step, 10**12):
            for batch in fit_batches(
                self.stream, update, self.micro_batches, self.objective.fit_batch
            ):
                yield batch
                # Counted when the next one is asked for; a batch or two ahead of the training.
                self.tokens += self.objective.tokens(batch)

    def _after_update(self, batch: int, logs: Any = None) -> None:
        self.stop.unsaved()
        self._agree_to_stop()
        if self.micro_batches > 1:
            self._note_seeds()
        if self.stop.pending is not None:
            self._save(self.limit.step)

    def _within_update(self, batch: int, logs: Any = None) -> None:
        # Who wants it stopped does not wait for the other batches; those done are done again.
        if (
            self.cluster.hosts == 1
            and self.stop.pending is not None
            and (batch + 1) % self.micro_batches
        ):
            self._save(self.limit.step)

    def _agree_to_stop(self) -> None:
        """A signal to one host is one to all, and the time is up for all at once."""
        if self.cluster.hosts > 1:
            wanted = [self.stop.came or 0, self.fitted.stop_training]
            pending, stopping = self.cluster.largest(wanted)
            self.stop.pending = int(pending) or None
            self.fitted.stop_training = bool(stopping)

    def _fingerprint(self) -> list[int]:
        """Numbers that tell runs apart, the precision that was chosen included."""
        parts = [self.run.settings.model_dump_json().encode()]
        parts += [vocabulary.to_bytes() for vocabulary in self.run.vocabularies]
        return [zlib.crc32(part) for part in parts]

    def _check_hosts(self, *numbers: int) -> None:
        """InputError where hosts see different files, which these numbers show."""
        if self.cluster.differs(numbers):
            raise InputError(
                f"{self.run.path}: hosts disagree about its checkpoint, its text, its model or the "
                "precision: give all of them the same directory and the same command"
            )

    def _note_seeds(self) -> None:
        """Seeds go on with every batch, and weights with every update: where both are one."""
        backend.sync_variables(self.fitted)
        self.seeds = seed_arrays(self.fitted)

    def _tell_skipped(self, count: int) -> None:
        self.progress.finish_line()
        self.notice(
            f"step {self.limit.step:,}: gradients are not finite; {count:,} updates skipped so far"
        )

    def _give_up(self, count: int) -> None:
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
        # Decoding takes long: whatever ends it shall not cost an update.
        if step != self.saved_step:
            self._save(step)
        results = self.validator(step, self._minutes())
        agreed = self.cluster.of_first([*results.values()])
        results = dict(zip(results, map(float, agreed), strict=True))
        self.events.write(step, results, group="validation/")
        self.progress.restart_clock()
        return results

    def _save(self, step: int) -> None:
        if step == self.saved_step:
            return
        backend.sync_variables(self.fitted)
        arrays = training_arrays(self.fitted) | self.seeds
        with averaged_weights(self.fitted):
            weights = weight_arrays(self.model)
        standing = TrainingProgress(
            step=step,
            minutes=self._minutes(),
            validation=self.validation.state,
            signature=self.validator.signature,
            backend=backend.name(),
            log_sizes=self.run.logs.sizes(),
        )
        tensors = {"weights": weights, "training": arrays}
        try:
            self.run.save_checkpoint(step, tensors, standing.to_json())
        except NotFiniteError as error:
            raise DivergedError(f"{error}: lower training.learning_rate") from None
        self.saved_step = step
        self.stop.saved()
