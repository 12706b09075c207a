"""Computes the attention of a model to the source for existing translations."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import keras
import numpy as np

from keras_seq import backend
from keras_seq.inference.hypothesis import Hypothesis
from keras_seq.inference.predictor import encode_sources, predict_by_length
from keras_seq.text import BOS_ID, EOS_ID, InputError, Tokenizer

# Maximum attention weights per batch (64 MB) of a model with 64 heads in all layers together.
_WEIGHTS = 1 << 24
_ROWS = 64

_Pair = tuple[tuple[int, ...], tuple[int, ...]]


class Attention(NamedTuple):
    """The attention weights of one translation.

    Attributes:
        source: The source ids that the model read, with the end token.
        target: The ids of the translation, with the end token unless the maximum length cut it.
        weights: Float32 `(T, S)`: a row for each target token, which sums to 1, and a column for
            each source token; or `(L, H, T, S)` for all layers and heads.
    """

    source: tuple[int, ...]
    target: tuple[int, ...]
    weights: np.ndarray


class AttentionExtractor:
    """Computes attention weights by a forced pass over existing translations.

    Row t belongs to the step that generates token t. The forced pass costs about as much as the
    forward pass of a training step, and the search becomes no slower. A `layer` of -1 is the last
    layer, and a `head` of None is the mean over the heads. An ensemble raises ValueError, because
    each member has its own attention.

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
            raise InputError(
                "`model` must be one model that offers `with_attention`, received "
                f"{type(model).__name__}."
            )
        self._source_tokenizer = source_tokenizer
        self._max_source_length = max_source_length
        self._selected = _forced(model.with_attention(layer, head))
        self._all: Callable[..., Any] | None = None
        self._model = model

    def __call__(
        self,
        lines: Sequence[str],
        translations: Sequence[Sequence[Hypothesis]],
        *,
        all_layers: bool = False,
    ) -> list[list[Attention]]:
        """Returns the attention of the selected layer and head for each translation.

        With `all_layers`, the weights are those of all layers and heads, `(L, H, T, S)`.
        """
        if all_layers and self._all is None:
            self._all = _forced(self._model.with_attention(None))
        attend = (self._all if all_layers else None) or self._selected
        sources, _ = encode_sources(lines, self._source_tokenizer, self._max_source_length)
        pairs = [
            ((*source, EOS_ID), (*hypothesis.tokens, *([EOS_ID] if hypothesis.ended else [])))
            for source, hypotheses in zip(sources, translations, strict=True)
            for hypothesis in hypotheses
        ]

        def predict(pairs: list[_Pair]) -> Iterator[Attention]:
            for batch in _batches(pairs):
                weights = attend(
                    backend.padded([source for source, _ in batch]),
                    backend.padded([[BOS_ID, *target[:-1]] for _, target in batch]),
                )
                rows = np.asarray(keras.ops.convert_to_numpy(weights), np.float32)
                for (source, target), row in zip(batch, rows, strict=False):
                    # Copies the part, because a view would keep the whole batch in memory.
                    part = row[..., : len(target), : len(source)].copy()
                    yield Attention(source, target, part)

        results = iter(
            predict_by_length(pairs, predict, length=lambda pair: (len(pair[1]), len(pair[0])))
        )
        return [list(itertools.islice(results, len(row))) for row in translations]


def _forced(model: Any) -> Callable[..., Any]:
    def attention(source: Any, target: Any) -> Any:
        return model({"source": source, "target": target}, training=False)["attention"]

    return backend.compiled(attention, model.variables, ranks=[2, 2])


def _batches(pairs: list[_Pair]) -> Iterator[list[_Pair]]:
    """Yields batches of pairs with a limited number of attention weights."""
    start = 0
    while start < len(pairs):
        target = max(1, len(pairs[start][1]))
        source = max(len(source) for source, _ in pairs[start : start + _ROWS])
        count = min(_ROWS, max(1, _WEIGHTS // (64 * source * target)))
        yield pairs[start : start + count]
        start += count
