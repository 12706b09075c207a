"""The choice of a preset for a corpus."""

from __future__ import annotations

from keras_seq.plugins import plugin_of
from keras_seq.settings.errors import SettingsError
from keras_seq.settings.small_corpus import (
    FEWEST_PAIRS_OF_SYMBOLS,
    MOST_PAIRS,
    MOST_PAIRS_OF_SYMBOLS,
    CorpusShape,
)

# Maximum corpus size of each preset. The sizes are chosen, not measured: wide models overfit
# small corpora, narrow ones underfit large ones.
_SIZES: dict[str, tuple[tuple[int, str], ...]] = {
    "transformer": (
        (100_000, "transformer-tiny"),
        (1_000_000, "transformer-small"),
        (20_000_000, "transformer-base"),
    ),
    "rnn": ((100_000, "rnn-small"),),
}
_LARGEST = {
    "transformer": "transformer-big",
    "rnn": "rnn-base",
    "lm-transformer": "lm-transformer",
    "lm-rnn": "lm-lstm",
    "classifier-cnn": "classify-cnn",
    "classifier-rnn": "classify-birnn",
    "classifier-bag": "classify-bag",
    "classifier-transformer": "classify-transformer",
    "tagger-rnn": "tag-birnn",
    "tagger-transformer": "tag-transformer",
    "vae-rnn": "vae",
    "speech-ctc": "speech-ctc",
    "speech-attention": "speech-attention",
    "wake-word": "wake-word",
}


def choose_preset(shape: CorpusShape, family: str | None = None) -> tuple[str, str]:
    """Returns the name of the preset for a corpus, and the reason for the choice.

    `family` is the family of the model; None if it is free. Raises SettingsError if the family has
    no preset.

    Example:

    >>> choose_preset(CorpusShape(29_000, False, 14))
    ('transformer-tiny', 'the size of the corpus (29,000 pairs, at most 100,000)')
    >>> choose_preset(CorpusShape(800, True, 7))
    ('transformer-symbols', 'the corpus (800 pairs of short sequences of symbols)')
    """
    pairs = shape.pairs
    if shape.symbols and family in (None, "rnn", "transformer") and pairs <= MOST_PAIRS:
        reason = f"the corpus ({pairs:,} pairs of short sequences of symbols)"
        if shape.inflected:
            reason = f"the corpus ({pairs:,} pairs with features)"
        medium = FEWEST_PAIRS_OF_SYMBOLS < pairs <= MOST_PAIRS_OF_SYMBOLS and not shape.inflected
        recurrent = family == "rnn" or (family is None and medium)
        return ("rnn-symbols" if recurrent else "transformer-symbols"), reason
    family = family or "transformer"
    if plugin_of("family", family) is not None:
        return family, "the model's family"
    if family not in _LARGEST:
        raise SettingsError(
            f"model.family {family!r} needs a preset of KerasHub: give --preset hub:NAME"
        )
    if family not in _SIZES:
        return _LARGEST[family], "the task and the model's family"
    for limit, name in _SIZES[family]:
        if pairs <= limit:
            return name, f"the size of the corpus ({pairs:,} pairs, at most {limit:,})"
    most = _SIZES[family][-1][0]
    return _LARGEST[family], f"the size of the corpus ({pairs:,} pairs, more than {most:,})"
