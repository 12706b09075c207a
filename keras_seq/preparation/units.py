"""The kinds of vocabulary of a training, where the settings leave the choice to its text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from keras_seq.preparation.files import PairCounts
from keras_seq.settings import (
    SIDES,
    SUBWORDS,
    TASKS,
    CorpusShape,
    Settings,
    SettingsError,
    Side,
    TokenizerSettings,
    VocabularySettings,
)
from keras_seq.text import LineStatistics, Units, choose_units

_NAMES = {
    "unigram": "subwords",
    "bpe": "subwords (bpe)",
    "char": "characters",
    "word": "words",
    "byte": "bytes",
}


def with_units(
    settings: Settings, counts: PairCounts, notice: Callable[[str], None] | None = None
) -> Settings:
    """Chooses the kinds of vocabulary that the settings leave open.

    The choice depends on the settings and the counts alone, so it is the same each time.

    Args:
        settings: Of a run.
        counts: Of its training text.
        notice: Called with a line for each choice and its reason.

    Returns:
        Settings in which no kind and no normalization is "auto", save of a vocabulary that is
        imported from a file; and in which a vocabulary is joint only if both sides have the same.

    Raises:
        SettingsError: A joint vocabulary was asked for, and the sides have different settings.
    """
    tokenizer = settings.tokenizer
    sides = _sides(settings)
    asked = {side: tokenizer.of_side(side) for side in sides}
    units = _chosen_units(settings, counts, asked)
    found = {side: _filled(asked[side], units.get(side)) for side in sides}
    for side, unit in units.items():
        if notice and asked[side].kind == "auto":
            name = "vocabulary" if len(sides) == 1 else f"{side} vocabulary"
            notice(f"{name} of {_NAMES[unit.kind]}: {unit.reason}")
    chosen = TokenizerSettings(**_arranged(settings, found))
    # What the user gave stays known as such.
    for new, old in (
        (chosen, tokenizer),
        (chosen.source, tokenizer.source),
        (chosen.target, tokenizer.target),
    ):
        new.model_fields_set.intersection_update(old.model_fields_set)
    return settings.model_copy(update={"tokenizer": chosen})


def _chosen_units(
    settings: Settings, counts: PairCounts, asked: Mapping[Side, VocabularySettings]
) -> dict[Side, Units]:
    """The units of the sides whose settings leave them open."""
    open_sides = [
        side
        for side, values in asked.items()
        if values.model is None and "auto" in (values.kind, values.normalization)
    ]
    if settings.training.subword_alpha:
        cut = Units("unigram", "nfc", "training.subword_alpha cuts them in several ways")
        return dict.fromkeys(open_sides, cut)
    units = {
        side: choose_units(getattr(counts, side) or LineStatistics(), is_target=side == "target")
        for side in open_sides
    }
    if _wants_joint(settings):
        _check_joint(settings.tokenizer)
        if len({unit.kind for unit in units.values()}) > 1:
            both = Units("unigram", "nfc", "tokenizer.joint, and the sides differ")
            return dict.fromkeys(open_sides, both)
    return units


def _wants_joint(settings: Settings) -> bool:
    """Tests if the user asked for a joint vocabulary."""
    tokenizer = settings.tokenizer
    given = "joint" in tokenizer.model_fields_set
    return settings.task == "translate" and given and tokenizer.joint


def _arranged(settings: Settings, found: Mapping[Side, VocabularySettings]) -> dict[str, Any]:
    """The settings of the vocabularies, in common where they are the same."""
    tokenizer = settings.tokenizer
    first = next(iter(found.values()))
    if len(found) == 1:
        return {**first.model_dump(), "joint": tokenizer.joint}
    same = all(values == first for values in found.values())
    subwords = first.kind in SUBWORDS or first.model is not None
    if same and tokenizer.joint and (subwords or _wants_joint(settings)):
        return {**first.model_dump(), "joint": True}
    common = tokenizer.model_dump(exclude={"source", "target"})
    for key in ("kind", "normalization"):
        # What stands for both sides must not read as if it were to be chosen.
        if common[key] == "auto":
            common[key] = getattr(found["target"], key)
    differing: dict[str, Any] = {side: _differing(values, common) for side, values in found.items()}
    return {**common, "joint": False, **differing}


def corpus_shape(settings: Settings, counts: PairCounts) -> CorpusShape:
    """Describes a corpus for the choice of a preset.

    Args:
        settings: With the units chosen.
        counts: Of its text.
    """
    lengths = [
        _tokens_per_line(settings.tokenizer.of_side(side).kind, statistics)
        for side in SIDES
        if (statistics := getattr(counts, side)) is not None
    ]
    kind = settings.tokenizer.of_side("target").kind
    symbols = settings.task == "translate" and kind in ("char", "word", "byte")
    return CorpusShape(counts.usable, symbols, max(lengths, default=0.0))


def _tokens_per_line(kind: str | None, statistics: LineStatistics) -> float:
    if kind == "word":
        return statistics.words_per_line
    if kind in ("char", "byte"):
        return statistics.characters_per_line
    # Subwords: between a word and a third of one.
    return max(statistics.words_per_line * 1.3, statistics.characters_per_line / 5)


def _sides(settings: Settings) -> tuple[Side, ...]:
    """The sides that have a vocabulary which is learned."""
    task = TASKS[settings.task]
    if task.has_labels:
        return ("source",)
    if settings.task != "translate":
        return ("target",)
    return SIDES if settings.training.from_hub is None else ("target",)


def _filled(values: VocabularySettings, units: Units | None) -> VocabularySettings:
    if units is None:
        return values
    update: dict[str, Any] = {}
    if values.kind == "auto":
        update["kind"] = units.kind
    if values.normalization == "auto":
        # The form goes with the units that it was chosen for.
        same = values.kind in ("auto", units.kind)
        update["normalization"] = units.normalization if same else "nfc"
    return values.model_copy(update=update)


def _differing(values: VocabularySettings, common: Mapping[str, Any]) -> VocabularySettings:
    differing = {
        key: value
        for key, value in values.model_dump().items()
        if value is not None and value != common.get(key)
    }
    return VocabularySettings(**differing)


def _check_joint(tokenizer: TokenizerSettings) -> None:
    for side in SIDES:
        for key, value in getattr(tokenizer, side):
            if value is not None and value != getattr(tokenizer, key):
                raise SettingsError(
                    f"tokenizer.joint: received True with tokenizer.{side}.{key}={value!r}: one "
                    "vocabulary for both sides has one value of it; leave one of the two out"
                )
