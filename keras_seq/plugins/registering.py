"""Decorators that add names of a plugin."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from keras_seq.plugins.registry import Family, Kind, Metric, PluginError, add

Section = TypeVar("Section", bound=type)
Function = TypeVar("Function", bound=Callable[..., Any])


def register_family(
    *tasks: str, training: Mapping[str, Any] | None = None
) -> Callable[[Section], Section]:
    """Decorates the settings of a family of models, and adds the family to tasks.

    The class is a subclass of `keras_seq.settings.ModelSection`. The default of its field `family`
    is the name of the family, and `model_class` is the class of the models. Select the family with
    `model.family=NAME`.

    Args:
        *tasks: The names of the tasks that can use the family, such as `"translate"`.
        training: Values that replace defaults of the settings section `training`, such as
            `{"learning_rate": 0.003}`. The preset NAME has these values.

    Raises:
        PluginError: If the name is taken, or the class has no field `family` with a default.
        TypeError: If there are no names of tasks.
    """
    if not tasks or not all(isinstance(task, str) for task in tasks):
        raise TypeError("register_family: expected names of tasks, as in register_family('tag')")

    def register(section: Section) -> Section:
        field = getattr(section, "model_fields", {}).get("family")
        if field is None or not isinstance(field.default, str):
            raise PluginError(
                f"{section.__name__}: expected a ModelSection with the field "
                "`family: Literal['NAME'] = 'NAME'`"
            )
        if getattr(section, "model_class", None) is None:
            raise PluginError(f"{section.__name__}: expected the class attribute model_class")
        add("family", field.default, Family(section, tasks, training or {}), section)
        return section

    return register


def register_task(task: Any) -> None:
    """Adds a task, an instance of a subclass of `keras_seq.tasks.Task`, under its `name`.

    Raises PluginError if the name is taken.
    """
    add("task", task.name, task, type(task))


def register_loss(name: str) -> Callable[[Function], Function]:
    """Decorates a loss function. Select it with `training.loss=NAME`.

    The function takes int32 ids of targets `(N,)` and float32 logits `(N, V)`, and returns the loss
    of each target, `(N,)`. The ids are tokens or labels. The losses of padding do not count.

    Raises PluginError if the name is taken.
    """
    return _register("loss", name)


def register_metric(
    name: str, *, label: str | None = None, lower_is_better: bool = False, digits: int = 2
) -> Callable[[Function], Function]:
    """Decorates a metric, for `training.monitor=NAME` and `keras-seq evaluate --metric NAME`.

    The function takes the answers of a model and the references, two lists of strings of equal
    length, and returns a number.

    Args:
        name: The name of the metric.
        label: How printed messages name the metric; by default `name`.
        lower_is_better: True if smaller values are better.
        digits: Number of printed decimals.

    Raises:
        PluginError: If the name is taken.
    """

    def register(function: Function) -> Function:
        add("metric", name, Metric(function, label or name, lower_is_better, digits), function)
        return function

    return register


def register_callback(name: str) -> Callable[[Function], Function]:
    """Decorates a function that makes a Keras callback. Select it with `training.callbacks=NAME`.

    The function takes the `Run` and is called once when a training starts or resumes.

    Raises PluginError if the name is taken.
    """
    return _register("callback", name)


def register_vocabulary(name: str) -> Callable[[Function], Function]:
    """Decorates a function that learns a vocabulary. Select it with `tokenizer.kind=NAME`.

    The function takes an iterator over the normalized lines of the training text, and the maximum
    number of entries in the vocabulary. It returns pairs of a piece and its score, which should be
    a log-probability; see `keras_seq.text.model_of_pieces`. 261 of the entries are special ids,
    bytes and the space, so the function returns at most `size - 261` pieces.

    Raises PluginError if the name is taken.
    """
    return _register("vocabulary", name)


def _register(kind: Kind, name: str) -> Callable[[Function], Function]:
    if not isinstance(name, str):
        raise TypeError(f"register_{kind}: expected a name, as in register_{kind}('my-{kind}')")

    def register(function: Function) -> Function:
        add(kind, name, function, function)
        return function

    return register
