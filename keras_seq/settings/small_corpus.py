"""Settings of a training in proportion to a small corpus."""

from __future__ import annotations

from typing import Any, NamedTuple

# Larger corpora are trained as their preset says.
MOST_PAIRS = 20_000
# Passes over the text, by the number of pairs: small corpora need more of them to get as many
# updates. Training usually ends sooner, because nothing gets better.
_EPOCHS = ((1_000, 100), (5_000, 60), (MOST_PAIRS, 40))
# Models whose probabilities are averaged.
_MEMBERS = ((1_000, 5), (5_000, 4), (MOST_PAIRS, 2))
_VALIDATIONS = 20


class CorpusShape(NamedTuple):
    """What a corpus is like, for the choice of a preset.

    Attributes:
        pairs: Pairs of lines with text.
        symbols: Whether the target is cut into words of a closed set, characters or bytes.
        tokens: Mean tokens of the longer side of a pair, about.
    """

    pairs: int
    symbols: bool
    tokens: float

    @property
    def is_small(self) -> bool:
        """Whether its training has settings in proportion."""
        return 0 < self.pairs <= MOST_PAIRS


def in_proportion(shape: CorpusShape, family: str) -> dict[str, Any]:
    """Settings of the training of a small corpus, to be laid over a preset.

    Warm-up, averaging, validations and the end of a training are given in updates by
    presets, which makes 1,500 updates of warm-up 500 passes over 800 pairs. Here they are
    parts of the whole training.

    Args:
        shape: The corpus.
        family: Of the model.

    Returns:
        Nested settings.

    Example:

    >>> values = in_proportion(CorpusShape(800, True, 7.5), "rnn")
    >>> values["training"]["max_epochs"], values["training"]["warmup_steps"]
    (100, 50)
    """
    length = shape.tokens + 1
    batch_tokens = int(min(max(shape.pairs * length / 30, 1024), 4096))
    epochs = _by_size(_EPOCHS, shape.pairs)
    updates = max(1, round(epochs * max(1.0, shape.pairs * length / batch_tokens)))
    every = max(10, round(updates / _VALIDATIONS))
    values: dict[str, Any] = {
        "training": {
            "batch_tokens": batch_tokens,
            "warmup_steps": max(50, round(updates / 20)),
            "ema": round(min(max(1 - 6 / updates, 0.99), 0.998), 4),
            "max_epochs": epochs,
            "validate_every": every,
            "checkpoint_every": every,
            "patience": 6,
        }
    }
    if shape.symbols and family == "rnn":
        values["model"] = {"members": _by_size(_MEMBERS, shape.pairs)}
    return values


def _by_size(table: tuple[tuple[int, int], ...], pairs: int) -> int:
    return next(value for limit, value in table if pairs <= limit)
