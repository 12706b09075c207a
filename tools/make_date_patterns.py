"""Writes the date formats of the built-in corpus, taken from Babel's copy of CLDR.

    python tools/make_date_patterns.py

The result, `keras_seq/text/date_patterns.json`, has the patterns of each locale and the names of
months and weekdays that these patterns contain. Months begin with January, weekdays with Monday.
"""

import json
import re

from babel import Locale

from keras_seq.text.dates import LOCALES, PATTERNS_FILE

SOURCE = "Unicode CLDR. License: Unicode-3.0, see the file NOTICE of keras-seq."
CONTEXTS = {"M": "format", "L": "stand-alone", "E": "format", "c": "stand-alone"}


def patterns(locale: Locale) -> list[str]:
    """Returns the distinct date patterns of a locale; several widths may have the same."""
    found = [locale.date_formats[width].pattern for width in ("full", "long", "medium", "short")]
    found += [
        locale.datetime_skeletons[name].pattern
        for name in ("yMMMEd", "yMMMd", "yMd")
        if name in locale.datetime_skeletons
    ]
    return list(dict.fromkeys(found))


def names(locale: Locale, field: str) -> list[str]:
    """Returns the names that a field such as `MMMM` or `E` stands for."""
    width = "wide" if len(field) == 4 else "abbreviated"
    if field[0] in "ML":
        months = locale.months[CONTEXTS[field[0]]][width]
        return [months[month] for month in range(1, 13)]
    days = locale.days[CONTEXTS[field[0]]][width]
    return [days[day] for day in range(7)]


def formats(name: str) -> dict[str, object]:
    """Returns the patterns of a locale, and the names by field."""
    locale = Locale.parse(name)
    found = patterns(locale)
    unquoted = re.sub(r"'[^']*'", "", " ".join(found))
    fields = {match[0] for match in re.finditer(r"([ML])\1{2,3}|E+|c{3,4}", unquoted)}
    return {"patterns": found, "names": {field: names(locale, field) for field in sorted(fields)}}


def content() -> str:
    """Returns the text of the file, which has one line per locale."""
    locales = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(formats(name), ensure_ascii=False)}" for name in LOCALES
    )
    return f'{{"source": {json.dumps(SOURCE)}, "locales": {{\n{locales}\n}}}}\n'


if __name__ == "__main__":
    PATTERNS_FILE.write_text(content(), encoding="utf-8")
