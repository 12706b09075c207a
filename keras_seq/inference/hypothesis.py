"""The results of a search as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from keras_seq.inference.predictor import check_is_list, encode_sources, predict_by_length
from keras_seq.text import EOS_ID, Tokenizer


class Hypothesis(NamedTuple):
    """One translation.

    Attributes:
        text: The translation.
        score: Its log-probability, normalized by length as the search settings ask for.
        truncated: True if the source or the translation was cut at its maximum length.
        tokens: The token ids of the translation, without an end token.
        ended: True if an end token followed the ids; False if the maximum length did.
    """

    text: str
    score: float
    truncated: bool
    tokens: tuple[int, ...] = ()
    ended: bool = True


class Found(NamedTuple):
    """Target ids that a search found, their score, and whether the maximum length cut them."""

    tokens: Sequence[int]
    score: float
    truncated: bool


def translate_lines(
    lines: Sequence[str],
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    max_source_length: int,
    search: Callable[..., Iterable[list[Found]]],
    prefixes: Sequence[str] | None = None,
) -> list[list[Hypothesis]]:
    """Translates lines with a search over ids; a blank line has no translations.

    `search` maps the ids of all lines that are not blank, without end tokens and the longest first,
    to hypotheses for each. Its second argument are the ids of the prefixes.
    """
    check_is_list("lines", lines)
    if prefixes is not None:
        check_is_list("prefixes", prefixes)
        if len(prefixes) != len(lines):
            raise ValueError(f"received {len(prefixes)} prefixes for {len(lines)} lines.")
    ids, cut = encode_sources(lines, source_tokenizer, max_source_length)
    filled = [i for i, tokens in enumerate(ids) if tokens]

    def translate(rows: list[int]) -> Iterable[list[Found]]:
        sources = [ids[i] for i in rows]
        if prefixes is None:
            return search(sources)
        return search(sources, target_tokenizer.encode([prefixes[i] for i in rows]))

    results: list[list[Hypothesis]] = [[] for _ in lines]
    found = predict_by_length(filled, translate, length=lambda i: len(ids[i]))
    for i, hypotheses in zip(filled, found, strict=True):
        results[i] = decode_hypotheses(hypotheses, target_tokenizer, cut[i])
    return results


def decode_hypotheses(
    found: Sequence[Found], tokenizer: Tokenizer, source_cut: bool = False
) -> list[Hypothesis]:
    """Returns the hypotheses of one source with their texts."""
    hypotheses = []
    for text, row in zip(tokenizer.decode([row.tokens for row in found]), found, strict=True):
        tokens = tuple(int(token) for token in row.tokens)
        content = tuple(token for token in tokens if token != EOS_ID)
        truncated = source_cut or row.truncated
        hypotheses.append(Hypothesis(text, row.score, truncated, content, EOS_ID in tokens))
    return hypotheses


def best_texts(results: Iterable[list[Hypothesis]]) -> list[str]:
    """Returns the best text of each list of hypotheses, "" for an empty list."""
    return [hypotheses[0].text if hypotheses else "" for hypotheses in results]
