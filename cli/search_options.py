"""Search options, for all commands that decode."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from dataclasses import fields
from typing import Annotated, Any

import typer

from keras_seq.search.options import TextSearchOptions
from keras_seq_cli.option_groups import option, replace_argument

# Options whose type differs from the type of the search setting. The settings check the values,
# so that error messages are the same for options and settings files.
_TYPES = {
    "method": str,
    "length_normalization": str,
    "seed": int,
    "rerank": str,
    "forbidden": list[str],
    "prefix": str,
}
# Options for translations only.
RERANK_OPTIONS = ("rerank", "candidates")
# List `--method` first in the help, because the other options depend on the method.
OPTIONS: dict[str, tuple[Any, str]] = {
    field.name: (_TYPES.get(field.name, field.type), field.metadata["description"])
    for field in sorted(fields(TextSearchOptions), key=lambda field: field.name != "method")
}


def with_search_options(
    command: Callable[..., None], without: Collection[str] = ()
) -> Callable[..., None]:
    """Replaces the argument `search` of a command by one option per search setting.

    Args:
        command: Function with an argument `search`, a dict of the options on the command line.
        without: Names of options that the command does not have.
    """
    return replace_argument(
        command,
        "search",
        [_parameter(name) for name in OPTIONS if name not in without],
        # Typer passes an empty list for an absent repeatable option.
        lambda values: {name: value for name, value in values.items() if value not in (None, [])},
    )


def _parameter(name: str) -> inspect.Parameter:
    kind, description = OPTIONS[name]
    return option(
        name, Annotated[kind | None, typer.Option(help=description, rich_help_panel="Search")]
    )
