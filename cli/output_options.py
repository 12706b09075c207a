"""What `keras-seq translate` writes besides translations, as options of a command."""

from __future__ import annotations

import typing
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from keras_seq_cli.options_in_place import option, put_in_place
from keras_seq_cli.output import why_not_written

_PANEL = "Output"


def _option(help: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_PANEL, **more)


@dataclass(frozen=True)
class OutputOptions:
    """Each of them is an option of the command."""

    format: Annotated[
        Literal["text", "tsv", "jsonl"],
        _option("A translation a line, a table with a head, or an object for each line."),
    ] = "text"
    alignment: Annotated[
        Literal["hard", "soft"] | None,
        _option(
            "hard: links between words, as 0-0 1-2, by attention. soft: all weights, in jsonl."
        ),
    ] = None
    replace_unknown: Annotated[
        bool,
        _option("Put the source word with most attention for an unknown token."),
    ] = field(default=False)
    attention: Annotated[
        Literal["term", "html", "png"] | None,
        _option("Draw the attention of each line: on the terminal, as a page, as pictures."),
    ] = None
    attention_file: Annotated[
        str | None, _option("File for that; term goes to stderr if absent.")
    ] = None
    attention_layer: Annotated[
        int | None, _option("Whose attention, for all of these: a layer, from 0; -1 is the last.")
    ] = None
    attention_head: Annotated[
        int | None, _option("One of its heads, from 0; their mean if absent.")
    ] = None
    show_beam: Annotated[
        str | None, _option("File for a page with the tree of hypotheses of the first lines.")
    ] = None
    stream: Annotated[
        bool, _option("Answer each line when it comes, not many at a time.", "--stream")
    ] = False
    progress: Annotated[
        bool | None,
        _option("Say how far it is; by default where stderr is a terminal and stdout none."),
    ] = None

    @property
    def needs_attention(self) -> bool:
        """Whether a forced pass follows the search."""
        return bool(self.alignment or self.replace_unknown or self.attention)

    def given(self) -> list[str]:
        """Names of those that differ from the default."""
        return [option.name for option in fields(self) if self._is_given(option.name)]

    def check(self, *, engine: str, many_files: bool, ensemble: bool, prefixes: bool) -> None:
        """Refuses what does not go together.

        Args:
            engine: What computes.
            many_files: Whether there is `--input`.
            ensemble: Whether several runs translate together.
            prefixes: Whether each line has a beginning of its own.
        """
        if many_files and (given := self.given()):
            _refuse(given[0], "not with --input, whose outputs are plain text")
        attention = [
            name for name in ("alignment", "replace_unknown", "attention") if self._is_given(name)
        ]
        for name in attention if ensemble else ():
            _refuse(name, "an ensemble has an attention for each of its models: give one run")
        for name in [*attention, "show_beam"] if engine == "ctranslate2" else ():
            if self._is_given(name):
                what = "record of its search" if name == "show_beam" else "attention"
                _refuse(name, f"CTranslate2 gives no {what}; use --engine tensorflow")
        if self.alignment == "soft" and self.format != "jsonl":
            _refuse("alignment", "soft needs --format jsonl; hard goes with every format")
        if self.attention_file is not None and self.attention is None:
            _refuse("attention_file", "needs --attention term, html or png")
        if self.attention in ("html", "png") and self.attention_file is None:
            _refuse("attention", f"{self.attention} needs --attention-file")
        for name in ("attention_layer", "attention_head"):
            if self._is_given(name) and not attention:
                _refuse(name, "needs --alignment, --replace-unknown or --attention")
        if self.attention == "png":
            from keras_seq.analysis.attention_image import can_save_images

            if not can_save_images():
                _refuse("attention", "png needs matplotlib: pip install 'keras-seq[plot]'")
        if self.show_beam is not None and prefixes:
            _refuse("show_beam", "not with --prefixes; --prefix is the same for all lines")
        if self.stream:
            for name in ("show_beam", "attention"):
                if self._is_given(name) and self.attention != "term":
                    _refuse(name, "not with --stream, which has no end to write a file at")

    def check_heads(self, layers: int, heads: int) -> None:
        """Refuses a layer or head that the model has not."""
        for name, value, least, most in (
            ("attention_layer", self.attention_layer, -layers, layers - 1),
            ("attention_head", self.attention_head, 0, heads - 1),
        ):
            if value is not None and not least <= value <= most:
                _refuse(name, f"received {value}, expected {least} to {most} of this model")

    def check_files(self, *others: str | None) -> None:
        """Refuses files that cannot be written, before any work is done."""
        taken = {Path(other).absolute() for other in others if other not in (None, "-") and other}
        for name in ("attention_file", "show_beam"):
            path = getattr(self, name)
            if path is None:
                continue
            if wrong := why_not_written(path):
                _refuse(name, wrong)
            place = Path(path).absolute()
            if place in taken:
                _refuse(name, f"{path}: is the input, or another output")
            taken.add(place)

    def _is_given(self, name: str) -> bool:
        return bool(getattr(self, name) != type(self).__dataclass_fields__[name].default)


def _refuse(name: str, said: str) -> None:
    raise typer.BadParameter(said, param_hint=f"'--{name.replace('_', '-')}'")


def with_output_options(command: Callable[..., None]) -> Callable[..., None]:
    """Puts an option for each of `OutputOptions` in the place of the argument `shown`.

    Args:
        command: Takes `shown`, an `OutputOptions`.
    """
    hints = typing.get_type_hints(OutputOptions, include_extras=True)
    return put_in_place(
        command,
        "shown",
        [option(one.name, hints[one.name], one.default) for one in fields(OutputOptions)],
        lambda values: OutputOptions(**values),
    )
