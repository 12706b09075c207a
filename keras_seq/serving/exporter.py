"""The parts of a task's SavedModel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol


class Exporter(Protocol):
    """What a task exports of a run, and how the export is verified and described.

    Attributes:
        outputs: Names of the outputs of `serving_default`, the text first.
        verb: What the model does with a line, such as "translates".
        limit: Tokens of the longest input that the model reads.
    """

    outputs: tuple[str, ...]
    verb: str
    limit: int

    def inputs(self) -> list[str]:
        """Returns texts of the validation set to verify the export with."""

    def expected(self, model: Any, texts: Sequence[str]) -> list[str]:
        """Returns what the run answers, which the export must equal.

        Args:
            model: The model of the run, or an ensemble.
            texts: Lines of text.
        """

    def module(self, model: Any) -> Any:
        """Returns a `SignatureModule` over the model."""

    def encode(self, texts: Sequence[str]) -> dict[str, list[Any]]:
        """Returns the inputs of the signature without text operations, by name."""

    def decode(self, answers: list[Any]) -> list[str]:
        """Returns the answers of that signature as text, as `expected` has it."""

    def describe(self) -> str:
        """Returns the inputs and outputs of each signature, in Markdown, for clients."""
