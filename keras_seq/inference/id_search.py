"""Compiled search over batches of token ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np

from keras_seq import backend
from keras_seq.inference.hypothesis import Hypothesis
from keras_seq.inference.search import make_search
from keras_seq.process.threads import num_search_threads, parallel_map
from keras_seq.run.memory import require_search_memory
from keras_seq.search import SearchResult
from keras_seq.settings import SearchSettings
from keras_seq.text import EOS_ID, InputError, Tokenizer


class IdSearch:
    """Searches the targets of many sources, both as ids; compiles at the first call.

    The hypotheses of a source do not depend on its batch. With `unknown`, targets may contain the
    unknown token.
    """

    def __init__(
        self, model: Any, search: SearchSettings, tokenizer: Tokenizer, unknown: bool = False
    ) -> None:
        self._settings = search
        self._vocabulary_size = tokenizer.vocabulary_size
        find = make_search(model, search, tokenizer, unknown=unknown)
        self._search = backend.compiled(find, model.variables, ranks=[2])
        self._search_with_prefixes = backend.compiled(find, model.variables, ranks=[2, 2])

    def __call__(
        self, sources: Sequence[list[int]], prefixes: Sequence[list[int]] | None = None
    ) -> Iterator[list[Hypothesis]]:
        """Yields the hypotheses of each source, best first.

        Sources have no end tokens; sorting them by length reduces padding. `prefixes` replace
        `search.prefix`. Raises InputError if a prefix has `search.max_length` tokens or more.
        """
        size, longest = self._settings.batch_size, self._settings.max_length
        for prefix in prefixes or ():
            if len(prefix) >= longest:
                raise InputError(
                    f"a prefix has {len(prefix)} tokens, expected fewer than "
                    f"search.max_length ({longest})"
                )
        rows = min(size, len(sources))
        require_search_memory(rows, self._settings.hypotheses, self._vocabulary_size)

        def search(start: int) -> list[list[Hypothesis]]:
            batch = sources[start : start + size]
            arrays = [self._pad([[*source, EOS_ID] for source in batch])]
            search_batch = self._search
            if prefixes is not None:
                arrays.append(self._pad(prefixes[start : start + size], multiple=8))
                search_batch = self._search_with_prefixes
            result = keras.tree.map_structure(keras.ops.convert_to_numpy, search_batch(*arrays))
            return [hypotheses_of_row(result, row) for row in range(len(batch))]

        threads = num_search_threads() if backend.computes_on_one_processor() else 1
        for batch in parallel_map(search, range(0, len(sources), size), threads):
            yield from batch

    def _pad(self, lists: Sequence[Sequence[int]], multiple: int = 16) -> np.ndarray:
        return backend.padded(lists, self._settings.batch_size, multiple)


def hypotheses_of_row(result: SearchResult, row: int) -> list[Hypothesis]:
    """Returns the hypotheses of one row of a batch, without texts."""
    columns = (part[row] for part in result)
    return [
        Hypothesis.of_ids(tokens[:length], score, truncated)
        for tokens, length, score, truncated in zip(*columns, strict=True)
        if length
    ]
