"""The kinds of vocabulary of a training, where the settings leave the choice to its text."""

from __future__ import annotations

from collections.abc import Callable
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
    say = notice or (lambda line: None)
    sides = _sides(settings)
    asked = {side: tokenizer.of_side(side) for side in sides}
    open_sides = [side for side in sides if _is_open(asked[side])]
    units = {side: _units(counts, side) for side in open_sides}
    if settings.training.subword_alpha:
        cut = Units("unigram", "nfc", "training.subword_alpha cuts them in several ways")
        units = dict.fromkeys(open_sides, cut)
    joint = settings.task == "translate" and tokenizer.joint and len(sides) == 2
    if joint and "joint" in tokenizer.model_fields_set:
        _check_joint(tokenizer)
        if len({unit.kind for unit in units.values()}) > 1:
            units = dict.fromkeys(
                open_sides, Units("unigram", "nfc", "tokenizer.joint, and the sides differ")
            )
    found = {side: _filled(asked[side], units.get(side)) for side in sides}
    for side in open_sides:
        if asked[side].kind == "auto":
            name = "vocabulary" if len(sides) == 1 else f"{side} vocabulary"
            say(f"{name} of {_NAMES[found[side].kind or 'unigram']}: {units[side].reason}")
    same = all(values == found[sides[0]] for values in found.values())
    if len(sides) == 1 or (
        joint and same and (found["source"].kind in SUBWORDS or found["source"].model)
    ):
        values = {**found[sides[0]].model_dump(), "joint": tokenizer.joint}
    elif joint and "joint" in tokenizer.model_fields_set and same:
        values = {**found["source"].model_dump(), "joint": True}
    else:
        values = {**tokenizer.model_dump(exclude={"source", "target"}), "joint": False}
        for key in ("kind", "normalization"):
            # What stands for both sides must not read as if it were to be chosen.
            if values[key] == "auto":
                values[key] = getattr(found["target"], key)
        values |= {side: _differing(found[side], values) for side in sides}
    chosen = TokenizerSettings(**values)
    chosen.model_fields_set.intersection_update(tokenizer.model_fields_set)
    for side in SIDES:
        getattr(chosen, side).model_fields_set.intersection_update(
            getattr(tokenizer, side).model_fields_set
        )
    return settings.model_copy(update={"tokenizer": chosen})


def corpus_shape(settings: Settings, counts: PairCounts) -> CorpusShape:
    """What a corpus is like, for the choice of a preset.

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


def _is_open(values: VocabularySettings) -> bool:
    return values.model is None and "auto" in (values.kind, values.normalization)


def _units(counts: PairCounts, side: Side) -> Units:
    statistics = getattr(counts, side)
    return choose_units(statistics or LineStatistics(), is_target=side == "target")


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


def _differing(values: VocabularySettings, common: dict[str, Any]) -> VocabularySettings:
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
