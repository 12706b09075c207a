"""What a task is: everything that differs from task to task, behind one interface."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from keras_seq.settings import Settings
from keras_seq.settings.tasks import TaskSpec
from keras_seq.text import Example, Tokenizer

if TYPE_CHECKING:
    from keras_seq.evaluation.values import MetricValue, TestSet
    from keras_seq.preparation.encoding import Encoder
    from keras_seq.run import Run
    from keras_seq.serving.exporter import Exporter
    from keras_seq.training.objective import Objective
    from keras_seq.training.validator import Evaluation

    TestResult = tuple[Mapping[str, MetricValue], tuple[str, ...] | None, int]


class Task(TaskSpec):
    """One thing that a run can learn.

    A task is one module with an instance `TASK`. The attributes say which settings it has; see
    `TaskSpec`. The methods make its parts for the drivers: preparation, the training loop, the
    validator and the exporter. Importing a task imports neither Keras nor TensorFlow: each method
    imports what it needs.
    """

    def encoder(
        self,
        settings: Settings,
        source: Tokenizer,
        target: Any,
        examples: Callable[[], Iterator[Example]],
    ) -> Encoder:
        """Returns the encoder of lines to ids.

        Args:
            settings: Of the run.
            source, target: Its vocabularies.
            examples: Reads the training text.
        """
        from keras_seq.preparation.encoding import PairEncoder

        data = settings.data
        return PairEncoder(source, target, data.max_source_length, data.max_target_length)

    def model(self, settings: Settings, source_size: int, target_size: int, dtype: Any) -> Any:
        """Returns a new model.

        Args:
            settings: Of the run.
            source_size, target_size: Numbers of ids of the vocabularies.
            dtype: Keras dtype policy; the global one if None.
        """
        make, arguments = family_of(settings)
        return make(target_size, dtype=dtype, **arguments)

    def objective(self, settings: Settings) -> Objective:
        """Returns the training model, its loss and its batches."""
        raise NotImplementedError

    def evaluation(
        self, run: Run, model: Any, train_model: Any, resumed_monitor: str | None = None
    ) -> Evaluation:
        """Returns the evaluation of a model on the validation text.

        Args:
            run: A prepared run.
            model: Its model.
            train_model: The compiled model, with the same weights.
            resumed_monitor: The monitor of the checkpoint that the training resumes from, or None.

        Raises:
            InputError: If the validation text has nothing that `training.monitor` could measure.
        """
        raise NotImplementedError

    def preview(self, run: Run, batch: Any, rows: int) -> list[str]:
        """Returns lines that describe a training batch and show its first rows.

        Args:
            run: A prepared run.
            batch: As `BatchStream` makes it.
            rows: Rows to show.
        """
        texts = run.target_tokenizer.decode(rows_of_ids(batch["target_output"][:rows]))
        count, steps = batch["target_output"].shape
        head = f"first batch        {count} rows, {steps} steps"
        return [head, *(f"  text             {text}" for text in texts)]

    def refused_metrics(self, run: Run, references: Sequence[str]) -> Mapping[str, str]:
        """Returns the metrics that a test set does not allow, with the reasons.

        Args:
            run: An opened run.
            references: The references of the test set.
        """
        return {}

    def evaluate(self, test: TestSet) -> TestResult:
        """Returns the metrics of a test set, the outputs, and the number of cut examples."""
        raise NotImplementedError

    def exporter(self, run: Run, settings: Settings) -> Exporter:
        """Returns the parts of a SavedModel.

        Args:
            run: Opened, with weights.
            settings: Its settings, or those with another search.
        """
        raise NotImplementedError


def rows_of_ids(rows: Any) -> list[list[int]]:
    """Rows of an array as lists of integers."""
    return [[int(token) for token in row] for row in rows]


def family_of(settings: Settings) -> tuple[Any, dict[str, Any]]:
    """Returns the class of the model and its keyword arguments."""
    module, _, name = settings.model.model_class.partition(":")
    arguments = settings.model.model_dump(exclude={"family", "members"})
    return getattr(importlib.import_module(module), name), arguments
