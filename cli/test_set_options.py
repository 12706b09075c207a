"""The files of a test set as options of a command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from keras_seq_cli.option_groups import option, replace_argument

_HELP = {
    "data": "The file of the task: --pairs, --labeled or --text, as the task of the run needs.",
    "pairs": "source<TAB>target lines, for translate, - for stdin; path<TAB>text, for speech; "
    "path<TAB>spans, for wake-word.",
    "source": "Source sentences, one per line, instead of --pairs.",
    "target": "Target sentences, parallel to --source.",
    "text": "Lines of text, for language-model.",
    "labeled": "text<TAB>label lines, for classify; text<TAB>tags lines, for tag.",
    "columns": "Columns of --pairs or --labeled, as in source=1,target=3; by default as in "
    "training.",
    "to": "Target language of the test set, such as fr, of a run with several.",
}


def with_test_set_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replaces the argument `files` of a command by the options of a test set.

    Args:
        command: Function with an argument `files`, an `EvaluationFiles`.
    """
    options = [
        option(name, Annotated[str | None, typer.Option(help=help_)])
        for name, help_ in _HELP.items()
    ]
    return replace_argument(command, "files", options, _files)


def _files(values: Mapping[str, Any]) -> Any:
    from keras_seq.evaluation import EvaluationFiles

    return EvaluationFiles(**values)
