"""The built-in corpus: dates in the formats of many languages, and in ISO 8601."""

import datetime
import itertools
import json
import random
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

# Locales with Gregorian dates in the digits 0-9, which are unambiguous. Thai years may be Buddhist,
# and Persian numeric dates may be of the Persian calendar.
LOCALES = tuple(
    """
    ar_MA bg ca cs cy da de el en_GB en_US es et fi fr ga gl he hi hr hu id is it ja
    ka ko lt lv nb nl pl pt ro ru sk sl sv sw tr uk vi zh zh_Hant
    """.split()
)

# The date formats of CLDR for these locales, written by tools/make_date_patterns.py.
PATTERNS_FILE = Path(__file__).with_name("date_patterns.json")

# One century, so that the last two digits determine the year.
FIRST_DAY = datetime.date(1950, 1, 1)
LAST_DAY = datetime.date(2049, 12, 31)

_MAX_PAIRS = 1_000_000
_LOWER_CASE_SHARE = 0.2
# A date with dots begins with the day or the year. With other separators, as in the US, it may
# begin with the month.
_ORDERS_WITH_DOTS = ("dmy", "ymd")
_ORDERS = ("dmy", "mdy", "ymd")
# A quoted literal, or a field: year, month, stand-alone month, day, weekday, stand-alone weekday.
_QUOTED_OR_FIELD = re.compile(r"'([^']*)'|([yMLdEc])\2*")
_THREE_NUMBERS = re.compile(r"\D*(\d+)(\D+)(\d+)\D+(\d+)\D*")
# Direction marks and no-break spaces, which people do not type.
_UNTYPED = str.maketrans({"\u200e": None, "\u200f": None, "\u00a0": " ", "\u202f": " "})

Pair = tuple[str, str]


@dataclass(frozen=True)
class DateCorpus:
    """Three disjoint splits of pairs (written date, ISO 8601 date)."""

    train: list[Pair]
    valid: list[Pair]
    test: list[Pair]


@dataclass(frozen=True)
class _Style:
    """A date format of a locale: a CLDR pattern, and the 12 month names if the pattern has any.

    `names` has the names of months or weekdays for each field, such as MMMM or EEEE. The format is
    ambiguous if only the order tells day and month apart.
    """

    locale: str
    pattern: str
    names: Mapping[str, list[str]]
    month_words: tuple[str, ...]
    ambiguous: bool


def date_corpus(
    seed: int = 1, train: int = 30_000, valid: int = 1_000, test: int = 1_000
) -> DateCorpus:
    """Generates the built-in corpus: dates of about 40 locales and their ISO 8601 form.

    No source is in two splits, even ignoring case and spacing, and no source is ambiguous. Raises
    ValueError if a number of pairs is negative, or the total exceeds a million.

    Example:

    >>> corpus = date_corpus(train=100, valid=10, test=10)
    >>> len(corpus.train), len(corpus.valid), len(corpus.test)
    (100, 10, 10)
    """
    for name, count in (("train", train), ("valid", valid), ("test", test)):
        if count < 0:
            raise ValueError(f"{name} must be at least 0, not {count}")
    pairs = date_pairs(train + valid + test, seed=seed)
    return DateCorpus(pairs[:train], pairs[train : train + valid], pairs[train + valid :])


def date_pairs(count: int, *, seed: int = 1) -> list[Pair]:
    """Generates pairs of a written date and the same date in ISO 8601.

    The dates are from 1950 to 2049, in the CLDR formats of about 40 locales: with and without
    weekday, with the month in full, abbreviated or numeric, and sometimes in lower case. Ambiguous
    dates, such as 04/05/2026, are omitted. Sources are distinct, even ignoring case and spacing.
    The result is deterministic, and a larger `count`, at most a million, only appends pairs.

    Example:

    >>> import datetime
    >>> source, target = date_pairs(3)[0]
    >>> target == datetime.date.fromisoformat(target).isoformat()
    True
    """
    if not 0 <= count <= _MAX_PAIRS:
        raise ValueError(f"count must be from 0 to {_MAX_PAIRS:,}, not {count:,}")
    return list(itertools.islice(_pairs(random.Random(seed)), count))


def _pairs(generator: random.Random) -> Iterator[Pair]:
    styles = _styles()
    days = (LAST_DAY - FIRST_DAY).days + 1
    seen = set()
    while True:
        locale_styles = styles[generator.randrange(len(styles))]
        style = locale_styles[generator.randrange(len(locale_styles))]
        date = FIRST_DAY + datetime.timedelta(generator.randrange(days))
        lowercase = generator.random() < _LOWER_CASE_SHARE
        source = _format(date, style)
        if source is None:
            continue
        key = " ".join(unicodedata.normalize("NFKC", source).casefold().split())
        if key in seen:
            continue
        seen.add(key)
        # `lower` would confuse the dotted and the dotless i of Turkish.
        if lowercase and style.locale != "tr":
            source = source.lower()
        yield source, date.isoformat()


def _format(date: datetime.date, style: _Style) -> str | None:
    """Formats a date, or returns None if the result is ambiguous."""
    if style.month_words and _fold(style.month_words[date.month - 1]) in _ambiguous_months():
        return None
    source = render_date(date, style.pattern, style.names).translate(_UNTYPED)
    if style.ambiguous and _readings(source) != {date}:
        return None
    return source


def render_date(date: datetime.date, pattern: str, names: Mapping[str, list[str]]) -> str:
    """Writes a date in a CLDR pattern.

    Args:
        date: The date.
        pattern: A pattern such as "EEEE, d MMMM y". Text in single quotes is literal.
        names: The 12 months or the 7 weekdays from Monday, for each field of letters in `pattern`.

    Reference: Unicode Technical Standard 35, part 4, "Date Format Patterns".
    """

    def text(match: re.Match[str]) -> str:
        field, letter = match[0], match[2]
        if letter is None:
            return match[1]
        if field in names:
            return names[field][date.month - 1 if letter in "ML" else date.weekday()]
        number = {"y": date.year, "M": date.month, "L": date.month, "d": date.day}[letter]
        digits = str(number).zfill(len(field))
        return digits[-2:] if field == "yy" else digits

    return _QUOTED_OR_FIELD.sub(text, pattern)


def _readings(source: str) -> set[datetime.date]:
    """Returns all dates that a text with three numbers can mean."""
    match = _THREE_NUMBERS.fullmatch(source)
    if match is None:
        return set()
    numbers = (match[1], match[3], match[4])
    dates = set()
    for order in _ORDERS_WITH_DOTS if "." in match[2] else _ORDERS:
        fields = dict(zip(order, numbers, strict=True))
        if len(fields["y"]) not in (2, 4) or len(fields["d"]) > 2 or len(fields["m"]) > 2:
            continue
        year = int(fields["y"])
        if len(fields["y"]) == 2:
            year += 2000 if year < FIRST_DAY.year % 100 else 1900
        try:
            dates.add(datetime.date(year, int(fields["m"]), int(fields["d"])))
        except ValueError:
            continue
    return dates


@lru_cache(maxsize=1)
def _styles() -> tuple[tuple[_Style, ...], ...]:
    locales = json.loads(PATTERNS_FILE.read_text(encoding="utf-8"))["locales"]
    styles = []
    for name in LOCALES:
        patterns, names = locales[name]["patterns"], locales[name]["names"]
        styles.append(tuple(_style(name, pattern, names) for pattern in patterns))
    return tuple(styles)


def _style(locale: str, pattern: str, names: Mapping[str, list[str]]) -> _Style:
    fields = re.sub(r"'[^']*'", "", pattern)
    if match := re.search(r"([ML])\1{2,3}", fields):
        return _Style(locale, pattern, names, tuple(names[match[0]]), ambiguous=False)
    # 2026年3月5日 labels each number.
    return _Style(locale, pattern, names, (), ambiguous=not re.search("[年년]", fields))


def _fold(word: str) -> str:
    return unicodedata.normalize("NFKC", word).casefold().rstrip(".")


@lru_cache(maxsize=1)
def _ambiguous_months() -> frozenset[str]:
    """Returns the month names with several meanings.

    For example, listopada is October in Croatian and November in Polish.
    """
    months: dict[str, set[int]] = {}
    for style in itertools.chain.from_iterable(_styles()):
        for month, word in enumerate(style.month_words, 1):
            months.setdefault(_fold(word), set()).add(month)
    return frozenset(word for word, numbers in months.items() if len(numbers) > 1)
