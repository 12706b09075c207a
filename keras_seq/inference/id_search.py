"""Compiled search over batches of token ids."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import keras

from keras_seq import backend
from keras_seq.inference.hypothesis import Hypothesis
from keras_seq.inference.row_memory import search_memory
from keras_seq.inference.search import make_search
from keras_seq.process.threads import num_search_threads, parallel_map
from keras_seq.run.memory import fitting_count, fitting_rows
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
        self._model, self._settings = model, search
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
        longest = self._settings.max_length
        for prefix in prefixes or ():
            if len(prefix) >= longest:
                raise InputError(
                    f"a prefix has {len(prefix)} tokens, expected fewer than "
                    f"search.max_length ({longest})"
                )

        def search(batch: tuple[int, int]) -> list[list[Hypothesis]]:
            start, rows = batch
            chosen = sources[start : start + rows]
            arrays = [backend.padded([[*source, EOS_ID] for source in chosen], rows)]
            search_batch = self._search
            if prefixes is not None:
                arrays.append(backend.padded(prefixes[start : start + rows], rows, multiple=8))
                search_batch = self._search_with_prefixes
            result = keras.tree.map_structure(keras.ops.convert_to_numpy, search_batch(*arrays))
            return [hypotheses_of_row(result, row) for row in range(len(chosen))]

        for found in parallel_map(search, *self._batches(sources, prefixes)):
            yield from found

    def _batches(
        self, sources: Sequence[list[int]], prefixes: Sequence[list[int]] | None
    ) -> tuple[list[tuple[int, int]], int]:
        """Returns the first source and the number of rows of each batch, and how many batches fit.

        Raises InputError if a single source does not fit into the memory.
        """
        settings, batches, start, largest = self._settings, [], 0, 0.0
        threads = num_search_threads() if backend.computes_on_one_processor() else 1
        threads = min(threads, -(-len(sources) // settings.batch_size))
        while start < len(sources):
            rows = settings.batch_size
            if not backend.wants_static_shapes():
                # A power of two, so that halves of it are the sizes of the other batches.
                rows = min(rows, 1 << (len(sources) - start - 1).bit_length())
            length = 1 + max(map(len, sources[start : start + rows]))
            width = max(map(len, (prefixes or ())[start : start + rows]), default=0)
            steps = max(int(length * settings.max_length_ratio), width) + settings.max_length_extra
            memory = search_memory(
                self._model,
                length,
                settings.hypotheses,
                self._vocabulary_size,
                min(steps, settings.max_length),
            )
            rows = fitting_rows(
                memory,
                rows,
                threads,
                f"a search with {settings.hypotheses:,} hypotheses for {length:,} tokens",
                "lower the number of hypotheses, or use shorter lines",
            )
            largest = max(largest, rows * memory.most)
            batches.append((start, rows))
            start += rows
        return batches, fitting_count(largest, threads)


def hypotheses_of_row(result: SearchResult, row: int) -> list[Hypothesis]:
    """Returns the hypotheses of one row of a batch, without texts."""
    columns = (part[row] for part in result)
    return [
        Hypothesis.of_ids(tokens[:length], score, truncated)
        for tokens, length, score, truncated in zip(*columns, strict=True)
        if length
    ]
