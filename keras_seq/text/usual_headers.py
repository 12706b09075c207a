"""Recognizes header lines by common column names."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .column_choice import Roles

_SOURCES = frozenset(
    "source src input inputs query question prompt command original word words grapheme graphemes "
    "orthography spelling lemma text texts sentence sentences token tokens utterance line "
    "review tweet".split()
)
_TARGETS = frozenset(
    "target tgt trg output outputs answer response reference translation transliteration "
    "transcription pronunciation pronunciations phoneme phonemes phone phones ipa form inflection "
    "normalized summary".split()
)
_LABELS = frozenset(
    "label labels tag tags class classes category categories sentiment intent topic ner pos".split()
)
# ISO 639 codes that are not common English words such as "he" and "is", and language names.
_LANGUAGES = frozenset(
    "ar bg bn ca cs cy da de el en es et eu fa fi fr ga gl hr hu hy ja ka kk ko la lt lv mk "
    "ms nb nl nn no pl pt ro ru sk sl sq sr sv sw ta te th tr uk ur uz vi zh "
    "ara bul ben cat ces cze dan deu ger ell eng spa est fin fra fre heb hin hun isl ice ita jpn "
    "kor lat lit lav nld dut nor pol por ron rum rus slk slo slv swe tur ukr vie zho chi cmn "
    "arabic armenian basque bengali bulgarian catalan chinese croatian czech danish dutch english "
    "estonian finnish french galician georgian german greek hebrew hindi hungarian icelandic "
    "indonesian irish italian japanese korean latin latvian lithuanian macedonian mandarin "
    "norwegian persian polish portuguese romanian russian serbian slovak slovenian spanish swahili "
    "swedish tamil telugu thai turkish ukrainian urdu vietnamese welsh "
    "deutsch español français".split()
)
_COMMON = _SOURCES | _TARGETS | _LABELS | _LANGUAGES | {"it"}


def is_header(fields: Sequence[str]) -> bool:
    """Tests if the fields of a line are distinct, common column names.

    Example:

    >>> is_header(["Word", "Pronunciation"]), is_header(["word", "Wort"])
    (True, False)
    """
    names = [_parts(field) for field in fields]
    return len(set(names)) == len(names) and all(_COMMON.issuperset(parts) for parts in names)


def is_reversed(fields: Sequence[str], roles: Roles) -> bool:
    """Tests if a header of two columns has the target or the label first."""
    first, second = map(_parts, fields)
    if roles[0] == "source":
        targets = {"target", "tgt", "trg", "output", "outputs"}
        sources = {"source", "src", "input", "inputs"}
        return bool(targets.intersection(first) and sources.intersection(second))
    return _LABELS.issuperset(first) and _SOURCES.issuperset(second)


def _parts(name: str) -> tuple[str, ...]:
    """Splits a name into lowercase words at underscores and hyphens."""
    return tuple(re.split("[_-]", name.strip(" #").lower()))
