"""What a training reads, as options of the commands that read it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import typer

from keras_seq_cli.options_in_place import option, put_in_place

_TASKS = Literal["translate", "language-model", "classify", "tag", "vae"]

# By the setting that each of them is: the option, its type, and what it says.
OPTIONS: dict[str, tuple[str, Any, str]] = {
    "task": ("task", _TASKS, "What to learn: from pairs (if absent), --text alone, or --data."),
    "data.source": (
        "source",
        str,
        "Source sentences, one a line; plain or .gz; 'train.*.en' for many.",
    ),
    "data.target": ("target", str, "Target sentences, line by line with --source."),
    "data.pairs": ("pairs", str, "source<TAB>target lines, or CSV, in place of the two."),
    "data.text": ("text", str, "Lines without a counterpart, for a language model or a vae."),
    "data.labelled": (
        "data",
        str,
        "text<TAB>label lines, or CSV, for classify; text<TAB>tags, one a word, for tag.",
    ),
    "data.columns": (
        "columns",
        str,
        "Columns of --pairs, as source=1,target=3, or of --data, as text=2,label=1; "
        "numbers, or names in the first line.",
    ),
    "data.weights": ("weights", str, "Numbers line by line with the text: what each pair counts."),
    "data.alignments": ("alignments", str, "Links between words, as 0-0 1-2, line by line."),
    "data.valid_source": ("valid_source", str, "Source sentences to validate on."),
    "data.valid_target": ("valid_target", str, "Target sentences to validate on."),
    "data.valid_pairs": ("valid_pairs", str, "Like --pairs, to validate on."),
    "data.valid_text": ("valid_text", str, "Lines to validate on."),
    "data.valid_labelled": ("valid_data", str, "Like --data, to validate on."),
}


def with_text_options(command: Callable[..., None]) -> Callable[..., None]:
    """Puts an option for each of `OPTIONS` in the place of the argument `given`.

    Args:
        command: Takes `given`, a dict of all these settings, None where one is absent.
    """
    return put_in_place(
        command,
        "given",
        [
            option(name, Annotated[kind | None, typer.Option(help=said)])
            for name, kind, said in OPTIONS.values()
        ],
        lambda values: {key: values[name] for key, (name, *_) in OPTIONS.items()},
    )
