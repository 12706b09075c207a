"""Training settings in proportion to a small corpus."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T", int, float)

# Larger corpora use their preset unchanged.
MOST_PAIRS = 20_000
# On corpora of short symbol sequences of a medium size, recurrent models are better than
# Transformers; on smaller ones they are as good, but slower.
FEWEST_PAIRS_OF_SYMBOLS = 1_000
MOST_PAIRS_OF_SYMBOLS = 5_000
# The number of updates is this factor times the square root of the number of pairs.
_UPDATES = {"rnn": 32, "transformer": 40}
# Of the families of plugins.
_OTHER_UPDATES = 40
# Number of models in the ensemble, by the maximum number of pairs of the corpus.
_MEMBERS = {
    "rnn": ((FEWEST_PAIRS_OF_SYMBOLS, 4), (MOST_PAIRS_OF_SYMBOLS, 2), (MOST_PAIRS, 1)),
    "transformer": ((FEWEST_PAIRS_OF_SYMBOLS, 2), (MOST_PAIRS, 1)),
}
# Number of concatenated pairs to add for each pair, by the maximum number of pairs.
_CONCATENATION = ((1_000, 2.0), (MOST_PAIRS_OF_SYMBOLS, 1.0), (MOST_PAIRS, 0.0))
_VALIDATIONS = 16
# A classifier or tagger reads this many texts, but the whole corpus at least four times.
_TEXTS_READ = 100_000

# A recognizer hears this many recordings, but the whole corpus at least four times.
_RECORDINGS_READ = 20_000
# Number of joined recordings to add for each recording, by the maximum number of recordings.
_JOINED = ((5_000, 1.0), (20_000, 0.5), (10**12, 0.0))


class CorpusShape(NamedTuple):
    """Size and units of a corpus, for the choice of a preset.

    Attributes:
        pairs: Pairs of lines with text.
        symbols: True if target tokens are words, characters or bytes, not subwords.
        tokens: Approximate mean number of tokens of the longer side of a pair.
        inflected: True if the pairs have features and both sides are characters, so that a target
            copies much of its source.
        features: True if the pairs have features.
    """

    pairs: int
    symbols: bool
    tokens: float
    inflected: bool = False
    features: bool = False

    @property
    def is_small(self) -> bool:
        """True if training settings are adjusted to the corpus."""
        return 0 < self.pairs <= MOST_PAIRS


def in_proportion(shape: CorpusShape, family: str) -> dict[str, Any]:
    """Returns nested settings that override a preset for a small corpus and a model family.

    Presets give warm-up, averaging, validations and the end of training in updates: 1,500 warm-up
    updates are 500 epochs of 800 pairs. This function sets them to fractions of the training.

    Example:

    >>> values = in_proportion(CorpusShape(800, True, 7.5), "rnn")
    >>> values["training"]["max_epochs"], values["training"]["warmup_steps"]
    (27, 45)
    """
    # A joined pair would mix the features of two forms.
    added = _by_size(_CONCATENATION, shape.pairs) if shape.symbols and not shape.features else 0.0
    # A joined pair is as long as two pairs.
    tokens = shape.pairs * (shape.tokens + 1) * (1 + 2 * added)
    batch_tokens = int(min(max(tokens / 100, 1024), 4096))
    updates = round(_UPDATES.get(family, _OTHER_UPDATES) * math.sqrt(shape.pairs))
    every = max(10, round(updates / _VALIDATIONS))
    values: dict[str, Any] = {
        "training": {
            "batch_tokens": batch_tokens,
            "warmup_steps": max(20, round(updates / 20)),
            "ema": round(min(max(1 - 6 / updates, 0.98), 0.998), 4),
            "max_epochs": max(1, round(updates / max(1.0, tokens / batch_tokens))),
            "validate_every": every,
            "checkpoint_every": every,
            "patience": 6,
        }
    }
    if added:
        values["data"] = {"concatenation": added}
    if shape.symbols and family in _MEMBERS:
        values["model"] = _model_of_symbols(shape, family)
    return values


def _model_of_symbols(shape: CorpusShape, family: str) -> dict[str, Any]:
    """Returns settings of the section `model` for short sequences of symbols."""
    values: dict[str, Any] = {"members": _by_size(_MEMBERS[family], shape.pairs)}
    if family == "transformer":
        if shape.pairs > MOST_PAIRS_OF_SYMBOLS:
            values |= {"units": 128, "feedforward_units": 512}
        if shape.inflected:
            values |= {"copy": True, "feature_encoder": "linear"}
    return values


def in_proportion_to_texts(shape: CorpusShape) -> dict[str, Any]:
    """Returns nested settings of the training of a classifier or tagger for a corpus.

    Example:

    >>> in_proportion_to_texts(CorpusShape(5_000, False, 9.0))["training"]["max_epochs"]
    20
    """
    # An epoch has 100 updates or more: with larger batches, few thousand texts give few updates.
    texts = max(min(max(shape.pairs / 100, 16), 50), min(shape.pairs / 1000, 256))
    updates_per_epoch = max(1.0, shape.pairs / texts)
    epochs = round(min(max(_TEXTS_READ / shape.pairs, 4), 40))
    batch = max(64, round(texts * (shape.tokens + 1)))
    return {"training": _training(batch, epochs, updates_per_epoch, updates_per_epoch / 2, 8)}


def in_proportion_to_sounds(recordings: int, samples: float, most_rows: int = 32) -> dict[str, Any]:
    """Returns nested settings of the training of a recognizer or detector for a corpus.

    `samples` is the mean number of samples of a recording, and `most_rows` the largest number of
    recordings in a batch.

    Example:

    >>> in_proportion_to_sounds(1_800, 3_400.0)["training"]["batch_tokens"]
    108800
    """
    added = _by_size(_JOINED, recordings)
    # A joined recording is as long as three on average.
    rows = min(max(recordings / 50 * most_rows / 32, 8), most_rows)
    updates_per_epoch = max(1.0, recordings * (1 + 3 * added) / rows)
    epochs = round(min(max(_RECORDINGS_READ / recordings, 4), 100))
    batch = min(max(1, round(rows * samples)), 10_000_000)
    every = epochs * updates_per_epoch / 40
    return {
        # The loss often pauses for a quarter of the training.
        "training": _training(batch, epochs, updates_per_epoch, every, 20),
        "data": {
            "bucket_width": max(1, min(10_000, round(samples / 4))),
            "concatenation": added,
        },
    }


def _training(
    batch_tokens: int, epochs: int, updates_per_epoch: float, interval: float, patience: int
) -> dict[str, Any]:
    """Returns the section `training`, with a validation after each `interval` of updates."""
    updates = epochs * updates_per_epoch
    every = max(10, round(interval))
    return {
        "batch_tokens": batch_tokens,
        "warmup_steps": max(20, round(updates / 20)),
        "ema": round(min(max(1 - 6 / updates, 0.98), 0.998), 4),
        "max_epochs": epochs,
        "validate_every": every,
        "checkpoint_every": every,
        "patience": patience,
    }


def _by_size(table: Sequence[tuple[int, T]], pairs: int) -> T:
    return next(value for limit, value in table if pairs <= limit)
