"""The option `--import` of the commands that read settings or runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from keras_seq_cli.option_groups import add_option, option
from keras_seq_cli.quiet import quiet_import

_IMPORT = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        metavar="FILE.py|NAME",
        help="Plugin with models, tasks, losses, metrics, vocabularies or callbacks; repeatable.",
    ),
]


def with_plugins(command: Callable[..., None]) -> Callable[..., None]:
    """Returns a command with the option `--import`."""
    return add_option(command, option("import_", _IMPORT), _choose_plugins)


def _choose_plugins(names: list[str] | None) -> None:
    """Passes the plugins on to this process and to those that it starts."""
    if not names:
        return
    from keras_seq.plugins.loading import VARIABLE, set_import_context

    files = [str(Path(name).resolve()) if name.endswith(".py") else name for name in names]
    earlier = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = os.pathsep.join([*([earlier] if earlier else []), *files])
    set_import_context(quiet_import)
