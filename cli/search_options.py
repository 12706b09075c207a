"""The settings of the search as options of a command."""

from __future__ import annotations

import functools
import inspect
import typing
from collections.abc import Callable, Collection
from typing import Annotated, Any

import typer

# Written out, for reading them off the settings would make `--help` wait for what reads those.
OPTIONS: dict[str, tuple[Any, str]] = {
    "method": (str, "beam, or sampling: --n-best translations drawn at random."),
    "beam_size": (int, "Hypotheses kept at each step."),
    "n_best": (int, "Translations of a line."),
    "patience": (float, "A search is done once so many times the beam have ended."),
    "length_normalization": (str, "average, gnmt or none."),
    "alpha": (float, "Exponent of the length normalization."),
    "coverage_penalty": (float, "Factor of the penalty for what gets little attention."),
    "min_length": (int, "Shortest translation, in tokens."),
    "min_length_ratio": (float, "Shortest translation over source length."),
    "max_length": (int, "Longest translation, in tokens."),
    "max_length_ratio": (float, "Longest translation over source length."),
    "max_length_extra": (int, "Tokens added to the ratio's limit."),
    "no_repeat_ngram_size": (int, "No so many tokens in a row come twice."),
    "repetition_penalty": (float, "What logits of tokens that came before are divided by."),
    "forbidden": (list[str], "Word or phrase that never comes; may be given again."),
    "prefix": (str, "What every translation begins with."),
    "temperature": (float, "sampling: what log-probabilities are divided by."),
    "top_k": (int, "sampling: only so many likeliest tokens."),
    "top_p": (float, "sampling: only the likeliest tokens of so much probability."),
    "seed": (int, "sampling: another one draws others."),
    "batch_size": (int, "Sentences decoded at a time."),
}
_SHORT = {"beam_size": ("--beam-size", "--beam")}


def with_search_options(
    command: Callable[..., None], without: Collection[str] = ()
) -> Callable[..., None]:
    """Puts an option for each of `OPTIONS` in the place of the argument `search`.

    Args:
        command: Takes `search`, a dict of those options that were given.
        without: Names of options that it has not.
    """
    options = [name for name in OPTIONS if name not in without]
    signature = inspect.signature(command)
    hints = typing.get_type_hints(command, include_extras=True)
    parameters = []
    for name, parameter in signature.parameters.items():
        if name == "search":
            parameters += [_parameter(option) for option in options]
        else:
            parameters.append(parameter.replace(annotation=hints[name]))

    @functools.wraps(command)
    def with_options(**values: Any) -> None:
        # Typer makes an empty list of an option that may be given again and was not.
        given = {name: value for name in options if (value := values.pop(name)) not in (None, [])}
        command(**values, search=given)

    changed: Any = with_options
    changed.__signature__ = signature.replace(parameters=parameters)
    changed.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return with_options


def _parameter(name: str) -> inspect.Parameter:
    kind, said = OPTIONS[name]
    option = typer.Option(*_SHORT.get(name, ()), help=said, rich_help_panel="Search")
    return inspect.Parameter(
        name,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        default=None,
        annotation=Annotated[kind | None, option],
    )
