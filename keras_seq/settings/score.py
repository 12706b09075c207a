"""How the text of a validation is scored."""

from __future__ import annotations

from typing import Literal

from keras_seq.settings.section import Section, a_choice


class ScoreSettings(Section):
    """How the text of a validation is scored."""

    tokenize: Literal[
        "auto",
        "13a",
        "char",
        "flores101",
        "flores200",
        "intl",
        "ja-mecab",
        "ko-mecab",
        "none",
        "spm",
        "zh",
    ] = a_choice(
        "auto",
        "sacreBLEU's tokenizer for BLEU. auto: 13a, or char for text without spaces between words.",
    )
