"""Interface of a task's SavedModel export."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from keras_seq.serving.signature_module import SignatureModule


class Exporter(Protocol):
    """The parts of a SavedModel export that depend on the task.

    `outputs` are the names of the outputs of `serving_default`, the text first. `verb` says what
    the model does with a line, such as "translates". `limit` is the maximum input length in tokens.
    """

    outputs: tuple[str, ...]
    verb: str
    limit: int

    def inputs(self) -> list[str]:
        """Returns texts of the validation set to verify the export with."""

    def expected(self, model: Any, texts: Sequence[str]) -> list[str]:
        """Returns the outputs of the run, which the export must reproduce."""

    def module(self, model: Any) -> SignatureModule:
        """Returns the module to save; `model` is the model of the run, or an ensemble."""

    def encode(self, texts: Sequence[str]) -> dict[str, list[Any]]:
        """Returns the inputs of the signature without text operations, by name."""

    def decode(self, outputs: list[Any], /) -> list[str]:
        """Returns the outputs of that signature as text, in the form of `expected`."""

    def describe(self) -> str:
        """Returns the inputs and outputs of each signature, in Markdown, for clients."""
