"""Writes the generated pages: the commands, the settings and the table of presets.

python docs/make_generated_pages.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.testing import CliRunner

from keras_seq.settings import (
    FAMILIES,
    PRESETS,
    TASKS,
    DataSettings,
    ScoreSettings,
    SearchSettings,
    Settings,
    TokenizerSettings,
    TrainingSettings,
    load_settings,
)
from keras_seq_cli.main import app

DOCS = Path(__file__).resolve().parent
KINDS = {
    "language-model": "language model",
    "classify": "classifier",
    "tag": "tagger",
    "vae": "variational autoencoder",
    "speech": "speech recognizer",
    "wake-word": "wake word detector",
}


def all_commands() -> Iterator[tuple[str, Any]]:
    """Yields the commands by name; a subcommand is named after its group and itself."""
    for name, command in typer.main.get_command(app).commands.items():
        yield name, command
        for inner, one in getattr(command, "commands", {}).items():
            yield f"{name} {inner}", one


def commands() -> str:
    """Returns the help of every command, for a terminal of 100 columns."""
    terminal = {"COLUMNS": "100", "TERM": "dumb"}
    parts = ["# Commands\n\nWritten by `python docs/make_generated_pages.py`.\n"]
    for name in ("", *(name for name, _ in all_commands())):
        title = f"keras-seq {name}".strip()
        result = CliRunner().invoke(
            app, [*name.split(), "--help"], prog_name="keras-seq", env=terminal
        )
        lines = "\n".join(line.rstrip() for line in result.stdout.strip("\n").split("\n"))
        parts.append(f"\n## {title}\n\n```\n{lines}\n```\n")
    return "".join(parts)


def settings() -> str:
    """Returns a table of settings for each section."""
    sections = {
        "data": DataSettings,
        "tokenizer": TokenizerSettings,
        **{f"model, with `model.family = '{name}'`": kind for name, kind in FAMILIES.items()},
        "training": TrainingSettings,
        "search": SearchSettings,
        "score": ScoreSettings,
    }
    task, seed, plugins = (Settings.model_fields[name] for name in ("task", "seed", "plugins"))
    parts = [
        "# Settings\n\nWritten by `python docs/make_generated_pages.py`. A preset changes some "
        "defaults; `settings.toml` in a run has what was used.\n\n"
        f"`task` ({task.default}; or {', '.join(list(TASKS)[1:])}): {task.description}\n\n"
        f"`seed` ({seed.default}): {seed.description}\n\n"
        f"`plugins` (none): {plugins.description}\n"
    ]
    for title, section in sections.items():
        parts.append(f"\n## {title}\n\n| key | default | |\n|---|---|---|\n")
        prefix = title.split(",")[0]
        nested = []
        for key, field in section.model_fields.items():
            if field.description is None:
                nested.append(f"`{prefix}.{key}.*`")
                continue
            default = "none" if field.default is None else str(field.default).lower()
            default = "a space" if default == " " else default
            parts.append(f"| `{prefix}.{key}` | {default} | {field.description} |\n")
        if nested:
            parts.append(f"\n{' and '.join(nested)}: the same settings for one side alone.\n")
    return "".join(parts)


def presets() -> str:
    """Returns the table of presets."""
    lines = ["| preset | model |\n|---|---|\n"]
    for name in PRESETS:
        if name != "demo":
            settings = load_settings(preset=name)
            kind = "" if settings.task == "translate" else f"{KINDS[settings.task]}: "
            lines.append(f"| `{name}` | {kind}{_shape(settings)} |\n")
    return "".join(lines)


def _shape(settings: Settings) -> str:
    """Describes the model of a preset."""
    model: Any = settings.model
    if hasattr(model, "feedforward_units"):
        layers = getattr(model, "num_layers", None)
        if layers is None:
            layers = f"{model.num_encoder_layers} + {model.num_decoder_layers}"
        return (
            f"Transformer, {layers} layers, width {model.units}, feed-forward "
            f"{model.feedforward_units}, {model.num_heads} heads"
        )
    if hasattr(model, "encoder_units"):
        return (
            f"{model.cell.upper()}, encoder 2 x {model.encoder_units}, "
            f"decoder {model.decoder_units}" + ", with attention" * hasattr(model, "attention")
        )
    if hasattr(model, "cell"):
        both = ", in both directions" if settings.task in ("classify", "tag", "speech") else ""
        return f"{model.cell.upper()}, {model.num_layers} x {model.units}{both}"
    if hasattr(model, "widths"):
        widths = ", ".join(map(str, model.widths))
        return (
            f"{model.members} x {model.filters} filters of the widths {widths} over words and "
            "their characters"
        )
    if hasattr(model, "kernel_size"):
        return f"GRU, {model.num_layers} x {model.units}, over a causal convolution"
    return f"mean of embeddings, width {model.embedding_units}"


def pages() -> dict[Path, str]:
    """Returns the text of each page that has generated parts."""
    page = (DOCS / "presets.md").read_text(encoding="utf-8")
    table = f"<!-- presets -->\n{presets()}<!-- end -->"
    return {
        DOCS / "commands.md": commands(),
        DOCS / "settings.md": settings(),
        DOCS / "presets.md": re.sub(
            r"<!-- presets -->\n.*?<!-- end -->", lambda _: table, page, flags=re.DOTALL
        ),
    }


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
