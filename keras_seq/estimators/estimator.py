"""Training, evaluation and export of a predictor in Python."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import keras

from keras_seq.analysis.history import History
from keras_seq.analysis.pages import Page
from keras_seq.analysis.reports.reporting import report, report_model
from keras_seq.estimators.examples import Columns, rows_of, write_rows
from keras_seq.evaluation import Evaluation, EvaluationFiles
from keras_seq.evaluation.evaluating import evaluate_model
from keras_seq.inference.run_predictor import RunPredictor
from keras_seq.preparation import Resume, find_run, open_or_prepare, resolve_settings
from keras_seq.process.devices import Devices
from keras_seq.process.threads import share_training_cores
from keras_seq.run import Run, check_new
from keras_seq.run.sharing import push
from keras_seq.settings import TASKS, SearchSettings
from keras_seq.storage import copy_tree
from keras_seq.text import InputError
from keras_seq.training import TrainingResult, train
from keras_seq.training.trainer import to_stderr

Notice = Callable[[str], None]
FileName = str | os.PathLike[str]

_EXAMPLES = "examples"


class Estimator(RunPredictor):
    """Base class of predictors that can be trained, evaluated, saved and exported."""

    model: Any
    _run: Run | None = None
    _delete_run: Callable[[], Any] | None = None

    @classmethod
    def fit(
        cls,
        examples: Any,
        *,
        valid: Any = None,
        columns: Columns = None,
        directory: FileName | None = None,
        preset: str | None = None,
        settings: Mapping[str, Any] | None = None,
        callbacks: Sequence[keras.callbacks.Callback] = (),
        resume: Resume = "auto",
        overwrite: bool = False,
        devices: Devices | None = None,
        notice: Notice | None = None,
    ) -> Self:
        """Trains a model on examples in memory or in files; returns it with its best weights.

        This is `keras-seq train` in Python: with the same examples and settings, the weights are
        the same. Line breaks within a text become spaces;
        texts of a language model or an autoencoder are split into lines.

        Args:
            examples: Rows, such as a list of `(source, target)`; a generator; a dict of columns; a
                table of pandas; a data set of Hugging Face; or the name of a file. A row
                has source and target (translation), text and label (classification), words and
                tags (tagging), a recording and its text or spans (speech, wake words), or it is a
                text (language models, autoencoders). A recording is a path, or
                `(samples, samples per second)`.
            valid: Examples for validation, of the same forms. By default a random sample of
                `examples` is held out.
            columns: The columns of a row, by name or by number from 0, in the order of a row; for
                translation, a third is the features of the source. By default the usual names.
            directory: The run directory. If training was interrupted, the same call resumes it.
                Without one, the run is temporary, and `save` keeps it.
            preset: A preset of the settings; by default one is chosen by the examples.
            settings: Settings by name, such as `{"training.max_minutes": 30, "seed": 2}`.
            callbacks: Callbacks of Keras. An epoch has as many updates as one pass over the
                training text; `on_test_end` receives the values of each validation.
            resume: See `keras_seq.train`.
            overwrite: Whether to delete an earlier run in the directory.
            devices: See `keras_seq.train`.
            notice: Called with each line for the user; by default printed to standard error.

        Raises:
            InputError: If examples are invalid, or the directory cannot be used.
            SettingsError: If a setting is unknown or out of bounds.
            TrainingError: If memory runs out, or gradients are no longer finite.

        Example:

        >>> translator = keras_seq.Translator.fit(  # doctest: +SKIP
        ...     [("A dog runs.", "Ein Hund rennt."), ...],
        ...     settings={"training.max_minutes": 10},
        ... )
        >>> translator(["A cat runs."])  # doctest: +SKIP
        ['Eine Katze rennt.']
        """
        share_training_cores()
        notice = notice or to_stderr
        path = Path(directory or tempfile.mkdtemp(prefix="keras-seq-"))
        with _folder_of_texts() as texts:
            overrides = {
                "task": cls.task,
                **(settings or {}),
                **cls._all_files(examples, valid, columns, texts),
            }
            tell = functools.partial(_tell, notice, texts)
            earlier = None if overwrite else find_run(path)
            resolved, counts = resolve_settings(
                preset=preset, overrides=overrides, notice=tell, earlier=earlier
            )
            run = open_or_prepare(
                resolved, path, resume=resume, overwrite=overwrite, notice=tell, counts=counts
            )
            train(run.settings, run, notice=tell, devices=devices, callbacks=callbacks)
        predictor = cls.load(path)
        if directory is None:
            predictor._delete_run = weakref.finalize(predictor, shutil.rmtree, path, True)
        return predictor

    @property
    def run(self) -> Run:
        """The run with the weights, settings and vocabularies of this model.

        Raises ValueError if the model was not loaded from a run.
        """
        if self._run is None:
            raise ValueError(f"this {type(self).__name__} was made of a model, without a run")
        return self._run

    @property
    def result(self) -> TrainingResult:
        """The result of the training. Raises ValueError if it has not ended."""
        from keras_seq.training.result import load_result

        result, _ = load_result(self.run)
        if result is None:
            raise ValueError(f"{self.run.path}: the training has not ended")
        return result

    @property
    def history(self) -> History:
        """The losses and metrics of the training."""
        return History.of_run(self.run)

    def plot_history(self) -> Any:
        """Draws `history`; returns a figure of matplotlib, which notebooks show."""
        return self.history.plot()

    def evaluate(
        self,
        examples: Any,
        *,
        columns: Columns = None,
        metrics: Sequence[str] = (),
        confidence: bool = True,
        **search: Any,
    ) -> Evaluation:
        """Evaluates the model on examples; see `keras_seq.evaluate` for the metrics of each task.

        Args:
            examples: Rows as for `fit`, or the name of a file.
            columns: The columns of a row, as for `fit`.
            metrics: Names of metrics; by default all of the task.
            confidence: Adds 95 % confidence intervals.
            **search: Search settings that replace those of the run, such as `beam_size=1`.

        Raises:
            InputError: If examples are invalid, or the task does not have a metric.
            ValueError: If there are no examples.
        """
        with self._rows(examples, columns) as rows:
            return evaluate_model(
                self.run,
                self.model,
                [source for source, _ in rows],
                [reference for _, reference in rows],
                metrics=metrics,
                confidence=confidence,
                **search,
            )

    def report(self, examples: Any = None, *, columns: Columns = None) -> Page:
        """Returns a page of curves, scores and worst lines, which a notebook shows.

        `examples` are rows as for `fit`, or the name of a file; by default the validation text. See
        `keras_seq.report`. Raises InputError if examples are invalid.
        """
        if examples is None:
            return report(self.run.path)
        with self._rows(examples, columns) as rows:
            sources, references = zip(*rows, strict=True)
            return report_model(self.run, self.model, sources, references)

    def save(self, directory: FileName) -> None:
        """Copies the run to a new directory, which `load` and all commands read.

        Raises InputError if the directory has files.
        """
        check_new(directory)
        copy = Path(directory)
        copy.mkdir(parents=True, exist_ok=True)
        copy_tree(self.run.path, copy)
        self._run = Run.open(copy)
        if self._delete_run is not None:
            self._delete_run()

    def push(self, address: str, **options: Any) -> str:
        """Uploads the model to the Hugging Face Hub; see `keras_seq.push` for the options."""
        return push(self.run.path, address, **options)

    def export(self, directory: FileName, **options: Any) -> Path:
        """Writes a SavedModel for TensorFlow Serving; see `keras_seq.export` for the options."""
        from keras_seq.serving.saved_model import export_saved_model

        return Path(export_saved_model(self.run, directory, **options))

    @contextlib.contextmanager
    def _rows(self, examples: Any, columns: Columns) -> Iterator[list[tuple[str, str]]]:
        """Yields pairs of input and reference."""
        # Recordings that are arrays are files in the folder as long as it exists.
        with _folder_of_texts() as folder:
            files = self._files(examples, "", columns, folder)
            file = TASKS[self.task or ""].file
            names = {file: files[f"data.{file}"], "columns": files.get("data.columns")}
            yield EvaluationFiles(**names).read(self.run)

    @classmethod
    def _all_files(
        cls, examples: Any, valid: Any, columns: Columns, folder: Path
    ) -> dict[str, Any]:
        """Returns the settings of the files of training and validation examples."""
        files = cls._files(examples, "", columns, folder)
        if valid is None:
            return files
        valid_files = cls._files(valid, "valid_", columns, folder)
        first, second = (one.get("data.columns") for one in (files, valid_files))
        if first != second:
            raise InputError(
                f"`examples` and `valid` have different columns ({first or 'a file'}; "
                f"{second or 'a file'}): give both in memory or both as files, alike"
            )
        return files | valid_files

    @classmethod
    def _files(cls, examples: Any, prefix: str, columns: Columns, folder: Path) -> dict[str, Any]:
        """Returns the settings of the files of examples; objects in memory are written first."""
        if examples is None:
            return {}
        task = TASKS[cls.task or ""]
        key = f"data.{prefix}{task.file}"
        if isinstance(examples, str | os.PathLike):
            named = {"data.columns": _column_names(task.roles, columns)} if columns else {}
            return {key: os.path.abspath(examples), **named}
        sounds = folder / f"{prefix}recordings"
        sounds.mkdir()
        path = folder / f"{prefix}{_EXAMPLES}{'.csv' if task.roles else '.txt'}"
        count = 0

        def counted() -> Any:
            nonlocal count
            for row in rows_of(examples, task.name, columns, sounds):
                count = max(count, len(row))
                yield row

        write_rows(path, counted())
        if task.roles is None:
            return {key: str(path)}
        return {key: str(path), "data.columns": _column_names(task.roles, range(count))}

    @classmethod
    def of_run(
        cls, run: Run, model: Any, search: SearchSettings | None = None, **options: Any
    ) -> Self:
        predictor = super().of_run(run, model, search, **options)
        predictor._run = run
        return predictor


def _column_names(roles: tuple[str, ...] | None, columns: Any) -> str | None:
    """Returns the value of `data.columns` for columns by name or by number from 0."""
    names = (*(roles or ()), "features")
    numbered = (one + 1 if isinstance(one, int) else one for one in columns)
    pairs = [f"{name}={one}" for name, one in zip(names, numbered, strict=False)]
    return ",".join(pairs) or None


@contextlib.contextmanager
def _folder_of_texts() -> Iterator[Path]:
    """A temporary folder, whose name does not occur in the messages of errors."""
    with tempfile.TemporaryDirectory(prefix="keras-seq-") as name:
        try:
            yield Path(name)
        except InputError as error:
            raise type(error)(_without(Path(name), str(error))) from None


def _tell(notice: Notice, folder: Path, line: str) -> None:
    """Passes a line on, unless it is about the format of a file that `fit` wrote."""
    if str(folder) not in line or "read as CSV" not in line:
        notice(_without(folder, line))


def _without(folder: Path, line: str) -> str:
    return line.replace(f"{folder}{os.sep}", "")
