"""The built-in corpus: dates in the formats of many languages, and in ISO 8601."""

import datetime
import itertools
import random
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from babel import Locale
from babel.dates import format_date

# Locales with Gregorian dates in the digits 0-9, which are unambiguous. Thai years may be Buddhist,
# and Persian numeric dates may be of the Persian calendar.
LOCALES = tuple(
    """
    ar_MA bg ca cs cy da de el en_GB en_US es et fi fr ga gl he hi hr hu id is it ja
    ka ko lt lv nb nl pl pt ro ru sk sl sv sw tr uk vi zh zh_Hant
    """.split()
)

# One century, so that the last two digits determine the year.
FIRST_DAY = datetime.date(1950, 1, 1)
LAST_DAY = datetime.date(2049, 12, 31)

_MAX_PAIRS = 1_000_000
_LOWER_CASE_SHARE = 0.2
# A date with dots begins with the day or the year. With other separators, as in the US, it may
# begin with the month.
_ORDERS_WITH_DOTS = ("dmy", "ymd")
_ORDERS = ("dmy", "mdy", "ymd")
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
    """A date format of a locale: a CLDR pattern and, if the pattern needs them, the 12 month names.

    The format is ambiguous if only the order tells day and month apart.
    """

    locale: Locale
    pattern: str
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
    With the same version of Babel, the result is deterministic, and a larger `count`, at most a
    million, only appends pairs.

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
        if lowercase and style.locale.language != "tr":
            source = source.lower()
        yield source, date.isoformat()


def _format(date: datetime.date, style: _Style) -> str | None:
    """Formats a date, or returns None if the result is ambiguous."""
    if style.month_words and _fold(style.month_words[date.month - 1]) in _ambiguous_months():
        return None
    source = format_date(date, style.pattern, style.locale).translate(_UNTYPED)
    if style.ambiguous and _readings(source) != {date}:
        return None
    return source


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
    return tuple(_styles_of(Locale.parse(name)) for name in LOCALES)


def _styles_of(locale: Locale) -> tuple[_Style, ...]:
    patterns = [locale.date_formats[name].pattern for name in ("full", "long", "medium", "short")]
    patterns += [
        locale.datetime_skeletons[name].pattern
        for name in ("yMMMEd", "yMMMd", "yMd")
        if name in locale.datetime_skeletons
    ]
    styles = []
    # Remove duplicates, because formats of different widths may have the same pattern.
    for pattern in dict.fromkeys(patterns):
        fields = re.sub(r"'[^']*'", "", pattern)
        if match := re.search(r"([ML])\1{2,3}", fields):
            context = "format" if match[1] == "M" else "stand-alone"
            width = "wide" if len(match[0]) == 4 else "abbreviated"
            names = locale.months[context][width]
            words = tuple(names[month] for month in range(1, 13))
            styles.append(_Style(locale, pattern, words, ambiguous=False))
        else:
            # 2026年3月5日 labels each number.
            ambiguous = not re.search("[年년]", fields)
            styles.append(_Style(locale, pattern, (), ambiguous))
    return tuple(styles)


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
