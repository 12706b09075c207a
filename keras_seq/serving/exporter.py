"""Interface of a task's SavedModel export."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from keras_seq.serving.signature_module import SignatureModule


class Exporter(Protocol):
    """The parts of a SavedModel export that depend on the task.

    Attributes:
        outputs: Names of the outputs of `serving_default`, the text first.
        verb: What the model does with a line, such as "translates".
        limit: Number of tokens of the longest input that the model reads.
    """

    outputs: tuple[str, ...]
    verb: str
    limit: int

    def inputs(self) -> list[str]:
        """Returns texts of the validation set to verify the export with."""

    def expected(self, model: Any, texts: Sequence[str]) -> list[str]:
        """Returns the outputs of the run, which the export must reproduce.

        Args:
            model: The model of the run, or an ensemble.
            texts: Lines of text.
        """

    def module(self, model: Any) -> SignatureModule:
        """Returns the module that is saved.

        Args:
            model: The model of the run, or an ensemble.
        """

    def encode(self, texts: Sequence[str]) -> dict[str, list[Any]]:
        """Returns the inputs of the signature without text operations, by name."""

    def decode(self, outputs: list[Any], /) -> list[str]:
        """Returns the outputs of that signature as text, in the form of `expected`."""

    def describe(self) -> str:
        """Returns the inputs and outputs of each signature, in Markdown, for clients."""
