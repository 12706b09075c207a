"""Entry point of `keras-seq`: runs commands, and reports errors and exit codes."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated

import typer

import keras_seq
from keras_seq_cli.augment import back_translate, copy, hallucinate, noise, self_train
from keras_seq_cli.average import average
from keras_seq_cli.classify import classify
from keras_seq_cli.clean import clean
from keras_seq_cli.curve import curve
from keras_seq_cli.demo import demo
from keras_seq_cli.detect import detect
from keras_seq_cli.diagnose import diagnose
from keras_seq_cli.distill import distill
from keras_seq_cli.evaluate import evaluate
from keras_seq_cli.export import export
from keras_seq_cli.generate import generate
from keras_seq_cli.interpolate import interpolate
from keras_seq_cli.likelihood import likelihood
from keras_seq_cli.message_text import message_text
from keras_seq_cli.plugin_option import with_plugins
from keras_seq_cli.prepare import prepare
from keras_seq_cli.pull import pull
from keras_seq_cli.push import push
from keras_seq_cli.reconstruct import reconstruct
from keras_seq_cli.report import report
from keras_seq_cli.rerank import rerank
from keras_seq_cli.score import score
from keras_seq_cli.serve import serve
from keras_seq_cli.signals import interrupt_outside_libraries
from keras_seq_cli.standard_error import forgiving_standard_error
from keras_seq_cli.tag import tag
from keras_seq_cli.train import train
from keras_seq_cli.transcribe import transcribe
from keras_seq_cli.translate import translate
from keras_seq_cli.tune import tune
from keras_seq_cli.vectors import vectors

app = typer.Typer(
    name="keras-seq",
    help="Train sequence models on your own text, apply them, score them and serve them.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
COMMANDS = (
    train, tune, curve, translate, rerank, generate, reconstruct, interpolate, classify, tag,
    transcribe, detect, evaluate, report, score, likelihood, diagnose, clean, distill, prepare,
    average, export,
    serve, push, pull, demo,
)  # fmt: skip
augment = typer.Typer(
    help="Make training pairs of text in one language, or of other pairs.", no_args_is_help=True
)
AUGMENTATIONS = (back_translate, self_train, copy, noise, hallucinate)
# Commands that build no model of a run and compute no metric of a plugin.
WITHOUT_PLUGINS = (clean, serve, demo, copy, noise, hallucinate)
for group, commands in ((app, COMMANDS), (augment, AUGMENTATIONS)):
    for command in commands:
        made = command if command in WITHOUT_PLUGINS else with_plugins(command)
        group.command(no_args_is_help=command is not demo)(made)
app.add_typer(augment, name="augment")
app.add_typer(vectors, name="vectors")


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"keras-seq {keras_seq.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    pass


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command, which prints results to stdout and messages to stderr.

    Args:
        arguments: The arguments without the name of the program; by default `sys.argv[1:]`.

    Returns:
        The exit code: 0 for success; 1 for an internal error or a disk error; 2 for invalid options
        or input; 3 if training diverged; 4 if memory ran out; 130 after Ctrl-C.

    Raises:
        SystemExit: With 143 after SIGTERM, and with 142 at the end of `train --stop-after`.
    """
    with forgiving_standard_error():
        try:
            with warnings.catch_warnings(), interrupt_outside_libraries():
                warnings.showwarning = _show_warning
                result = app(
                    args=None if arguments is None else list(arguments),
                    prog_name="keras-seq",
                    standalone_mode=False,
                )
        except KeyboardInterrupt:
            return 130
        except Exception as error:
            return _report(error)
        return result if isinstance(result, int) else 0


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Prints a warning on one line, without file name and line number."""
    typer.echo(message_text(f"warning: {' '.join(str(message).split())}"), err=True)


def _report(error: Exception) -> int:
    """Prints an error on one line and returns the exit code."""
    if os.environ.get("KERAS_SEQ_TRACEBACK") == "1":
        import traceback

        traceback.print_exception(error)
    if type(error).__name__ == "NoArgsIsHelpError":
        typer.echo(str(error), err=True)
        return 2
    message, code = _explain(error)
    typer.echo(message_text(f"keras-seq: {' '.join(message.split())}"), err=True)
    return code


def _explain(error: Exception) -> tuple[str, int]:
    """Returns the message and the exit code of an error."""
    from keras_seq.process.memory import is_out_of_memory
    from keras_seq.settings import SettingsError
    from keras_seq.storage import reason
    from keras_seq.text import InputError

    if isinstance(error, (InputError, SettingsError)):
        return str(error), 2
    # Usage errors have `format_message`; their class depends on the version of Typer.
    format_message = getattr(error, "format_message", None)
    if format_message is not None:
        return format_message(), getattr(error, "exit_code", 2)
    if isinstance(error, typer.Abort):
        return "stopped", 1
    # Some errors of this package have an attribute `exit_code`.
    code = getattr(error, "exit_code", None)
    if isinstance(error, OSError):
        named = error.filename is not None and error.errno is not None
        return f"{error.filename}: {reason(error)}" if named else str(error), code or 1
    if isinstance(code, int):
        return str(error), code
    if is_out_of_memory(error):
        return (
            "out of memory: use smaller batches (--batch-size, training.batch_tokens), a smaller "
            "beam or a smaller model",
            4,
        )
    return (
        f"internal error: {type(error).__name__}: {str(error)[:500]} "
        "(set KERAS_SEQ_TRACEBACK=1 to see the traceback)",
        1,
    )


if __name__ == "__main__":
    sys.exit(main())
