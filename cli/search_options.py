"""The settings of the search as options of a command."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection
from typing import Annotated, Any

import typer

from keras_seq_cli.options_in_place import option, put_in_place

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
    names = [name for name in OPTIONS if name not in without]
    return put_in_place(
        command,
        "search",
        [_parameter(name) for name in names],
        # Typer makes an empty list of an option that may be given again and was not.
        lambda values: {name: value for name, value in values.items() if value not in (None, [])},
    )


def _parameter(name: str) -> inspect.Parameter:
    kind, said = OPTIONS[name]
    shown = typer.Option(*_SHORT.get(name, ()), help=said, rich_help_panel="Search")
    return option(name, Annotated[kind | None, shown])
