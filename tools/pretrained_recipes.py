"""The models of the collection `keras_seq.pretrained`: their data, licenses and scores."""

from __future__ import annotations

from typing import NamedTuple

_WIKTIONARY = "CC BY-SA 3.0 (text of Wiktionary)"
_NONE = "none stated"
# The default for small data is an ensemble of two or four models, of 6 to 9 MB each here.
_ONE_MEMBER = ("model.members=1",)


class Recipe(NamedTuple):
    """One model.

    Attributes:
        task: What the model does.
        data: The data that it is trained on.
        license: The license of the data.
        citation: The paper or the page of the data.
        metric: The metric of `keras-seq evaluate` that the index shows.
        model_license: The license of the model, as the Hub names it; None if the license of the
            data does not allow publishing the model.
        language: The language of the output, as the Hub names it, or None.
        public_task: The name of the task in `benchmarks/public/tasks.py`; None for the corpus of
            `keras-seq demo`.
        settings: Settings that replace the defaults, to keep the model below 10 MB.
    """

    task: str
    data: str
    license: str
    citation: str
    metric: str
    model_license: str | None
    language: str | None
    public_task: str | None
    settings: tuple[str, ...] = ()


def _pronunciation(
    language: str, code: str, data: str, citation: str, task: str, settings: tuple[str, ...] = ()
) -> Recipe:
    return Recipe(
        f"{language} words to phones",
        data,
        _WIKTIONARY,
        citation,
        "exact",
        "cc-by-sa-4.0",
        code,
        task,
        settings,
    )


RECIPES = {
    "dates": Recipe(
        "dates in about 40 locales to ISO 8601",
        "generated from the date formats of the Unicode CLDR",
        "Unicode License v3",
        "https://cldr.unicode.org",
        "exact",
        "apache-2.0",
        None,
        None,
    ),
    "pronunciation-icelandic": _pronunciation(
        "Icelandic",
        "is",
        "SIGMORPHON 2021 task 1, low resource, 800 words",
        "Ashby et al. 2021, https://aclanthology.org/2021.sigmorphon-1.13",
        "g2p ice-yoyodyne",
    ),
    "pronunciation-korean": _pronunciation(
        "Korean",
        "ko",
        "SIGMORPHON 2020 task 1, 3,600 words",
        "Gorman et al. 2020, https://aclanthology.org/2020.sigmorphon-1.2",
        "g2p kor",
        _ONE_MEMBER,
    ),
    "inflection-german": Recipe(
        "German lemmas and features to inflected forms",
        "CoNLL-SIGMORPHON 2017 task 1, medium, 1,000 forms",
        _WIKTIONARY,
        "Cotterell et al. 2017, https://aclanthology.org/K17-2001",
        "exact",
        "cc-by-sa-4.0",
        "de",
        "inflection german medium",
    ),
    "questions-trec": Recipe(
        "English questions to the kind of answer: 0 description, 1 entity, 2 abbreviation, "
        "3 human, 4 location, 5 number",
        "TREC questions, 5,052",
        _NONE,
        "Li and Roth 2002, https://aclanthology.org/C02-1150",
        "accuracy",
        None,
        "en",
        "trec",
        _ONE_MEMBER,
    ),
    "sentiment-sst2": Recipe(
        "English sentences of film reviews to 0 negative or 1 positive",
        "Stanford Sentiment Treebank, 6,920 sentences",
        _NONE,
        "Socher et al. 2013, https://aclanthology.org/D13-1170",
        "accuracy",
        None,
        "en",
        "sst2",
        _ONE_MEMBER,
    ),
    "parts-of-speech": Recipe(
        "English words to universal parts of speech",
        "Universal Dependencies English EWT 2.16, 12,544 sentences",
        "CC BY-SA 4.0",
        "Silveira et al. 2014, https://aclanthology.org/L14-1067",
        "accuracy",
        "cc-by-sa-4.0",
        "en",
        "pos",
    ),
    "entities-wnut17": Recipe(
        "English social media posts to named-entity tags",
        "WNUT 2017, 3,394 texts",
        "CC BY 4.0",
        "Derczynski et al. 2017, https://aclanthology.org/W17-4418",
        "entity_f1",
        "cc-by-4.0",
        "en",
        "wnut17",
    ),
    "shakespeare": Recipe(
        "text in the style of Shakespeare's plays, letter by letter",
        "tiny Shakespeare, 1 MB",
        "public domain",
        "https://github.com/karpathy/char-rnn",
        "bits_per_character",
        "apache-2.0",
        "en",
        "shakespeare",
    ),
    "english-japanese": Recipe(
        "short English sentences to Japanese",
        "small_parallel_enja (Tanaka corpus), 50,000 pairs",
        "CC BY 2.0 FR (text of Tatoeba)",
        "https://github.com/odashi/small_parallel_enja",
        "chrf",
        "cc-by-2.0",
        "ja",
        "enja",
    ),
    "spoken-digits": Recipe(
        "recordings of English digits to words",
        "Free Spoken Digit Dataset, four speakers",
        "CC BY-SA 4.0",
        "https://github.com/Jakobovski/free-spoken-digit-dataset",
        "exact",
        "cc-by-sa-4.0",
        "en",
        "digits",
    ),
    "wake-word": Recipe(
        'the times of the word "seven" in recordings',
        "Free Spoken Digit Dataset, four speakers",
        "CC BY-SA 4.0",
        "https://github.com/Jakobovski/free-spoken-digit-dataset",
        "f1",
        "cc-by-sa-4.0",
        "en",
        "wake word",
    ),
}
