"""Chooses the units of the vocabularies (subwords, characters, ...) from the training text."""

from __future__ import annotations

from collections.abc import Mapping
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
from keras_seq.text import (
    LineStatistics,
    Notice,
    Units,
    choose_transcript_units,
    choose_units,
)

_NAMES = {
    "unigram": "subwords",
    "bpe": "subwords (bpe)",
    "char": "characters",
    "word": "words",
    "byte": "bytes",
}


def with_units(settings: Settings, counts: PairCounts, notice: Notice | None = None) -> Settings:
    """Chooses the kinds of vocabulary that the settings leave open.

    The choice depends only on the settings and the counts, so it is deterministic. Afterwards no
    kind or normalization is "auto", except for imported vocabularies, and the vocabulary is joint
    only if both sides have the same settings. Raises SettingsError if the user asked for a joint
    vocabulary, but the settings of the sides differ; or for parts of words, but the model reads the
    characters of whole words.
    """
    tokenizer = settings.tokenizer
    sides = _sides(settings)
    requested = {side: tokenizer.of_side(side) for side in sides}
    units = _choose_units(settings, counts, requested)
    resolved = {side: _with_unit(requested[side], units.get(side)) for side in sides}
    first = resolved[sides[0]]
    # The kind of an imported vocabulary is known when its file is read.
    if first.model is None:
        check_whole_words(settings, str(first.kind))
    for side, unit in units.items():
        if notice and requested[side].kind == "auto":
            name = "vocabulary" if len(sides) == 1 else f"{side} vocabulary"
            notice(f"{name} of {_NAMES[unit.kind]}: {unit.reason}")
    chosen = TokenizerSettings(**_tokenizer_values(settings, resolved))
    # `model_fields_set` must list only what the user gave.
    for new, old in (
        (chosen, tokenizer),
        (chosen.source, tokenizer.source),
        (chosen.target, tokenizer.target),
    ):
        new.model_fields_set.intersection_update(old.model_fields_set)
    return settings.model_copy(update={"tokenizer": chosen})


def _choose_units(
    settings: Settings, counts: PairCounts, requested: Mapping[Side, VocabularySettings]
) -> dict[Side, Units]:
    """Chooses the units of the sides whose kind or normalization is "auto"."""
    open_sides = [
        side
        for side, values in requested.items()
        if values.model is None and "auto" in (values.kind, values.normalization)
    ]
    if settings.training.subword_alpha:
        sampled = Units("unigram", "nfc", "training.subword_alpha samples segmentations")
        return dict.fromkeys(open_sides, sampled)
    if _reads_characters(settings):
        words = Units("word", "nfc", "the model reads the characters of whole words")
        return dict.fromkeys(open_sides, words)
    if TASKS[settings.task].reads_sounds:
        transcripts = choose_transcript_units(counts.target or LineStatistics())
        return dict.fromkeys(open_sides, transcripts)
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


def check_whole_words(settings: Settings, kind: str, origin: str = "") -> None:
    """Raises SettingsError if the model reads the characters of words, and tokens are not words.

    A word of several tokens would be unknown to such a model. `kind` is the kind of the vocabulary,
    and `origin` says where it is from.
    """
    if kind == "word" or not _reads_characters(settings):
        return
    keys = ("character_filters", "form_units")
    names = [f"model.{key}" for key in keys if getattr(settings.model, key, 0)]
    raise SettingsError(
        f"tokenizer.kind: received {kind!r}{origin}, expected 'word' with {' and '.join(names)}: "
        "the model reads the characters of whole words; set "
        f"{' and '.join(f'{name}=0' for name in names)} for other vocabularies"
    )


def _reads_characters(settings: Settings) -> bool:
    return settings.model.reads_characters and TASKS[settings.task].has_labels


def _wants_joint(settings: Settings) -> bool:
    """Tests if the user or the model asks for one vocabulary for both sides."""
    tokenizer = settings.tokenizer
    if settings.model.copies:
        return True
    by_user = "joint" in tokenizer.model_fields_set
    wanted = settings.task == "translate" and by_user and tokenizer.joint
    if wanted and settings.data.has_features:
        raise SettingsError(
            "tokenizer.joint: received True, expected False with features in data.columns, which "
            "only the source has"
        )
    return wanted


def _tokenizer_values(
    settings: Settings, resolved: Mapping[Side, VocabularySettings]
) -> dict[str, Any]:
    """Returns the section `tokenizer`, with common values for both sides if they are equal."""
    tokenizer = settings.tokenizer
    first = next(iter(resolved.values()))
    if len(resolved) == 1:
        return {**first.model_dump(), "joint": tokenizer.joint}
    same = all(values == first for values in resolved.values()) and not settings.data.has_features
    subwords = first.kind in SUBWORDS or first.model is not None
    if same and tokenizer.joint and (subwords or _wants_joint(settings)):
        return {**first.model_dump(), "joint": True}
    common = tokenizer.model_dump(exclude={"source", "target"})
    for key in ("kind", "normalization"):
        # Each side has its own choice by now, so the common value must not be "auto".
        if common[key] == "auto":
            common[key] = getattr(resolved["target"], key)
    sides: dict[str, Any] = {side: _differing(values, common) for side, values in resolved.items()}
    return {**common, "joint": False, **sides}


def corpus_shape(settings: Settings, counts: PairCounts) -> CorpusShape:
    """Describes the corpus that a preset is chosen for. Requires tokenizers of a known kind."""
    lengths = [
        _tokens_per_line(settings.tokenizer.of_side(side).kind, statistics)
        for side in SIDES
        if (statistics := getattr(counts, side)) is not None
    ]
    kinds = [settings.tokenizer.of_side(side).kind for side in SIDES]
    symbols = settings.task == "translate" and kinds[1] in ("char", "word", "byte")
    features = settings.data.has_features
    inflected = symbols and features and kinds == ["char", "char"]
    return CorpusShape(counts.usable, symbols, max(lengths, default=0.0), inflected, features)


def _tokens_per_line(kind: str | None, statistics: LineStatistics) -> float:
    if kind == "word":
        return statistics.words_per_line
    if kind in ("char", "byte"):
        return statistics.characters_per_line
    # An estimate for subwords, which are at most words and usually at most five characters.
    return max(statistics.words_per_line * 1.3, statistics.characters_per_line / 5)


def _sides(settings: Settings) -> tuple[Side, ...]:
    """Returns the sides with a learned vocabulary."""
    task = TASKS[settings.task]
    if task.has_labels:
        return ("source",)
    if settings.task != "translate":
        return ("target",)
    return SIDES if settings.training.from_hub is None else ("target",)


def _with_unit(values: VocabularySettings, units: Units | None) -> VocabularySettings:
    """Replaces "auto" with the chosen units."""
    if units is None:
        return values
    update: dict[str, Any] = {}
    if values.kind == "auto":
        update["kind"] = units.kind
    if values.normalization == "auto":
        # The normalization was chosen for one kind of vocabulary, and may not suit other kinds.
        same = values.kind in ("auto", units.kind)
        update["normalization"] = units.normalization if same else "nfc"
    return values.model_copy(update=update)


def _differing(values: VocabularySettings, common: Mapping[str, Any]) -> VocabularySettings:
    """Returns the values that differ from `common`, the values of both sides."""
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
                    f"tokenizer.joint: received True with tokenizer.{side}.{key}={value!r}, but a "
                    "joint vocabulary has one value for both sides: leave one of the two out"
                )
