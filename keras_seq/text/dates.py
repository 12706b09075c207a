"""The embedded corpus: dates as people write them, and as ISO 8601 writes them."""

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

# Locales whose readers write Gregorian dates in the digits 0-9, so that nothing
# has to be guessed: Thai years may be Buddhist, Persian numeric dates Persian.
LOCALES = tuple(
    """
    ar_MA bg ca cs cy da de el en_GB en_US es et fi fr ga gl he hi hr hu id is it ja
    ka ko lt lv nb nl pl pt ro ru sk sl sv sw tr uk vi zh zh_Hant
    """.split()
)

# A century, so that the last two digits of a year are the year.
FIRST_DAY = datetime.date(1950, 1, 1)
LAST_DAY = datetime.date(2049, 12, 31)

_MAX_PAIRS = 1_000_000
_LOWER_CASE_SHARE = 0.2
# A dotted date begins with the day, or with a year; with other separators the
# month of an American may come first.
_ORDERS_WITH_DOTS = ("dmy", "ymd")
_ORDERS = ("dmy", "mdy", "ymd")
_THREE_NUMBERS = re.compile(r"\D*(\d+)(\D+)(\d+)\D+(\d+)\D*")
# Marks that steer the direction of a line, and spaces that forbid its end: nobody types them.
_UNTYPED = str.maketrans({"\u200e": None, "\u200f": None, "\u00a0": " ", "\u202f": " "})

Pair = tuple[str, str]


@dataclass(frozen=True)
class DateCorpus:
    """Pairs (date as written, ISO 8601) in three parts without a common string.

    Attributes:
        train, valid, test: Lists of pairs.
    """

    train: list[Pair]
    valid: list[Pair]
    test: list[Pair]


@dataclass(frozen=True)
class _Style:
    """One way in which one locale writes dates."""

    locale: Locale
    pattern: str
    # Of months 1 to 12; empty for a style that writes numbers.
    month_words: tuple[str, ...]
    # Nothing but order says which number is the day.
    numeric: bool


def date_corpus(
    seed: int = 1, train: int = 30_000, valid: int = 1_000, test: int = 1_000
) -> DateCorpus:
    """Make the embedded corpus: some 40 locales' dates and their ISO 8601 form.

    No source string is in two parts, not even in other case or spacing, and no
    source string means two dates.

    Args:
        seed: Another seed gives other pairs.
        train, valid, test: The number of pairs in each part.

    Returns:
        The three parts.

    Raises:
        ValueError: If a number is negative, or all of them make more than a
            million.

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
    """Make pairs of a date as people write it and the same date in ISO 8601.

    Days from 1950 to 2049 in the formats that CLDR has for more than 30
    locales: with and without weekday, month in full, short or as a number, and
    now and then all in lower case. A form that could mean two dates, such as
    04/05/2026, is left out.

    Args:
        count: The number of pairs.
        seed: Another seed gives other pairs. Equal seeds give equal pairs for one version
            of Babel, and fewer pairs are the beginning of more.

    Returns:
        Pairs with sources that are all different, in other case and spacing too.

    Raises:
        ValueError: If `count` is not between 0 and a million.

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
        of_locale = styles[generator.randrange(len(styles))]
        style = of_locale[generator.randrange(len(of_locale))]
        date = FIRST_DAY + datetime.timedelta(generator.randrange(days))
        in_lower_case = generator.random() < _LOWER_CASE_SHARE
        source = _written(date, style)
        if source is None:
            continue
        key = " ".join(unicodedata.normalize("NFKC", source).casefold().split())
        if key in seen:
            continue
        seen.add(key)
        # Turkish has two letters i, which `lower` would mix.
        if in_lower_case and style.locale.language != "tr":
            source = source.lower()
        yield source, date.isoformat()


def _written(date: datetime.date, style: _Style) -> str | None:
    """Return the date in this style, or None where it could be read otherwise."""
    if style.month_words and _plain(style.month_words[date.month - 1]) in _words_of_two_months():
        return None
    source = format_date(date, style.pattern, style.locale).translate(_UNTYPED)
    if style.numeric and _readings(source) != {date}:
        return None
    return source


def _readings(source: str) -> set[datetime.date]:
    """Return every date that three numbers can mean."""
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
    # The same pattern may be both long and medium; once is enough.
    for pattern in dict.fromkeys(patterns):
        fields = re.sub(r"'[^']*'", "", pattern)
        if match := re.search(r"([ML])\1{2,3}", fields):
            context = "format" if match[1] == "M" else "stand-alone"
            width = "wide" if len(match[0]) == 4 else "abbreviated"
            names = locale.months[context][width]
            words = tuple(names[month] for month in range(1, 13))
            styles.append(_Style(locale, pattern, words, numeric=False))
        else:
            # 2026年3月5日 says what each number is.
            numeric = not re.search("[年년]", fields)
            styles.append(_Style(locale, pattern, (), numeric))
    return tuple(styles)


def _plain(word: str) -> str:
    return unicodedata.normalize("NFKC", word).casefold().rstrip(".")


@lru_cache(maxsize=1)
def _words_of_two_months() -> frozenset[str]:
    """Return the month names that are another month elsewhere.

    Croatian listopada is October, Polish listopada is November: neither is used.
    """
    months: dict[str, set[int]] = {}
    for style in itertools.chain.from_iterable(_styles()):
        for month, word in enumerate(style.month_words, 1):
            months.setdefault(_plain(word), set()).add(month)
    return frozenset(word for word, found in months.items() if len(found) > 1)
