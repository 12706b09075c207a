"""Output options of `keras-seq translate`: formats, alignments, and pictures."""

from __future__ import annotations

import typing
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from keras_seq_cli.option_groups import option, replace_argument
from keras_seq_cli.output import write_error

_PANEL = "Output"


def _option(help: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_PANEL, **more)


@dataclass(frozen=True)
class OutputOptions:
    """The output options of `keras-seq translate`; each field defines an option."""

    format: Annotated[
        Literal["text", "tsv", "jsonl"],
        _option("text: one translation per line; tsv: a table; jsonl: one object per input line."),
    ] = "text"
    alignment: Annotated[
        Literal["hard", "soft"] | None,
        _option(
            "Word alignment by attention. hard: word pairs, as in 0-0 1-2; soft: all attention "
            "weights, in jsonl."
        ),
    ] = None
    replace_unknown: Annotated[
        bool,
        _option("Replace unknown tokens by the source word with the highest attention weight."),
    ] = field(default=False)
    attention: Annotated[
        Literal["term", "html", "png"] | None,
        _option("Show the attention of each line on the terminal, as a page, or as images."),
    ] = None
    attention_file: Annotated[
        str | None, _option("File for --attention; by default, term goes to stderr.")
    ] = None
    attention_layer: Annotated[
        int | None, _option("Decoder layer to read attention from, from 0; -1: the last layer.")
    ] = None
    attention_head: Annotated[
        int | None, _option("Attention head, from 0; by default the mean of all heads.")
    ] = None
    show_beam: Annotated[
        str | None, _option("HTML file with the tree of hypotheses of the first lines.")
    ] = None
    stream: Annotated[
        bool, _option("Translate each line as soon as it arrives, without batching.", "--stream")
    ] = False
    progress: Annotated[
        bool | None, _option("Show progress; by default if stderr is a terminal and stdout is not.")
    ] = None

    @property
    def needs_attention(self) -> bool:
        """True if the options need attention weights."""
        return bool(self.alignment or self.replace_unknown or self.attention)

    def changed(self) -> list[str]:
        """Returns the names of the options that differ from their defaults."""
        return [option.name for option in fields(self) if self._is_changed(option.name)]

    def check(self, *, engine: str, many_files: bool, ensemble: bool, prefixes: bool) -> None:
        """Raises BadParameter for options that cannot be combined.

        Args:
            engine: Value of `--engine`.
            many_files: True if `--input` is present.
            ensemble: True if `--ensemble` is present.
            prefixes: True if `--prefixes` is present.
        """
        if many_files and (changed := self.changed()):
            _reject(changed[0], "not with --input, which writes plain text")
        self._check_attention(engine, ensemble=ensemble)
        if self.show_beam is not None and prefixes:
            _reject("show_beam", "not with --prefixes; --prefix is the same for all lines")
        if self.stream:
            for name in ("show_beam", "attention"):
                if self._is_changed(name) and self.attention != "term":
                    _reject(
                        name, "not with --stream, because the file is written after the last line"
                    )

    def _check_attention(self, engine: str, *, ensemble: bool) -> None:
        names = ("alignment", "replace_unknown", "attention")
        attention = [name for name in names if self._is_changed(name)]
        for name in attention if ensemble else ():
            _reject(name, "not with --ensemble, whose models have different attention weights")
        for name in [*attention, "show_beam"] if engine == "ctranslate2" else ():
            if self._is_changed(name):
                _reject(name, "not with --engine ctranslate2; use --engine tensorflow")
        if self.alignment == "soft" and self.format != "jsonl":
            _reject("alignment", "soft needs --format jsonl; hard works with every format")
        if self.attention_file is not None and self.attention is None:
            _reject("attention_file", "needs --attention term, html or png")
        if self.attention in ("html", "png") and self.attention_file is None:
            _reject("attention", f"{self.attention} needs --attention-file")
        for name in ("attention_layer", "attention_head"):
            if self._is_changed(name) and not attention:
                _reject(name, "needs --alignment, --replace-unknown or --attention")
        if self.attention == "png":
            from keras_seq.analysis.attention_image import can_save_images

            if not can_save_images():
                install = "python -m pip install 'keras-seq[plot]'"
                _reject("attention", f"png needs matplotlib: {install}")

    def check_heads(self, layers: int, heads: int) -> None:
        """Raises BadParameter for a layer or head that the model does not have."""
        for name, value, minimum, maximum in (
            ("attention_layer", self.attention_layer, -layers, layers - 1),
            ("attention_head", self.attention_head, 0, heads - 1),
        ):
            if value is not None and not minimum <= value <= maximum:
                _reject(name, f"received {value}, expected {minimum} to {maximum} for this model")

    def check_files(self, *others: str | None) -> None:
        """Raises BadParameter if an output file is not writable or has the path of another file."""
        used = {Path(other).absolute() for other in others if other not in (None, "-") and other}
        for name in ("attention_file", "show_beam"):
            path = getattr(self, name)
            if path is None:
                continue
            if error := write_error(path):
                _reject(name, error)
            absolute = Path(path).absolute()
            if absolute in used:
                _reject(name, f"{path}: is also the input or another output")
            used.add(absolute)

    def _is_changed(self, name: str) -> bool:
        return bool(getattr(self, name) != type(self).__dataclass_fields__[name].default)


def _reject(name: str, reason: str) -> None:
    raise typer.BadParameter(reason, param_hint=f"'--{name.replace('_', '-')}'")


def with_output_options(command: Callable[..., None]) -> Callable[..., None]:
    """Replaces the argument `outputs` of a command by one option per field of `OutputOptions`.

    Args:
        command: Function with an argument `outputs` of type `OutputOptions`.
    """
    hints = typing.get_type_hints(OutputOptions, include_extras=True)
    return replace_argument(
        command,
        "outputs",
        [option(item.name, hints[item.name], item.default) for item in fields(OutputOptions)],
        lambda values: OutputOptions(**values),
    )
