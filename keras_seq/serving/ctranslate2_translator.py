"""The interface of `keras_seq.Translator` over CTranslate2, several times faster on CPUs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from keras_seq.inference.hypothesis import Found, Hypothesis, best_texts, translate_lines
from keras_seq.run import Run
from keras_seq.serving.ctranslate2_spec import (
    make_spec,
    open_spec,
    require_arithmetic,
    require_transformer,
    vocabularies,
)
from keras_seq.settings import SearchSettings, load_settings
from keras_seq.text import BOS_ID, EOS_ID, PAD_ID, UNK_ID, InputError, Tokenizer

# Settings of a search that mean the same there.
_SHARED = {
    "beam_size",
    "n_best",
    "length_normalization",
    "alpha",
    "max_length",
    "max_length_ratio",
    "max_length_extra",
    "batch_size",
}
_FORBIDDEN = (PAD_ID, UNK_ID, BOS_ID)
# How many times the beam has to end before the search does. With 1, CTranslate2's default, it ends
# before `beam_search` would: on 2,014 captions 64 translations scored worse than that finds and 9
# better; with 2 none worse and 19 better, for a quarter more time.
PATIENCE = 2
# Scored at a time: their logits over a large vocabulary are 130 MB.
_SCORED_TOKENS = 1024


class CTranslate2Translator:
    """Translates lines of text with a trained Transformer, by CTranslate2.

    As `keras_seq.Translator`: the same clipping of sources, limits of lengths
    and scores, and with a beam of 1 the same search. With a wider beam the
    search is CTranslate2's own, in which a hypothesis that ends gives its
    place to the next best, so that now and then it finds another translation,
    of a better score as a rule; what both find has the same score.

    Made by `CTranslate2Translator.load`, or from parts.

    Args:
        model: A `ctranslate2.Translator` of `keras_seq.serving`.
        source_tokenizer: Turns lines into ids.
        target_tokenizer: Turns ids into lines.
        search: Settings of the search.
        max_source_length: Longer sources are cut to so many tokens.

    Raises:
        InputError: If CTranslate2 has no such search.
    """

    def __init__(
        self,
        model: Any,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        search: SearchSettings,
        max_source_length: int = 200,
    ) -> None:
        _check_search(search)
        self._model = model
        self._source_tokenizer = source_tokenizer
        self._target_tokenizer = target_tokenizer
        self._search = search
        self._max_source_length = max_source_length
        self._source_pieces, self._target_pieces = vocabularies(source_tokenizer, target_tokenizer)
        self._target_ids = {piece: i for i, piece in enumerate(self._target_pieces)}

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        which: str | int = "best",
        quantize: str = "float32",
        notice: Callable[[str], None] | None = None,
        **search: Any,
    ) -> CTranslate2Translator:
        """Loads the translator of a run directory; Keras is not imported.

        Args:
            path: The run directory.
            which: Checkpoint: `"best"`, `"latest"`, or the step of a stored one.
            quantize: Arithmetic: `"float32"`, or `"int8"` and what else
                CTranslate2 has on this processor.
            notice: Called with a line for each damaged checkpoint passed over;
                by default it is a warning.
            **search: Settings of the search to use in place of the run's, such
                as `beam_size=1`; see `SearchSettings`.

        Raises:
            InputError: If `path` is not a run with a trained Transformer, or
                CTranslate2 is not installed or cannot do what is asked.
            SettingsError: If a search setting is unknown or out of bounds.
        """
        run = Run.open(path, notice=notice)
        settings = run.settings
        if search:
            overrides = {f"search.{key}": value for key, value in search.items()}
            settings = load_settings(base=settings.to_dict(), overrides=overrides)
        require_transformer(run)
        require_arithmetic(quantize)
        _check_search(settings.search)
        longest = settings.data.max_source_length
        positions = max(longest + 1, settings.search.max_length)
        spec = make_spec(run, which=which, positions=positions)
        return cls(
            open_spec(spec, quantize),
            run.source_tokenizer,
            run.target_tokenizer,
            settings.search,
            longest,
        )

    def __call__(self, lines: Sequence[str]) -> list[str]:
        """Translates lines; a blank line stays blank.

        Args:
            lines: Lines of text.

        Returns:
            As many lines, the best translation of each.
        """
        return best_texts(self.translate(lines))

    def translate(self, lines: Sequence[str]) -> list[list[Hypothesis]]:
        """Translates lines into their n best translations.

        Args:
            lines: Lines of text.

        Returns:
            For each line its translations, best first: `n_best` of them, or
            fewer where the search found fewer; none for a blank line.

        Raises:
            TypeError: If `lines` is one string.
        """
        return translate_lines(
            lines,
            self._source_tokenizer,
            self._target_tokenizer,
            self._max_source_length,
            self._find,
        )

    def _find(self, sources: list[list[int]]) -> list[list[Found]]:
        """Searches all rows, in batches whose rows share the longest limit of theirs.

        A row that ended within its own limit found what it would have found
        alone. The others, few in a trained model, are searched once more.
        """
        pieces = self._source_pieces
        rows = [[pieces[i] for i in source] for source in sources]
        limits = [self._limit(len(source) + 1) for source in sources]
        # Shared out evenly where there are fewer than a full batch for each worker.
        size = min(self._search.batch_size, -(-len(rows) // self._model.num_translators))
        found = self._decode(rows, limits, _batches(range(len(rows)), size))
        unsettled = [i for i in range(len(rows)) if not self._is_settled(found[i], limits[i])]
        # Rows of one batch end at one limit, so here they are of one limit.
        unsettled.sort(key=lambda i: limits[i])
        batches = [
            batch
            for _, group in groupby(unsettled, key=lambda i: limits[i])
            for batch in _batches(list(group), self._search.batch_size)
        ]
        found |= self._decode_thoroughly(rows, limits, batches)
        return [found[i] for i in range(len(rows))]

    def _limit(self, length: int) -> int:
        """Most tokens of a translation, by the length of its source with the end token."""
        search = self._search
        # In float32, as the graph of `beam_search` has it.
        scaled = int(np.float32(length) * np.float32(search.max_length_ratio))
        return min(scaled + search.max_length_extra, search.max_length)

    def _is_settled(self, found: list[Found], limit: int) -> bool:
        """Whether the search would have come to the same end within the row's own limit."""
        return all(
            not one.truncated
            and len(one.tokens) <= limit
            and not any(token in _FORBIDDEN for token in one.tokens)
            for one in found
        )

    def _decode(
        self,
        rows: list[list[str]],
        limits: list[int],
        batches: Iterable[Sequence[int]],
        **options: Any,
    ) -> dict[int, list[Found]]:
        """Searches batches, each within the longest limit of its rows; gives found by row."""
        search = self._search
        options = {"num_hypotheses": search.n_best, "patience": PATIENCE, **options}
        pending = [
            (
                batch,
                self._model.translate_batch(
                    [rows[i] for i in batch],
                    beam_size=search.beam_size,
                    length_penalty=self._alpha,
                    max_decoding_length=max(limits[i] for i in batch),
                    min_decoding_length=0,
                    max_input_length=0,
                    return_scores=True,
                    return_end_token=True,
                    asynchronous=True,
                    **options,
                ),
            )
            for batch in batches
        ]
        return {
            i: self._read(promised.result())
            for batch, results in pending
            for i, promised in zip(batch, results, strict=True)
        }

    def _read(self, result: Any) -> list[Found]:
        found = []
        for pieces, score in zip(result.hypotheses, result.scores, strict=True):
            tokens = [self._target_ids[piece] for piece in pieces]
            found.append(Found(tokens, score, tokens[-1] != EOS_ID))
        return found

    def _decode_thoroughly(
        self, rows: list[list[str]], limits: list[int], batches: Iterable[Sequence[int]]
    ) -> dict[int, list[Found]]:
        """Searches again, asking for all that the search ends with, of which the n best are kept.

        So those that ended come before those that were cut, whatever their
        scores. Tokens that no translation has are not generated here; while it
        searches, CTranslate2 shares out their probability among the others,
        so the scores are taken anew.
        """
        options: dict[str, Any] = {
            "suppress_sequences": [[self._target_pieces[token]] for token in _FORBIDDEN]
        }
        beam_size = self._search.beam_size
        if beam_size > 1:
            # Fewer than that had ended before the limit, or it would not have come to it; at the
            # limit all the others do.
            patience = PATIENCE + 1
            options |= {"num_hypotheses": patience * beam_size, "patience": patience}
        found = self._decode(rows, limits, batches, **options)
        best = {i: sorted(every, key=_rank)[: self._search.n_best] for i, every in found.items()}
        pairs = [(rows[i], one) for i, chosen in best.items() for one in chosen]
        scored = iter(self._rescored(pairs))
        return {i: sorted((next(scored) for _ in chosen), key=_rank) for i, chosen in best.items()}

    def _rescored(self, pairs: list[tuple[list[str], Found]]) -> list[Found]:
        """Hypotheses with their log-probabilities as the model has them."""
        if not pairs:
            return []
        pieces = self._target_pieces
        results = self._model.score_batch(
            [row for row, _ in pairs],
            [[pieces[token] for token in one.tokens if token != EOS_ID] for _, one in pairs],
            max_batch_size=_SCORED_TOKENS,
            batch_type="tokens",
            max_input_length=0,
        )
        return [
            # The end token is scored, too, even where the search did not get to it.
            one._replace(
                score=sum(result.log_probs[: len(one.tokens)]) / len(one.tokens) ** self._alpha
            )
            for (_, one), result in zip(pairs, results, strict=True)
        ]

    @property
    def _alpha(self) -> float:
        return 0.0 if self._search.length_normalization == "none" else self._search.alpha


def _rank(found: Found) -> tuple[bool, float]:
    return found.truncated, -found.score


def _batches(rows: Sequence[int], size: int) -> list[Sequence[int]]:
    return [rows[start : start + size] for start in range(0, len(rows), max(size, 1))]


def _check_search(search: SearchSettings) -> None:
    for name, field in type(search).model_fields.items():
        if name not in _SHARED and getattr(search, name) != field.default:
            raise InputError(
                f"search.{name}: received {getattr(search, name)}, which is not offered with "
                "CTranslate2; use --engine tensorflow"
            )
    if search.length_normalization == "gnmt":
        raise InputError(
            'search.length_normalization: CTranslate2 has no "gnmt", expected "average" or '
            '"none"; or use --engine tensorflow'
        )
