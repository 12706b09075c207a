"""The parts of an export that depend on the task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from keras_seq.settings import TASKS, Settings
from keras_seq.text import InputError

if TYPE_CHECKING:
    from keras_seq.run import Run
    from keras_seq.serving.model_graphs import GraphParts
    from keras_seq.serving.signature_module import SignatureModule


def make_exporter(run: Run, settings: Settings) -> Exporter:
    """Returns the exporter of a run's task; raises InputError if the task has none."""
    try:
        exporter: Exporter = TASKS[settings.task].exporter(run, settings)
    except NotImplementedError:
        raise InputError(
            f"{run.path}: the task {settings.task!r} has no export: its class lacks a method "
            "`exporter`"
        ) from None
    return exporter


class Exporter(Protocol):
    """The parts of a SavedModel export that depend on the task.

    `outputs` are the output names of `serving_default`, starting with the text. `verb` is the verb
    for the task in messages, such as "translates". `limit` is the maximum input length in tokens.
    """

    outputs: tuple[str, ...]
    verb: str
    limit: int

    def inputs(self) -> list[str]:
        """Returns validation texts to verify the export; empty if the run has none."""

    def expected(self, model: Any, texts: Sequence[str]) -> list[str]:
        """Returns the outputs of the run for `texts`. The export must return the same outputs."""

    def module(self, model: Any) -> SignatureModule:
        """Returns the module to save, built from the model of the run or from an ensemble."""

    def onnx(self, model: Any) -> GraphParts:
        """Returns the parts of an ONNX export of the same model."""

    def longest_input(self, max_input: float | None) -> int:
        """Returns the longest input, in ids or samples, of an export with fixed shapes.

        `max_input` is in tokens or seconds; None is the maximum of the run. Raises InputError if
        it is out of bounds.
        """

    def length(self, one: Any) -> int:
        """Returns the length of a text or a recording, in ids or samples."""

    def litert(self, model: Any, longest: int) -> GraphParts:
        """Returns the parts of an export to LiteRT with one graph of fixed shapes."""

    def requests(self, texts: Sequence[str]) -> dict[str, list[str]]:
        """Converts texts to the inputs of the signatures of text, by name."""

    def encode(self, texts: Sequence[str]) -> dict[str, list[Any]]:
        """Converts texts to the inputs of the signature `ids`, by name."""

    def decode(self, outputs: list[Any], /) -> list[str]:
        """Converts outputs of the signature `ids` to text in the form that `expected` returns."""

    def describe(self) -> str:
        """Describes the inputs and outputs of all signatures in Markdown."""
