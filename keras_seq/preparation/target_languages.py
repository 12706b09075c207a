"""Training pairs of several target languages: their counts, and pairs sampled by temperature."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from keras_seq.data import balanced_items, balanced_sizes
from keras_seq.text import Example, Notice, split_language

# Number of languages in a notice.
_LISTED = 20


def count_languages(pairs: Iterable[Example], temperature: float, notice: Notice) -> dict[str, int]:
    """Returns the number of usable pairs of each target language, and reports them.

    With a `temperature` above 1 the shares of an epoch are reported, too.
    """
    found = Counter(_language(pair) for pair in pairs if pair.usable)
    counts = {name: found[name] for name in sorted(found)}
    notice(f"{len(counts):,} target languages: {_listed(counts, '{:,}')}")
    if temperature > 1:
        sizes = balanced_sizes(counts, temperature)
        shares = {name: size / sum(sizes.values()) for name, size in sizes.items()}
        notice(f"shares of an epoch (data.temperature): {_listed(shares, '{:.1%}')}")
    return counts


def balanced_pairs(
    pairs: Iterator[Example], counts: Mapping[str, int], temperature: float
) -> Iterator[Example]:
    """Returns the pairs as often as in an epoch: pairs of rare languages several times.

    `counts` is the result of `count_languages`; if it is empty, the pairs do not change.
    """
    if not counts or temperature == 1:
        return pairs
    return balanced_items((pair for pair in pairs if pair.usable), _language, counts, temperature)


def _language(pair: Example) -> str:
    return split_language(pair.source)[0] or ""


def _listed(values: Mapping[str, float], form: str) -> str:
    """Formats the first values, by name."""
    listed = ", ".join(f"{name} {form.format(values[name])}" for name in [*values][:_LISTED])
    return listed + (f", and {len(values) - _LISTED:,} more" if len(values) > _LISTED else "")
