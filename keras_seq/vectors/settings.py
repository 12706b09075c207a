"""Settings of the training of word vectors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from keras_seq.settings import SettingsError

Algorithm = Literal["skipgram", "cbow", "glove", "fasttext"]
Loss = Literal["negative", "hierarchical", "softmax"]

ALGORITHMS: tuple[str, ...] = get_args(Algorithm)
LOSSES: tuple[str, ...] = get_args(Loss)
# Defaults of the original implementations.
_WINDOWS = {"glove": 15}
_RATES = {"cbow": 0.05, "fasttext": 0.05, "glove": 0.05}
_EPOCHS = {"glove": 25}


@dataclass(frozen=True)
class VectorSettings:
    """Settings of `train_vectors`; None is the default of the algorithm.

    Args:
        algorithm: `"skipgram"`, `"cbow"`, `"glove"` or `"fasttext"` (skip-gram over
            character n-grams).
        loss: `"negative"` (negative sampling), `"hierarchical"` (hierarchical softmax) or
            `"softmax"` (full softmax, for small vocabularies); negative sampling if None. GloVe
            has its own loss.
        units: Dimension of the vectors.
        window: Maximum number of context words on each side; 5 if None, 15 for GloVe.
        min_count: Minimum frequency of a word; rarer words are removed from the text.
        negatives: Noise words for each target word in negative sampling.
        subsample: Relative frequency t above which words are subsampled; 0 disables subsampling.
            GloVe does not subsample.
        learning_rate: Initial learning rate; if None, 0.025 for skip-gram and 0.05 otherwise.
        epochs: Passes over the text; 5 if None, 25 for GloVe.
        min_ngram, max_ngram: Minimum and maximum length of the character n-grams of fastText.
        buckets: Number of hash buckets for n-grams. Only buckets in use take memory.
        threads: Number of threads. Only a single thread gives reproducible results.
        seed: Random seed.

    Raises:
        SettingsError: If a value is out of bounds, or does not apply to the algorithm.

    Example:

    >>> settings = VectorSettings(algorithm="glove", units=50)
    >>> settings.window, settings.epochs, settings.loss
    (15, 25, None)
    """

    algorithm: Algorithm = "skipgram"
    loss: Loss | None = None
    units: int = 100
    window: int | None = None
    min_count: int = 5
    negatives: int = 5
    subsample: float = 1e-3
    learning_rate: float | None = None
    epochs: int | None = None
    min_ngram: int = 3
    max_ngram: int = 6
    buckets: int = 2_000_000
    threads: int = 1
    seed: int = 0

    def __post_init__(self) -> None:
        names = f"one of {', '.join(ALGORITHMS)}"
        _require(self.algorithm in ALGORITHMS, "algorithm", self.algorithm, names)
        glove = self.algorithm == "glove"
        if glove and self.loss is not None:
            raise SettingsError(f"loss: received {self.loss!r}; glove has a loss of its own")
        set_ = object.__setattr__
        if self.loss is None and not glove:
            set_(self, "loss", "negative")
        for name, value in (
            ("window", _WINDOWS.get(self.algorithm, 5)),
            ("learning_rate", _RATES.get(self.algorithm, 0.025)),
            ("epochs", _EPOCHS.get(self.algorithm, 5)),
        ):
            if getattr(self, name) is None:
                set_(self, name, value)
        if self.loss is not None:
            _require(self.loss in LOSSES, "loss", self.loss, f"one of {', '.join(LOSSES)}")
        for name, least, most in (
            ("units", 1, 10_000),
            ("window", 1, 1_000),
            ("min_count", 1, 2**62),
            ("negatives", 1, 1_000),
            ("epochs", 1, 100_000),
            ("min_ngram", 1, 100),
            ("max_ngram", self.min_ngram, 100),
            ("buckets", 1, 2**31 - 1),
            ("threads", 1, 1_024),
            ("seed", 0, 2**63 - 1),
        ):
            value = getattr(self, name)
            good = isinstance(value, int) and least <= value <= most
            _require(good, name, value, f"an integer from {least:,} to {most:,}")
        rate = self.learning_rate
        good = rate is not None and 0 < rate <= 10
        _require(good, "learning_rate", rate, "a number above 0, at most 10")
        good = math.isfinite(self.subsample) and self.subsample >= 0
        _require(good, "subsample", self.subsample, "a number at least 0")


def _require(good: bool, name: str, received: object, expected: str) -> None:
    if not good:
        raise SettingsError(f"{name}: received {received!r}, expected {expected}")
