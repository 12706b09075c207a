"""The date corpus, compared with Babel's renderings and Python's date parser."""

import datetime
import hashlib
import itertools
import json
import re
import runpy
import time
import unicodedata
from collections import defaultdict
from functools import lru_cache
from pathlib import Path

import pytest
from babel import Locale
from babel.dates import format_date, format_skeleton

from keras_seq.text import DateCorpus, date_corpus, date_pairs
from keras_seq.text.dates import FIRST_DAY, LAST_DAY, LOCALES, PATTERNS_FILE, render_date

PAIRS = date_pairs(60_000)
LEAP_YEAR = 2024


def normal(text: str) -> str:
    text = re.sub("[\u200e\u200f]", "", text)
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def renderings(date: datetime.date, name: str) -> set[str]:
    found = {format_date(date, width, name) for width in ("full", "long", "medium", "short")}
    for skeleton in ("yMMMEd", "yMMMd", "yMd"):
        if skeleton in Locale.parse(name).datetime_skeletons:
            midnight = datetime.datetime.combine(date, datetime.time())
            found.add(format_skeleton(skeleton, midnight, locale=name))
    return {normal(text) for text in found}


@lru_cache(maxsize=1)
def readings_in_a_leap_year() -> dict[str, set[str]]:
    """Maps each rendering of each day of one year to the days that it can mean."""
    readings = defaultdict(set)
    first = datetime.date(LEAP_YEAR, 1, 1)
    for offset, name in itertools.product(range(366), LOCALES):
        date = first + datetime.timedelta(offset)
        for text in renderings(date, name):
            readings[text].add(date.isoformat())
    return readings


def test_every_target_is_an_iso_date_of_the_century():
    for _, target in PAIRS:
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", target)
        assert FIRST_DAY <= datetime.date.fromisoformat(target) <= LAST_DAY
    assert len({target for _, target in PAIRS}) > 25_000


@pytest.mark.slow
def test_every_source_renders_only_its_own_date():
    readings = readings_in_a_leap_year()
    checked = 0
    for source, target in PAIRS:
        if target.startswith(f"{LEAP_YEAR}-"):
            assert readings[normal(source)] == {target}
            checked += 1
    assert checked > 400


def test_sampled_sources_are_babel_renderings_of_their_dates():
    for source, target in PAIRS[:300]:
        date = datetime.date.fromisoformat(target)
        assert any(normal(source) in renderings(date, name) for name in LOCALES)


FORMATS = json.loads(PATTERNS_FILE.read_text(encoding="utf-8"))["locales"]
# All weekdays and months, and days of one and two digits, in both centuries.
DAYS = [datetime.date(1955, 1, 1) + datetime.timedelta(1_000 * step) for step in range(34)]


@pytest.mark.parametrize("name", LOCALES)
def test_each_format_of_a_locale_renders_as_in_babel(name):
    assert {day.weekday() for day in DAYS} == set(range(7))
    assert {day.month for day in DAYS} == set(range(1, 13))
    for pattern in FORMATS[name]["patterns"]:
        for day in DAYS:
            assert render_date(day, pattern, FORMATS[name]["names"]) == format_date(
                day, pattern, name
            )


def test_date_formats_are_those_that_the_script_takes_from_babel():
    script = Path(__file__).resolve().parents[2] / "tools" / "make_date_patterns.py"
    content = runpy.run_path(str(script))["content"]()
    assert PATTERNS_FILE.read_text(encoding="utf-8") == content


def test_dates_are_those_that_babel_2_19_rendered():
    """The expected number was computed when Babel rendered the dates of `date_pairs`."""
    lines = "".join(f"{source}\t{target}\n" for source, target in PAIRS[:10_000])
    digest = "b4ca0803c2438fa3521a1cc2caf9b8efc00db5ad480c7d0345a08ed781f7eb7f"
    assert hashlib.sha256(lines.encode()).hexdigest() == digest


def parsed(text: str) -> set[datetime.date]:
    """Parses three numbers with `strptime` in each plausible order."""
    separator = re.search(r"\d\s*([^\d\s])", text)[1]
    digits = separator.join(re.findall(r"\d+", text))
    orders = ["%d{0}%m{0}{1}", "{1}{0}%m{0}%d"] + ["%m{0}%d{0}{1}"] * (separator != ".")
    found = set()
    for order, year in itertools.product(orders, ("%Y", "%y")):
        try:
            date = datetime.datetime.strptime(digits, order.format(separator, year)).date()
        except ValueError:
            continue
        if year == "%y":
            short = date.year % 100
            date = date.replace(year=short + (1900 if short >= 50 else 2000))
        found.add(date)
    return found


def test_numeric_dates_have_one_reading():
    numeric = [pair for pair in PAIRS if re.fullmatch(r"[\d\W]+(г\.|, [^\W\d]+)?", pair[0])]
    numeric = [pair for pair in numeric if len(re.findall(r"\d+", pair[0])) == 3]
    assert len(numeric) > 5_000
    for source, target in numeric:
        assert parsed(source) == {datetime.date.fromisoformat(target)}, source
    # All three separators and two-digit years occur.
    for pattern in (r"\d+/\d+/\d{4}", r"\d+\.\d+\.\d{4}", r"\d+-\d+-\d{4}", r"\d+\.\d+\.\d\d"):
        assert any(re.fullmatch(pattern, source) for source, _ in numeric)


def test_no_dotted_date_of_a_locale_begins_with_the_month():
    """Therefore 05.03.2026 is the fifth of March in every locale."""
    for name in LOCALES:
        locale = Locale.parse(name)
        for pattern in [
            locale.date_formats["short"].pattern,
            locale.date_formats["medium"].pattern,
        ]:
            if "." in pattern and "MMM" not in pattern:
                order = "".join(letter for letter in re.sub("(.)\\1+", "\\1", pattern))
                assert re.sub("[^dMy]", "", order) in ("dMy", "yMd")


def test_sources_are_unique_ignoring_case_and_spacing():
    assert len({normal(source) for source, _ in PAIRS}) == len(PAIRS)
    assert not any("\n" in source or "\t" in source for source, _ in PAIRS)


def test_a_month_name_that_two_languages_share_is_left_out():
    # "listopada" is October in Croatian and November in Polish.
    assert normal("5. listopada 2024.") in readings_in_a_leap_year()
    assert not any("listopada" in normal(source) for source, _ in PAIRS)


def test_more_than_thirty_locales_take_part():
    assert len(LOCALES) == len(set(LOCALES)) >= 30
    readings = defaultdict(set)
    for name in LOCALES:
        for offset in range(366):
            date = datetime.date(LEAP_YEAR, 1, 1) + datetime.timedelta(offset)
            for width in ("full", "long"):
                readings[normal(format_date(date, width, name))].add(name)
    # A source that only one locale renders this way proves that the locale was used.
    alone = {
        next(iter(names))
        for source, _ in PAIRS
        if len(names := readings.get(normal(source), ())) == 1
    }
    assert len(alone) >= 30


def test_all_locales_use_latin_digits():
    for name in LOCALES:
        assert Locale.parse(name).default_numbering_system == "latn"


def test_date_sources_cover_many_formats():
    sources = {source for source, _ in date_pairs(30_000)}
    for pattern in (
        r"[A-Z][a-z]+tag, \d+\. \w+ \d{4}",
        r"\d+\. märz \d{4}",
        r"\d+\. Oktober \d{4}",
        r"[A-Z][a-z]{2}, [A-Z][a-z]{2} \d+, \d{4}",
        r"\d{4}年\d+月\d+日",
        r"\d+ de março de \d{4}",
        r"\d{4}-\d\d-\d\d",
    ):
        assert any(re.fullmatch(pattern, source) for source in sources), pattern


def test_the_same_seed_gives_the_same_pairs():
    assert date_pairs(500, seed=7) == date_pairs(500, seed=7)
    assert date_pairs(500, seed=7) != date_pairs(500, seed=8)
    assert date_pairs(500, seed=7)[:200] == date_pairs(200, seed=7)


def test_the_corpus_has_three_parts_without_a_common_source():
    corpus = date_corpus()
    assert isinstance(corpus, DateCorpus)
    parts = (corpus.train, corpus.valid, corpus.test)
    assert [len(part) for part in parts] == [30_000, 1_000, 1_000]
    sources = [{normal(source) for source, _ in part} for part in parts]
    assert len(set.union(*sources)) == 32_000


def test_date_corpus_is_generated_in_under_five_seconds():
    start = time.process_time()
    date_corpus(seed=3)
    assert time.process_time() - start < 5


@pytest.mark.parametrize("count", [-1, 10_000_000])
def test_impossible_pair_counts_raise_value_error(count):
    with pytest.raises(ValueError, match=f"{count:,}"):
        date_pairs(count)
    with pytest.raises(ValueError, match="valid must be at least 0, not -1"):
        date_corpus(valid=-1)


def test_zero_pairs_give_an_empty_corpus():
    assert date_pairs(0) == []
    assert date_corpus(train=0, valid=0, test=0) == DateCorpus([], [], [])
