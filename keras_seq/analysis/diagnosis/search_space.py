"""The targets that a search can find under its limits and rules."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from keras import ops

from keras_seq.inference.search import search_config
from keras_seq.search.limits import length_limits
from keras_seq.settings import SearchSettings
from keras_seq.text import EOS_ID, PAD_ID, UNK_ID, Tokenizer


class SearchSpace:
    """The space of a search: the targets that its limits and rules allow."""

    def __init__(self, search: SearchSettings, tokenizer: Tokenizer) -> None:
        self._search = search
        self._config = search_config(search, tokenizer)
        self._prefix = tokenizer.encode([search.prefix])[0] if search.prefix else []
        forbidden = search.forbidden or []
        texts = [forbidden] if isinstance(forbidden, str) else forbidden
        self._forbidden = [tuple(ids) for ids in tokenizer.encode(texts)] if texts else []

    def limits(self, source_lengths: Sequence[int]) -> list[tuple[int, int]]:
        """Returns the minimum and maximum target length, with end token, for each source length.

        Source lengths do not include end tokens.
        """
        lengths, rows = np.unique(source_lengths, return_inverse=True)
        source = np.where(np.arange(lengths.max() + 1) <= lengths[:, None], EOS_ID, PAD_ID)
        prefix = ops.array([self._prefix] * len(lengths), "int32") if self._prefix else None
        limits = length_limits(ops.array(source, "int32"), self._config, prefix)
        least, most = map(ops.convert_to_numpy, (limits.min_length, limits.max_length))
        return list(zip(least[rows].tolist(), most[rows].tolist(), strict=True))

    def out_of_reach(self, tokens: Sequence[int], limits: tuple[int, int]) -> str | None:
        """Returns the reason why a search within `limits` cannot find a target, or None."""
        target, start = [*tokens, EOS_ID], len(self._prefix)
        least, most = limits
        if len(target) > most:
            return "longer than the limit"
        if len(target) < least:
            return "shorter than the limit"
        if target[:start] != self._prefix:
            return "without the prefix"
        # The rules do not apply to the prefix.
        if UNK_ID in target[start:]:
            return "with a token that is never generated"
        ends = range(start + 1, len(target) + 1)
        if any(
            tuple(target[max(end - len(ids), 0) : end]) == ids
            for ids in self._forbidden
            for end in ends
        ):
            return "with a forbidden word"
        size, ngrams = self._search.no_repeat_ngram_size, set()
        for end in range(size, len(target) + 1) if size else ():
            gram = tuple(target[end - size : end])
            if gram in ngrams and end > start:
                return "with a repeated n-gram"
            ngrams.add(gram)
        return None
