"""Tags that name the target language of a source, such as `<2fr>` in `<2fr> A dog runs.`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from .errors import InputError

_TAG = re.compile(r"<2([^<>\s]{1,40})>")
_TAGGED = re.compile(rf"\s*{_TAG.pattern}(?:\s|$)")
_NAME = re.compile(r"[^<>\s]{1,40}")
_LISTED = 20


def language_tag(language: str) -> str:
    """Returns the symbol of a target language in a vocabulary.

    Raises InputError if the name has white space or angle brackets, or not 1 to 40 characters.

    Example:

    >>> language_tag("fr")
    '<2fr>'
    """
    if not _NAME.fullmatch(language):
        raise InputError(
            f"target language: received {language[:60]!r}, expected a name such as 'fr', of 1 to "
            "40 characters without white space or angle brackets"
        )
    return f"<2{language}>"


def add_language(line: str, language: str) -> str:
    """Puts the tag of a target language before a line. A blank line stays as it is.

    Example:

    >>> add_language("A dog runs.", "fr")
    '<2fr> A dog runs.'

    Reference:
        Johnson et al., "Google's Multilingual Neural Machine Translation System: Enabling
        Zero-Shot Translation", TACL 2017, https://arxiv.org/abs/1611.04558
    """
    return f"{language_tag(language)} {line}" if line.strip() else line


def split_language(line: str) -> tuple[str | None, str]:
    """Returns the target language that a line begins with, or None, and the rest of the line.

    Example:

    >>> split_language("<2fr> A dog runs.")
    ('fr', 'A dog runs.')
    """
    match = _TAGGED.match(line)
    return (None, line) if match is None else (match[1], line[match.end() :])


def without_languages(lines: Iterable[str], languages: Collection[str]) -> list[str]:
    """Returns lines without the tags that a model with these languages reads."""
    return [split_language(line)[1] if languages else line for line in lines]


def language_ids(symbols: Iterable[tuple[int, str]]) -> Mapping[str, int]:
    """Returns the ids of the tags among the symbols of a vocabulary, by language.

    Example:

    >>> language_ids([(260, "<2fr>"), (261, "<sep>"), (262, "<2de>")])
    {'fr': 260, 'de': 262}
    """
    return {match[1]: id for id, symbol in symbols if (match := _TAG.fullmatch(symbol))}


def with_languages(
    lines: Sequence[str], languages: Collection[str], to: str | None = None
) -> list[str]:
    """Returns the lines as a model with these languages reads them: each begins with a tag.

    Args:
        lines: Lines of text. A line that begins with a tag keeps it, and a blank line needs none.
        languages: The languages of the model; empty for a model without languages, whose lines
            do not change.
        to: The target language of lines without a tag.

    Raises:
        InputError: If the model has no languages, a language is unknown, or a line has none.

    Example:

    >>> with_languages(["A dog runs.", "<2de> A cat."], ["de", "fr"], to="fr")
    ['<2fr> A dog runs.', '<2de> A cat.']
    """
    if not languages:
        if to is not None:
            raise InputError(
                f"target language: received {to!r}, expected none: the model has no languages "
                "(train with --columns source=1,target=2,target_language=3)"
            )
        return list(lines)
    default = None if to is None else _known(to, languages)
    return [_tagged(line, languages, default) for line in lines]


def _tagged(line: str, languages: Collection[str], default: str | None) -> str:
    if not line.strip():
        return line
    language, rest = split_language(line)
    if language is not None:
        return add_language(rest, _known(language, languages))
    if default is None:
        text = line if len(line) <= 30 else f"{line[:30]}..."
        first = min(languages)
        raise InputError(
            f"no target language for {text!r}, expected one of {_listed(languages)}: give it with "
            f"--to {first}, or begin the line with <2{first}>"
        )
    return add_language(line, default)


def _known(language: str, languages: Collection[str]) -> str:
    """Returns the name of a language as in the vocabulary, which may be lowercase."""
    if language in languages:
        return language
    for name in languages:
        if name.casefold() == language.casefold():
            return name
    raise InputError(
        f"target language: received {language[:60]!r}, expected one of {_listed(languages)}"
    )


def _listed(languages: Collection[str]) -> str:
    names = sorted(languages)
    more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more
