"""Parts of all predictors: batches by length, token ids, and opening a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from keras_seq.run import Run
from keras_seq.text import Tokenizer, with_languages

# Lines are clipped to this many characters per token of the maximum length before tokenization.
# Tokens are rarely longer, so clipping removes only tokens beyond the maximum length.
CHARACTERS_PER_TOKEN = 50

Input = TypeVar("Input")
Output = TypeVar("Output")


def predict_by_length(
    inputs: Sequence[Input],
    predict: Callable[[list[Input]], Iterable[Output]],
    batch_size: int | None = None,
    length: Callable[[Input], Any] = len,  # type: ignore[assignment]
) -> list[Output]:
    """Predicts in batches of inputs of similar length, which need little padding.

    `predict` maps a list of inputs, the longest first, to one output for each. Without
    `batch_size`, it is called once. The outputs have the order of the inputs.

    Example:

    >>> predict_by_length(["a", "ccc", "bb"], lambda batch: [s.upper() for s in batch], 2)
    ['A', 'CCC', 'BB']
    """
    # The sort is stable, so that the same inputs always form the same batches.
    order = sorted(range(len(inputs)), key=lambda i: length(inputs[i]), reverse=True)
    size = batch_size or max(len(order), 1)
    outputs: dict[int, Output] = {}
    for start in range(0, len(order), size):
        batch = order[start : start + size]
        outputs |= zip(batch, predict([inputs[i] for i in batch]), strict=True)
    return [outputs[i] for i in range(len(inputs))]


def check_is_list(name: str, lines: Sequence[str]) -> None:
    """Raises TypeError if `lines` is one string instead of a list of strings."""
    if isinstance(lines, str):
        raise TypeError(f"`{name}` must be a list of strings, received one string; pass [text].")


def check_pairs(**columns: Sequence[str]) -> None:
    """Raises TypeError or ValueError unless the two arguments are lists of equal length."""
    for name, lines in columns.items():
        check_is_list(name, lines)
    sizes = {name: len(lines) for name, lines in columns.items()}
    if len(set(sizes.values())) > 1:
        received = " and ".join(f"{size} {name}" for name, size in sizes.items())
        raise ValueError(f"received {received}, expected as many of both.")


def encode_sources(
    lines: Sequence[str], tokenizer: Tokenizer, max_source_length: int
) -> tuple[list[list[int]], list[bool]]:
    """Returns the token ids of each line, and True for each line that is truncated.

    `max_source_length` does not include the end token. Raises InputError if the vocabulary has
    target languages, and a line does not begin with the tag of one.
    """
    lines = with_languages(lines, tokenizer.languages)
    clipped = [line[: max_source_length * CHARACTERS_PER_TOKEN] for line in lines]
    ids = tokenizer.encode(clipped)
    truncated = [
        len(tokens) > max_source_length or len(text) < len(line)
        for tokens, text, line in zip(ids, clipped, lines, strict=True)
    ]
    return [tokens[:max_source_length] for tokens in ids], truncated


def open_trained_run(
    path: str | os.PathLike[str],
    task: str | None,
    which: str | int,
    notice: Callable[[str], None] | None,
) -> Run:
    """Opens a run that has the task (None for any) and a checkpoint, or raises InputError."""
    run = Run.open(path, notice=notice)
    if task is not None:
        run.require_task(task)
    run.require_weights(which)
    return run
