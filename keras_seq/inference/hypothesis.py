"""The results of a search as text."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from keras_seq.inference.predictor import check_is_list, encode_sources, predict_by_length
from keras_seq.settings import SearchSettings
from keras_seq.text import EOS_ID, Tokenizer, with_languages


class Hypothesis(NamedTuple):
    """One translation.

    Attributes:
        text: The translation.
        score: Its log-probability, normalized by length as the search settings ask for.
        truncated: True if the source or the translation was truncated at its maximum length.
        tokens: The token ids of the translation, without an end token.
        ended: True if an end token followed the ids; False if the maximum length did.
    """

    text: str
    score: float
    truncated: bool
    tokens: tuple[int, ...] = ()
    ended: bool = True

    @classmethod
    def of_ids(cls, ids: Iterable[int], score: float, truncated: bool) -> Hypothesis:
        """Returns a hypothesis without text, from ids that may include the end token."""
        tokens = tuple(map(int, ids))
        content = tuple(token for token in tokens if token != EOS_ID)
        return cls("", float(score), bool(truncated), content, EOS_ID in tokens)


class LineTranslator(ABC):
    """Interface of all translators, with and without Keras."""

    def __call__(self, lines: Sequence[str], *, to: str | None = None) -> list[str]:
        """Returns the best translation of each line, "" for a blank line.

        `to` is the target language, for a model with several; see `Translator.translate`.
        """
        return best_texts(self.translate(lines, to=to))

    @abstractmethod
    def translate(self, lines: Sequence[str], *, to: str | None = None) -> list[list[Hypothesis]]:
        """Returns up to `n_best` translations of each line, best first; none for a blank line."""


class TokenTranslator(LineTranslator):
    """Base class of translators that search over token ids."""

    def __init__(
        self,
        model: Any,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        search: SearchSettings,
        max_source_length: int = 200,
        unknown: bool = False,
    ) -> None:
        self.model = model
        self.source_tokenizer, self.target_tokenizer = source_tokenizer, target_tokenizer
        self.search_settings = search
        self.max_source_length = max_source_length
        self.unknown = unknown
        self._prepare_search()

    @abstractmethod
    def _prepare_search(self) -> None:
        """Builds the search, or raises InputError if a setting is not supported."""

    def translate_lines(
        self,
        lines: Sequence[str],
        search: Callable[..., Iterable[list[Hypothesis]]],
        prefixes: Sequence[str] | None = None,
        to: str | None = None,
    ) -> list[list[Hypothesis]]:
        """Translates lines by a search over token ids. A blank line has no translations.

        `to` is the target language of lines that do not begin with the tag of one. `search` maps
        the ids of all lines that are not blank, without end tokens and the longest first, to
        hypotheses without text. Its second argument are the ids of the prefixes.
        """
        check_is_list("lines", lines)
        lines = with_languages(lines, self.source_tokenizer.languages, to)
        if prefixes is not None:
            check_is_list("prefixes", prefixes)
            if len(prefixes) != len(lines):
                raise ValueError(f"received {len(prefixes)} prefixes for {len(lines)} lines.")
        ids, is_truncated = encode_sources(lines, self.source_tokenizer, self.max_source_length)
        filled = [i for i, tokens in enumerate(ids) if tokens]

        def translate(rows: list[int]) -> Iterable[list[Hypothesis]]:
            sources = [ids[i] for i in rows]
            if prefixes is None:
                return search(sources)
            return search(sources, self.target_tokenizer.encode([prefixes[i] for i in rows]))

        results: list[list[Hypothesis]] = [[] for _ in lines]
        rows = predict_by_length(filled, translate, length=lambda i: len(ids[i]))
        for i, hypotheses in zip(filled, rows, strict=True):
            results[i] = decode_hypotheses(hypotheses, self.target_tokenizer, is_truncated[i])
        return results


def decode_hypotheses(
    hypotheses: Sequence[Hypothesis], tokenizer: Tokenizer, source_truncated: bool = False
) -> list[Hypothesis]:
    """Returns the hypotheses of one source with their texts."""
    texts = tokenizer.decode([row.tokens for row in hypotheses])
    return [
        row._replace(text=text, truncated=source_truncated or row.truncated)
        for text, row in zip(texts, hypotheses, strict=True)
    ]


def best_texts(results: Iterable[list[Hypothesis]]) -> list[str]:
    """Returns the best text of each list of hypotheses, "" for an empty list."""
    return [hypotheses[0].text if hypotheses else "" for hypotheses in results]
