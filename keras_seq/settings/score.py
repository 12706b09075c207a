"""Settings of scoring."""

from __future__ import annotations

from typing import Literal

from keras_seq.settings.section import Section, a_choice


class ScoreSettings(Section):
    """Options for scoring decoded text in validation."""

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
        "Tokenizer of sacreBLEU; auto: 13a, or char for languages without spaces between words.",
    )
