"""The interface of tasks, and code that tasks share."""

from __future__ import annotations

import importlib
import inspect
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from keras_seq.settings import Settings
from keras_seq.settings.tasks import TaskSpec
from keras_seq.text import Example, Tokenizer

if TYPE_CHECKING:
    from keras_seq.evaluation.values import Baseline, MetricValue, TestSet
    from keras_seq.preparation.encoding import Encoder
    from keras_seq.run import Run
    from keras_seq.serving.exporter import Exporter
    from keras_seq.training.objective import Objective
    from keras_seq.training.validator import Evaluation

    TestResult = tuple[Mapping[str, MetricValue], tuple[str, ...] | None, int]

Read = Callable[[], Iterator[Example]]


class Task(TaskSpec):
    """A learning task, such as translation or classification.

    A task is one module with an instance `TASK`. Its attributes describe its settings; see
    `TaskSpec`. Its methods make the parts that preparation, training, validation and export use.
    Each method imports what it needs, so importing a task imports neither Keras nor TensorFlow.
    """

    def complete(self, settings: Settings) -> Settings:
        """Returns settings with the values that the training files decide."""
        return settings

    def max_source_length(self, settings: Settings) -> int:
        """Returns the largest number of ids of a source; longer ones are dropped."""
        data = settings.data
        return data.max_target_length if self.autoencoding else data.max_source_length

    def max_target_length(self, settings: Settings) -> int:
        """Returns the largest number of ids of a target; longer ones are dropped."""
        return settings.data.max_target_length

    def encoder(self, settings: Settings, source: Tokenizer, target: Any, read: Read) -> Encoder:
        """Returns the encoder of lines to ids. `read` reads the training text."""
        from keras_seq.preparation.encoding import PairEncoder

        data = settings.data
        return PairEncoder(source, target, data.max_source_length, data.max_target_length)

    def model(self, settings: Settings, source_size: int, target_size: int, dtype: Any) -> Any:
        """Returns a new model for vocabularies of these sizes, with a Keras dtype policy."""
        return make_model(settings, target_size, dtype=dtype)

    def objective(self, settings: Settings) -> Objective:
        """Returns the training model, its loss and its batches."""
        raise NotImplementedError

    def evaluation(self, run: Run, model: Any, train_model: Any, resumed: str | None) -> Evaluation:
        """Returns the evaluation of a model on the validation text.

        `train_model` is the compiled model, with the same weights. `resumed` is the monitor of the
        checkpoint that the training resumes from. Raises InputError if `training.monitor` cannot be
        computed from the validation text.
        """
        raise NotImplementedError

    def preview(self, run: Run, batch: Any, rows: int) -> list[str]:
        """Returns lines that describe a batch of `BatchStream` and show its first rows."""
        texts = run.target_tokenizer.decode(rows_of_ids(batch["target_output"][:rows]))
        count, steps = batch["target_output"].shape
        head = f"first batch        {count} rows, {steps} steps"
        return [head, *(f"  text             {text}" for text in texts)]

    def refused_metrics(self, run: Run, references: Sequence[str]) -> Mapping[str, str]:
        """Returns the metrics that cannot be computed from these references, with the reasons."""
        return {}

    def evaluate(self, test: TestSet) -> TestResult:
        """Returns the metrics of a test set, the outputs, and the number of truncated examples."""
        raise NotImplementedError

    def baseline(self, test: TestSet) -> Baseline | None:
        """Returns the metrics of answers that need no model, for comparison; None without any."""
        return None

    def exporter(self, run: Run, settings: Settings) -> Exporter:
        """Returns the exporter of a run. The search settings may differ from those of the run."""
        raise NotImplementedError


class PlainEvaluation:
    """Base class of evaluations that measure one metric; see `Evaluation`."""

    tie_break: str | None = None
    reason = ""
    notices: Sequence[str] = ()

    def __init__(self, run: Run, default_monitor: str) -> None:
        monitor = run.settings.training.monitor
        self.monitor: str = default_monitor if monitor == "auto" else monitor


def rows_of_ids(rows: Any) -> list[list[int]]:
    """Rows of an array as lists of integers."""
    return [[int(token) for token in row] for row in rows]


def make_model(settings: Settings, *sizes: int, **options: Any) -> Any:
    """Makes a new model. A separate encoder gets the first of the vocabulary `sizes`.

    Options: `dtype`, and further keyword arguments of the model.
    """
    section = settings.model
    first, *others = sizes
    if section.encoder_class is not None:
        make_encoder = _load(section.encoder_class)
        arguments = _seed(make_encoder) | section.encoder_arguments()
        first = make_encoder(first, dtype=options["dtype"], **arguments)
    make = _load(section.model_class)
    return make(first, *others, **(_seed(make) | section.arguments()), **options)


def _seed(make: Any) -> dict[str, int]:
    """Returns a seed for the layers of a model on torch, if its constructor takes one.

    Without a seed, Keras draws the masks of dropout there from torch's global random numbers, whose
    state is not in a checkpoint. The seed is drawn as Keras draws those of layers.
    """
    from keras_seq import backend

    if backend.name() != "torch" or "seed" not in inspect.signature(make).parameters:
        return {}
    return {"seed": random.randrange(2**31)}


def _load(name: Any) -> Any:
    if not isinstance(name, str):
        return name
    module, _, attribute = name.partition(":")
    return getattr(importlib.import_module(module), attribute)
