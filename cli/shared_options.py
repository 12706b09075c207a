"""Options shared by several commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

import typer

from keras_seq_cli.option_groups import option, replace_argument

# `CheckpointStore.select` checks the value, because valid steps depend on the run.
To = Annotated[
    str | None,
    typer.Option("--to", help="Target language, such as fr, of a model with several."),
]
Which = Annotated[
    str,
    typer.Option(
        "--which",
        metavar="best|latest|STEP",
        help="Checkpoint to load: best, latest, or the step of a stored checkpoint.",
    ),
]
Ensemble = Annotated[
    list[str] | None,
    typer.Option(help="Other run with the same vocabulary, to ensemble with RUN; repeatable."),
]
TextsArgument = Annotated[
    str | None, typer.Argument(help="File of texts, one per line; stdin by default.")
]
BatchSize = Annotated[int | None, typer.Option(min=1, max=100_000, help="Texts per batch.")]
Output = Annotated[
    str | None, typer.Option("--output", "-o", help="File to write; stdout by default.")
]
Json = Annotated[
    bool, typer.Option("--json", help="Print JSON with all digits instead of the table.")
]

Preset = Annotated[
    str | None,
    typer.Option(
        help="Preset name, or hub:NAME of a pretrained encoder; by default chosen by corpus size."
    ),
]
SettingsFile = Annotated[
    str | None, typer.Option("--settings", help="TOML file of settings that override the preset.")
]
SetSettings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change one setting; repeatable."),
]
Seed = Annotated[int | None, typer.Option(help="Random seed.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print what would be trained, without training.")
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Delete the existing output directory first.")
]
OverwriteFile = Annotated[
    bool, typer.Option("--overwrite", help="Replace an existing output file.")
]
Workers = Annotated[
    int | None, typer.Option(min=1, help="Worker processes; by default one per 4 cores.")
]
Runner = Annotated[
    Literal["local", "ray"],
    typer.Option(help="Where the workers run: on this machine, or on a Ray cluster (an extra)."),
]
Trust = Annotated[
    bool, typer.Option("--trust", help="Load SavedModels with any operations, without a check.")
]

Metrics = Annotated[
    list[str] | None,
    typer.Option(
        "--metric",
        "-m",
        help="Metrics separated by commas, such as exact,cer,wer,chrf,bleu,ter; repeatable.",
    ),
]
Tokenize = Annotated[str | None, typer.Option(help="sacreBLEU tokenizer for BLEU; 13a by default.")]
LowerCase = Annotated[bool, typer.Option("--lowercase", help="Ignore case.")]


def split_metrics(values: list[str] | None) -> list[str]:
    """Splits the values of `--metric` at commas; returns the distinct names in order."""
    names = [name.strip() for value in values or [] for name in value.split(",")]
    return list(dict.fromkeys(names))


_TASKS = "translate|language-model|classify|tag|vae|speech|wake-word"

# Maps each setting to the name, the type and the help text of the option.
TEXT_OPTIONS: dict[str, tuple[str, Any, str]] = {
    "task": ("task", str, "Task to learn; translate by default."),
    "data.source": (
        "source",
        str,
        "Source sentences, one per line, plain or .gz; or a pattern, as in 'train.*.en'.",
    ),
    "data.target": ("target", str, "Target sentences, parallel to --source."),
    "data.pairs": (
        "pairs",
        str,
        "source<TAB>target lines, or CSV, instead of --source and --target; for speech "
        "path<TAB>text lines, for wake-word path<TAB>spans.",
    ),
    "data.text": ("text", str, "Lines of text, for language-model and vae."),
    "data.labeled": (
        "labeled",
        str,
        "text<TAB>label lines, or CSV, for classify; text<TAB>tags, one tag per word, for tag.",
    ),
    "data.columns": (
        "columns",
        str,
        "Columns of --pairs or --labeled, by number or header, as in source=1,target=3 or "
        "text=2,label=1.",
    ),
    "data.weights": ("weights", str, "Weights in the loss, one number per line of the text."),
    "data.alignments": (
        "alignments",
        str,
        "Word alignments, as in '0-0 1-2', parallel to --source.",
    ),
    "data.valid_source": ("valid_source", str, "Source sentences for validation."),
    "data.valid_target": ("valid_target", str, "Target sentences for validation."),
    "data.valid_pairs": ("valid_pairs", str, "source<TAB>target lines for validation."),
    "data.valid_text": ("valid_text", str, "Lines of text for validation."),
    "data.valid_labeled": ("valid_labeled", str, "Labeled lines for validation."),
}


# Short names of the files of a task, given by --task: --pairs, --text or --labeled.
_DATA_OPTIONS = {
    "data": ("", "The file of the task: --pairs, --labeled or --text, as --task needs."),
    "valid_data": ("valid_", "The file of the task for validation."),
}


def _text_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings of the options in `TEXT_OPTIONS` and `_DATA_OPTIONS`."""
    from keras_seq.settings import TASKS

    settings = {key: values[name] for key, (name, *_) in TEXT_OPTIONS.items()}
    for option_name, (prefix, _) in _DATA_OPTIONS.items():
        if (path := values[option_name]) is None:
            continue
        task = values["task"] or "translate"
        if task not in TASKS:
            raise typer.BadParameter(
                f"only for the tasks of keras-seq, not for {task!r}: give --pairs, --labeled or "
                "--text",
                param_hint=f"--{option_name.replace('_', '-')}",
            )
        file = TASKS[task].file
        key = f"data.{prefix}{file}"
        if settings[key] is not None:
            shown = option_name.replace("_", "-")
            raise typer.BadParameter(
                f"not with --{prefix.replace('_', '-')}{file}, which names the same file",
                param_hint=f"--{shown}",
            )
        settings[key] = path
    return settings


def with_text_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replaces the argument `text_settings` of a command by the options of text files.

    Args:
        command: Function with an argument `text_settings`, a dict; absent options are None.
    """
    return replace_argument(
        command,
        "text_settings",
        [
            option(
                name,
                Annotated[
                    kind | None,
                    typer.Option(help=description, metavar=_TASKS if name == "task" else None),
                ],
            )
            for name, kind, description in _options()
        ],
        _text_settings,
    )


def _options() -> Iterator[tuple[str, Any, str]]:
    """Yields name, type and help of each option, the task and its file first."""
    task, *others = TEXT_OPTIONS.values()
    yield task
    for name, (_, description) in _DATA_OPTIONS.items():
        yield name, str, description
    yield from others


def list_overrides(set_: Sequence[str] | None, settings: Mapping[str, Any]) -> list[str]:
    """Returns the values of `--set`, then `KEY=VALUE` for each setting that is not None."""
    options = [f"{key}={value}" for key, value in settings.items() if value is not None]
    return [*(set_ or []), *options]


def check_label_options(texts: str | None, labeled: str | None, columns: str | None) -> None:
    """Raises BadParameter for options of `classify` and `tag` that cannot be combined."""
    if labeled is not None and texts is not None:
        raise typer.BadParameter("received both TEXTS and --labeled, expected one of them")
    if columns is not None and labeled is None:
        raise typer.BadParameter("needs --labeled", param_hint="'--columns'")
