"""A compiled search over token ids, in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import keras
import numpy as np

from keras_seq import backend
from keras_seq.inference.hypothesis import Found
from keras_seq.inference.search import make_search
from keras_seq.runtime.threads import num_search_threads, parallel_map
from keras_seq.search import SearchResult
from keras_seq.settings import SearchSettings
from keras_seq.text import EOS_ID, InputError, Tokenizer


class IdSearch:
    """Looks for targets of many sources, both as ids; compiled at the first call.

    What is found for a source does not depend on its batch.

    Args:
        model: A model of `keras_seq.models`, or an `Ensemble` of them.
        search: Settings of the search.
        tokenizer: Of the target, for the texts among the settings.
        unknown: Whether targets may have the unknown token.
    """

    def __init__(
        self, model: Any, search: SearchSettings, tokenizer: Tokenizer, unknown: bool = False
    ) -> None:
        self._settings = search
        find = make_search(model, search, tokenizer, unknown=unknown)
        self._search = backend.compiled(find, model.variables, ranks=[2])
        self._search_with_prefixes = backend.compiled(find, model.variables, ranks=[2, 2])

    def __call__(
        self, sources: Sequence[list[int]], prefixes: Sequence[list[int]] | None = None
    ) -> Iterator[list[Found]]:
        """What is found for each source, best first.

        Args:
            sources: Ids without end tokens, best sorted by length.
            prefixes: What the target of each begins with, in place of `search.prefix`.

        Raises:
            InputError: If a prefix fills all of `search.max_length`.
        """
        size, longest = self._settings.batch_size, self._settings.max_length
        for prefix in prefixes or ():
            if len(prefix) >= longest:
                raise InputError(
                    f"a prefix has {len(prefix)} tokens, expected fewer than "
                    f"search.max_length ({longest})"
                )

        def search(start: int) -> list[list[Found]]:
            rows = sources[start : start + size]
            batch = self._pad([[*source, EOS_ID] for source in rows])
            if prefixes is None:
                found = self._search(batch)
            else:
                found = self._search_with_prefixes(
                    batch, self._pad(prefixes[start : start + size], multiple=8)
                )
            found = SearchResult(*map(keras.ops.convert_to_numpy, found))
            return [
                _found(SearchResult(*(part[row] for part in found))) for row in range(len(rows))
            ]

        threads = num_search_threads() if backend.computes_on_one_processor() else 1
        for batch in parallel_map(search, range(0, len(sources), size), threads):
            yield from batch

    def _pad(self, lists: Sequence[Sequence[int]], multiple: int = 16) -> np.ndarray:
        return backend.padded(lists, self._settings.batch_size, multiple)


def _found(row: SearchResult) -> list[Found]:
    return [
        Found(row.tokens[n, :length], float(row.scores[n]), bool(row.truncated[n]))
        for n, length in enumerate(row.lengths)
        if length
    ]
