"""Trains the model of a run: the loop around `fit`."""

from __future__ import annotations

import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import keras
import numpy as np

from keras_seq import backend
from keras_seq.data import TokenCorpus, sequential_batches
from keras_seq.modelling import build_run_model, weight_arrays
from keras_seq.preparation import prepare_run
from keras_seq.run import Run
from keras_seq.scoring import bleu
from keras_seq.settings import Settings
from keras_seq.training.averaging import averaged_weights
from keras_seq.training.callbacks import Checkpoint, Progress, StopAtLimit, Validation
from keras_seq.training.card import model_card
from keras_seq.training.evaluation import make_evaluation
from keras_seq.training.feed import FitBatch, batch_shapes, fit_batch, training_stream
from keras_seq.training.optimizer import compile_model
from keras_seq.training.scalar_log import ScalarLog
from keras_seq.translator import Translator

Notice = Callable[[str], None]


@dataclass(frozen=True)
class TrainingResult:
    """What a training came to.

    Attributes:
        path: The run directory.
        steps: Updates made.
        minutes: Wall time.
        best_bleu: BLEU of the best validation.
        best_step: The update it was reached at.
        signature: sacreBLEU's signature of that BLEU.
    """

    path: str
    steps: int
    minutes: float
    best_bleu: float
    best_step: int
    signature: str


def train(
    settings: Settings,
    directory: str | os.PathLike[str] | Run,
    *,
    overwrite: bool = False,
    notice: Notice | None = None,
) -> TrainingResult:
    """Trains a model from text files, and leaves it in a run directory.

    Args:
        settings: With the training files in `settings.data`; see `load_settings`.
        directory: A new or empty directory, or a run that `prepare_run` made.
        overwrite: Whether an earlier run in the directory may be deleted.
        notice: Called with a line for each thing done; by default it is
            printed on standard error.

    Returns:
        What the training came to. The model is in the directory;
        `Translator.load(directory)` uses it.

    Raises:
        InputError: Wrong files, or a directory that cannot be used.

    Example:

    >>> import keras_seq
    >>> settings = keras_seq.load_settings(  # doctest: +SKIP
    ...     preset="transformer-tiny",
    ...     overrides={"data.pairs": "pairs.tsv", "training.max_minutes": 30},
    ... )
    >>> keras_seq.train(settings, "runs/mine")  # doctest: +SKIP
    """
    notice = notice or _to_stderr
    if isinstance(directory, Run):
        run = directory
    else:
        run = prepare_run(settings, directory, overwrite=overwrite, notice=notice)
    return _Training(run, notice).fit()


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


class _Training:
    """The parts of one training and what passes between them."""

    def __init__(self, run: Run, notice: Notice) -> None:
        self.run = run
        self.settings = run.settings
        self.notice = notice
        keras.utils.set_random_seed(self.settings.seed)
        training = self.settings.training
        self.stream = training_stream(run)
        valid = TokenCorpus.open(run.valid_directory)
        self.valid_batches = lambda: sequential_batches(
            valid, batch_tokens=training.batch_tokens, shapes=batch_shapes()
        )
        self.model = build_run_model(run)
        compile_model(self.model, self.settings)
        self.evaluate = make_evaluation(self.model)
        search = self.settings.search.model_copy(
            update={"beam_size": training.validation_beam_size, "n_best": 1, "batch_size": 64}
        )
        self.translator = Translator(
            self.model,
            run.source_tokenizer,
            run.target_tokenizer,
            search,
            self.settings.data.max_source_length,
        )
        self.scalars = ScalarLog(run.tensorboard_directory)
        self.tokens = 0
        self.saved: set[int] = set()
        self.signature = ""

    def fit(self) -> TrainingResult:
        training = self.settings.training
        start = self.start = time.monotonic()
        max_steps = training.max_steps
        if training.max_epochs is not None:
            whole = training.max_epochs * self.stream.batches_per_epoch
            max_steps = whole if max_steps is None else min(max_steps, whole)
        self.notice(
            f"model {self.settings.model.family}, {self.model.count_params():,} parameters, "
            f"{self.stream.batches_per_epoch:,} batches an epoch"
        )
        self.progress = Progress(
            tokens=lambda: self.tokens,
            max_steps=max_steps,
            max_minutes=training.max_minutes,
            report=self._log_training,
        )
        limit = StopAtLimit(max_steps=max_steps, max_minutes=training.max_minutes)
        validation = Validation(
            self._validate,
            every=training.validate_every,
            monitor="bleu",
            patience=training.patience,
            on_best=self._mark_best,
        )
        # The validation comes last: what is the best must have been saved.
        checkpoint = Checkpoint(self._save, every=training.checkpoint_every)
        self.model.fit(
            backend.batch_feed(self._batches, fit_batch(self.stream, 0)),
            steps_per_epoch=self.stream.batches_per_epoch,
            epochs=10**9,
            verbose=0,
            shuffle=False,
            callbacks=[self.progress, limit, checkpoint, validation],
        )
        self.scalars.close()
        minutes = (time.monotonic() - start) / 60
        result = TrainingResult(
            path=str(self.run.path),
            steps=limit.step,
            minutes=minutes,
            best_bleu=float(validation.best or 0.0),
            best_step=int(validation.best_step or 0),
            signature=self.signature,
        )
        self.run.write_card(model_card(self.settings, result, self.model.count_params()))
        return result

    def _log_training(self, numbers: dict[str, float]) -> None:
        self.run.log_metrics({"kind": "training", **_rounded(numbers)})
        step = int(numbers["step"])
        self.scalars.write(
            step, {f"training/{key}": value for key, value in numbers.items() if key != "step"}
        )

    def _batches(self) -> Iterator[FitBatch]:
        for k in range(10**12):
            inputs, targets = fit_batch(self.stream, k)
            yield inputs, targets
            # Counted when the next one is asked for; a batch or two ahead of the training.
            self.tokens += int(np.count_nonzero(targets))

    def _validate(self, step: int) -> dict[str, float]:
        self.progress.finish_line()
        backend.sync_variables(self.model)
        sources, references = self.run.valid_lines()
        with averaged_weights(self.model):
            results = self.evaluate(self.valid_batches())
            hypotheses = self.translator(sources)
        score = bleu(hypotheses, [references])
        self.signature = score.signature
        results["bleu"] = score.value
        minutes = (time.monotonic() - self.start) / 60
        self.notice(
            f"validation at step {step:,}, {minutes:.1f} min: loss {results['loss']:.3f}, "
            f"perplexity {results['perplexity']:.2f}, token accuracy {results['accuracy']:.3f}, "
            f"BLEU = {score.value:.2f} {score.signature}"
        )
        samples = _samples(
            step, sources, references, hypotheses, self.settings.training.sample_count
        )
        for line in samples:
            self.notice(line)
        self.run.append_samples("\n".join(samples))
        self.run.log_metrics(
            {
                "kind": "validation",
                "step": step,
                **_rounded({"minutes": minutes, **results}),
                "signature": score.signature,
            }
        )
        self.scalars.write(step, {f"validation/{key}": value for key, value in results.items()})
        self.progress.restart_clock()
        return results

    def _mark_best(self, step: int, results: dict[str, float]) -> None:
        if step not in self.saved:
            self._save(step)
        self.run.mark_best(step)

    def _save(self, step: int) -> None:
        backend.sync_variables(self.model)
        raw = weight_arrays(self.model)
        with averaged_weights(self.model):
            weights = weight_arrays(self.model)
        optimizer = {
            f"optimizer/{i}/{variable.path}": keras.ops.convert_to_numpy(variable.value)
            for i, variable in enumerate(self.model.optimizer.variables)
        }
        names = {id(weight) for weight in self.model.weights}
        seeds = {
            f"seed/{i}": keras.ops.convert_to_numpy(variable.value)
            for i, variable in enumerate(v for v in self.model.variables if id(v) not in names)
        }
        self.run.save_checkpoint(
            step,
            {
                "weights": weights,
                "training": {**{f"weight/{n}": a for n, a in raw.items()}, **optimizer, **seeds},
            },
            {"step": step, "batch": step, "seed": self.settings.seed},
        )
        self.saved.add(step)


def _rounded(numbers: dict[str, float]) -> dict[str, float | None]:
    """Numbers for JSON, which has no infinity: null stands for what is not finite."""

    def rounded(value: float) -> float | None:
        if isinstance(value, int):
            return value
        return float(f"{value:.6g}") if math.isfinite(value) else None

    return {key: rounded(value) for key, value in numbers.items()}


def _samples(
    step: int, sources: list[str], references: list[str], hypotheses: list[str], count: int
) -> list[str]:
    """The same few lines at every validation, spread over the set."""
    lines = []
    for i in range(0, len(sources), max(1, -(-len(sources) // max(count, 1))))[:count]:
        lines += [
            f"  step {step:,}, line {i + 1}",
            f"    source    {sources[i]}",
            f"    reference {references[i]}",
            f"    model     {hypotheses[i]}",
        ]
    return lines
