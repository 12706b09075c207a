"""Outputs of the model for a few inputs during training."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

from keras_seq.callbacks.counting_callback import PeriodicCallback


class SampleTranslations(PeriodicCallback):
    """Translates the same few inputs every N updates and at the end of `fit`.

    Args:
        translate: Function that takes a list of inputs and returns a list of outputs, such as a
            `keras_seq.Translator` that uses the model in training.
        sources: List of inputs.
        every: Positive integer N, updates between two translations.
        references: Optional list of references to print next to the outputs.
        report: Optional function, called with the number of updates and the list of outputs. By
            default, the outputs are printed to standard error.
        initial_step: Number of updates before this `fit`.

    Raises:
        ValueError: If `every` is not a positive integer, or `references` and `sources` differ in
            length.

    Example:

    >>> callback = SampleTranslations(lambda lines: [line[::-1] for line in lines],
    ...     sources=["abc"], every=500)
    """

    def __init__(
        self,
        translate: Callable[[list[str]], Sequence[Any]],
        sources: Sequence[str],
        every: int,
        references: Sequence[str] | None = None,
        report: Callable[[int, list[Any]], Any] | None = None,
        initial_step: int = 0,
    ) -> None:
        super().__init__(every, initial_step)
        if references is not None and len(references) != len(sources):
            counts = f"{len(references)} and {len(sources)}"
            raise ValueError(f"`references` and `sources` must be equally many, received {counts}.")
        self.translate = translate
        self.sources = list(sources)
        self.references = references
        self.report = report or self._print

    def _act(self) -> None:
        self.report(self.step, list(self.translate(self.sources)))

    def _print(self, step: int, outputs: list[Any]) -> None:
        for i, (source, output) in enumerate(zip(self.sources, outputs, strict=True)):
            lines = [f"step {step:,}, line {i + 1}", f"  source    {source}"]
            if self.references is not None:
                lines.append(f"  reference {self.references[i]}")
            sys.stderr.write("\n".join([*lines, f"  model     {output}"]) + "\n")
        sys.stderr.flush()
