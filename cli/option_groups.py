"""Adds groups of options to commands."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def replace_argument(
    command: Callable[..., None],
    argument: str,
    options: Sequence[inspect.Parameter],
    collect: Callable[[Mapping[str, Any]], Any],
) -> Callable[..., None]:
    """Returns a command that has a group of options instead of one argument.

    Args:
        command: Function of the command, with the argument.
        argument: Name of the argument.
        options: The options as function parameters; see `option`.
        collect: Converts a dict of option values to the value of the argument.
    """
    signature = inspect.signature(command)
    hints = typing.get_type_hints(command, include_extras=True)
    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        if name == argument:
            parameters += options
        else:
            parameters.append(parameter.replace(annotation=hints[name]))

    @functools.wraps(command)
    def with_options(**values: Any) -> None:
        group = {option.name: values.pop(option.name) for option in options}
        command(**values, **{argument: collect(group)})

    wrapper: Any = with_options
    wrapper.__signature__ = signature.replace(parameters=parameters)
    wrapper.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_options


def add_option(
    command: Callable[..., None], added: inspect.Parameter, use: Callable[[Any], None]
) -> Callable[..., None]:
    """Returns a command with one more option, whose value `use` gets before the command runs."""
    signature = inspect.signature(command)
    hints = typing.get_type_hints(command, include_extras=True)

    @functools.wraps(command)
    def with_option(**values: Any) -> None:
        use(values.pop(added.name))
        command(**values)

    parameters = [
        parameter.replace(annotation=hints.get(name, parameter.annotation))
        for name, parameter in signature.parameters.items()
    ]
    wrapper: Any = with_option
    wrapper.__signature__ = signature.replace(parameters=[*parameters, added])
    wrapper.__annotations__ = {one.name: one.annotation for one in (*parameters, added)}
    return with_option


def option(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    """Returns a function parameter that defines a command option."""
    return inspect.Parameter(
        name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default, annotation=annotation
    )
