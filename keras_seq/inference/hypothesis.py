"""What every engine shares: lines to ids for a search, and what it found back to lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from keras_seq.text import EOS_ID, Tokenizer

# A piece of a vocabulary is seldom longer, so a line clipped to this many characters for each
# token allowed loses nothing that the limit on tokens would have kept.
CHARACTERS_PER_TOKEN = 50


class Hypothesis(NamedTuple):
    """One translation.

    Attributes:
        text: The translation.
        score: Its log-probability, normalised by length as the search was told.
        truncated: Whether the source or the translation met its length limit.
        tokens: Its ids, without an end token.
        ended: Whether that followed them; if not, a limit did.
    """

    text: str
    score: float
    truncated: bool
    tokens: tuple[int, ...] = ()
    ended: bool = True


class Found(NamedTuple):
    """What a search found: target ids, their score, whether the limit cut them."""

    tokens: Sequence[int]
    score: float
    truncated: bool


def encode_sources(
    lines: Sequence[str], tokenizer: Tokenizer, max_source_length: int
) -> tuple[list[list[int]], list[bool]]:
    """The ids that a model is given of lines.

    Args:
        lines: Lines of text.
        tokenizer: Turns lines into ids.
        max_source_length: Longer ones are cut to so many tokens.

    Returns:
        The ids of each line, without an end token; and whether it was cut.
    """
    clipped = [line[: max_source_length * CHARACTERS_PER_TOKEN] for line in lines]
    ids = tokenizer.encode(clipped)
    cut = [
        len(tokens) > max_source_length or len(text) < len(line)
        for tokens, text, line in zip(ids, clipped, lines, strict=True)
    ]
    return [tokens[:max_source_length] for tokens in ids], cut


def translate_lines(
    lines: Sequence[str],
    source_tokenizer: Tokenizer,
    target_tokenizer: Tokenizer,
    max_source_length: int,
    search: Callable[..., Iterable[list[Found]]],
    prefixes: Sequence[str] | None = None,
) -> list[list[Hypothesis]]:
    """Translates lines by a search over ids.

    Args:
        lines: Lines of text.
        source_tokenizer: Turns lines into ids.
        target_tokenizer: Turns ids into lines.
        max_source_length: Longer sources are cut to so many tokens.
        search: Called with the ids of all lines that are not blank, without end
            tokens, the longest first, and with the ids of their prefixes if there
            are any; gives what it found for each, best first.
        prefixes: What the translation of each line begins with, "" for nothing.

    Returns:
        For each line its translations, best first; none for a blank line.

    Raises:
        TypeError: If `lines` or `prefixes` is one string.
        ValueError: If there are not as many prefixes as lines.
    """
    if isinstance(lines, str) or isinstance(prefixes, str):
        raise TypeError(
            "`lines` and `prefixes` must be lists of strings, received one string; pass [line]."
        )
    if prefixes is not None and len(prefixes) != len(lines):
        raise ValueError(f"received {len(prefixes)} prefixes for {len(lines)} lines.")
    ids, cut = encode_sources(lines, source_tokenizer, max_source_length)
    # Stable, so equal inputs in equal order make equal batches.
    order = sorted((i for i, tokens in enumerate(ids) if tokens), key=lambda i: -len(ids[i]))
    results: list[list[Hypothesis]] = [[] for _ in lines]
    sources = [ids[i] for i in order]
    if prefixes is None:
        every = search(sources)
    else:
        every = search(sources, target_tokenizer.encode([prefixes[i] for i in order]))
    for i, found in zip(order, every, strict=True):
        results[i] = hypotheses_of(found, target_tokenizer, cut[i])
    return results


def hypotheses_of(
    found: Sequence[Found], tokenizer: Tokenizer, source_cut: bool = False
) -> list[Hypothesis]:
    """What a search found for one source, as text.

    Args:
        found: Best first.
        tokenizer: Turns ids into lines.
        source_cut: Whether the source met its limit.
    """
    texts = tokenizer.decode([one.tokens for one in found])
    return [_hypothesis(text, one, source_cut) for text, one in zip(texts, found, strict=True)]


def _hypothesis(text: str, found: Found, source_cut: bool) -> Hypothesis:
    tokens = [int(token) for token in found.tokens]
    return Hypothesis(
        text,
        found.score,
        source_cut or found.truncated,
        tuple(token for token in tokens if token != EOS_ID),
        EOS_ID in tokens,
    )


def best_texts(results: Iterable[list[Hypothesis]]) -> list[str]:
    """The best translation of each line, "" where there is none."""
    return [hypotheses[0].text if hypotheses else "" for hypotheses in results]


def written_lines(
    results: Iterable[list[Hypothesis]], first: int, *, n_best: int, scores: bool
) -> Iterator[str]:
    """Translations as `keras-seq translate` writes them.

    Args:
        results: For each line its translations.
        first: The number of the first line.
        n_best: Above 1, every translation has a line `number<TAB>score<TAB>translation`.
        scores: Whether a line is `score<TAB>translation` where there is one.
    """
    for number, hypotheses in enumerate(results, first):
        rows = [(f"{hypothesis.score:.4f}", hypothesis.text) for hypothesis in hypotheses]
        for score, text in rows or [("0.0000", "")]:
            if n_best > 1:
                yield f"{number}\t{score}\t{text}"
            else:
                yield f"{score}\t{text}" if scores else text


def cut_notice(results: Iterable[list[Hypothesis]], where: str) -> str | None:
    """Says how many of some lines were cut short, None where none was."""
    cut = sum(any(hypothesis.truncated for hypothesis in found[:1]) for found in results)
    if not cut:
        return None
    return (
        f"{where}: {cut} cut short at the longest input or output (data.max_source_length, "
        "search.max_length, search.max_length_ratio, search.max_length_extra)"
    )


def numbered(first: int, count: int) -> str:
    """`line 1`, or `lines 1 to 64`."""
    return f"line {first}" if count == 1 else f"lines {first} to {first + count - 1}"
