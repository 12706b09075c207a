"""What a model looked at while it wrote translations that a search found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_seq import backend
from keras_seq.data.ids import BOS, EOS
from keras_seq.inference.hypothesis import Hypothesis, encode_sources
from keras_seq.text import Tokenizer

# Attention weights computed at a time at most, 64 MB of them, where a model has 64 heads in all.
_WEIGHTS = 1 << 24
_ROWS = 64


class Attention(NamedTuple):
    """Where a model looked while it wrote one translation.

    Attributes:
        source: Ids of the source as the model was given them, the end token last.
        target: Ids of the translation, the end token last unless a limit came before it.
        weights: Float32 `(T, S)`, a row for each token of the target, which sums to 1, a
            column for each of the source; or of all layers and heads, `(L, H, T, S)`.
    """

    source: tuple[int, ...]
    target: tuple[int, ...]
    weights: np.ndarray


class AttentionExtractor:
    """Attention to the source, by a forced pass over translations that were found.

    Row t is of the step that wrote token t. The pass costs about as much as a step of
    training without its backward half, and the search none.

    Shapes: T tokens of the translation, S of the source, L layers of the decoder that look
    at the source, H heads of each.

    Args:
        model: A model of `keras_seq.models`.
        source_tokenizer: Turns lines into ids.
        max_source_length: Longer sources are cut to so many tokens.
        layer: Which layer's attention is given; -1 is the last.
        head: Which head's; None for the mean over the layer's.

    Raises:
        ValueError: If there is no such layer or head, or the model is an ensemble, which has
            an attention for each of its models.

    Example:

    >>> tokenizer = Tokenizer.train(["A dog runs."] * 9, size=290)
    >>> size = tokenizer.vocabulary_size
    >>> model = Transformer(size, size, 1, 1, units=8, feedforward_units=8, num_heads=2)
    >>> found = Hypothesis("A dog", -1.0, False, tuple(tokenizer.encode(["A dog"])[0]))
    >>> [[attention]] = AttentionExtractor(model, tokenizer)(["A dog runs."], [[found]])
    >>> attention.weights.shape == (len(attention.target), len(attention.source))
    True
    """

    def __init__(
        self,
        model: Any,
        source_tokenizer: Tokenizer,
        max_source_length: int = 200,
        *,
        layer: int = -1,
        head: int | None = None,
    ) -> None:
        if not hasattr(model, "with_attention"):
            raise ValueError(
                "`model` must be one model that offers `with_attention`, received "
                f"{type(model).__name__}."
            )
        self._source_tokenizer = source_tokenizer
        self._max_source_length = max_source_length
        self._one = _forced(model.with_attention(layer, head))
        self._every: Callable[..., Any] | None = None
        self._model = model

    def __call__(
        self, lines: Sequence[str], found: Sequence[Sequence[Hypothesis]]
    ) -> list[list[Attention]]:
        """The attention of the layer and head that were chosen, or of their mean.

        Args:
            lines: Lines of text.
            found: For each line its translations, or those of them that matter.

        Returns:
            As `found`, the `Attention` of each.
        """
        return self._attend(self._one, lines, found)

    def every(
        self, lines: Sequence[str], found: Sequence[Sequence[Hypothesis]]
    ) -> list[list[Attention]]:
        """As a call, with `weights` of all layers and heads, `(L, H, T, S)`."""
        if self._every is None:
            self._every = _forced(self._model.with_attention(None))
        return self._attend(self._every, lines, found)

    def _attend(
        self,
        attend: Callable[..., Any],
        lines: Sequence[str],
        found: Sequence[Sequence[Hypothesis]],
    ) -> list[list[Attention]]:
        sources, _ = encode_sources(lines, self._source_tokenizer, self._max_source_length)
        pairs = [
            (tuple([*source, EOS]), (*one.tokens, *([EOS] if one.ended else [])))
            for source, every in zip(sources, found, strict=True)
            for one in every
        ]
        results: list[Attention | None] = [None] * len(pairs)
        for rows in _batches(pairs):
            weights = attend(
                backend.padded([pairs[i][0] for i in rows]),
                backend.padded([[BOS, *pairs[i][1][:-1]] for i in rows]),
            )
            array = np.asarray(keras.ops.convert_to_numpy(weights), np.float32)
            for i, of_row in zip(rows, array, strict=False):
                source, target = pairs[i]
                # A copy, for a view would keep the whole batch.
                kept = of_row[..., : len(target), : len(source)].copy()
                results[i] = Attention(source, target, kept)
        given = iter(results)
        return [[one for one in (next(given) for _ in every) if one] for every in found]


def _forced(model: Any) -> Callable[..., Any]:
    def attention(source: Any, target: Any) -> Any:
        return model({"source": source, "target": target}, training=False)["attention"]

    return backend.compiled(attention, model.variables, ranks=[2, 2])


def _batches(pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Iterator[list[int]]:
    # Stable, so equal inputs in equal order make equal batches.
    order = sorted(range(len(pairs)), key=lambda i: (-len(pairs[i][1]), -len(pairs[i][0])))
    start = 0
    while start < len(order):
        target = max(1, len(pairs[order[start]][1]))
        source = max(len(pairs[i][0]) for i in order[start : start + _ROWS])
        count = min(_ROWS, max(1, _WEIGHTS // (64 * source * target)))
        yield order[start : start + count]
        start += count
