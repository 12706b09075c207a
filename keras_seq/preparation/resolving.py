"""From what a user says to whole settings: a preset by the size of the corpus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from keras_seq.preparation.files import Notice, PairCounts, count_pairs
from keras_seq.preparation.pretrained import fetch_preset
from keras_seq.preparation.sharing import with_prepared
from keras_seq.preparation.units import corpus_shape, with_units
from keras_seq.preparation.warm_start import base_settings
from keras_seq.settings import (
    PREFIX,
    PRESETS,
    DataSettings,
    RecurrentSettings,
    Settings,
    choose_preset,
    in_proportion,
    load_settings,
)


def resolve_settings(
    *,
    preset: str | None = None,
    file: str | Path | None = None,
    overrides: Mapping[str, Any] | Iterable[str] | None = None,
    notice: Notice | None = None,
    known: Callable[[DataSettings], PairCounts | None] | None = None,
    started: Callable[[str], str | Path] | None = None,
    pretrained: Callable[[str], Path | None] | None = None,
) -> tuple[Settings, PairCounts | None]:
    """`load_settings`, with a preset chosen by the size of the corpus if none is named.

    Where the training starts from another run, the settings of that one are in its place.

    Args:
        preset, file, overrides: As for `load_settings`.
        notice: Called with the choice and its reason.
        known: Gives the counts of a corpus where they are known without reading it.
        started: Gives, for the run that `training.from_run` names, where its copy is if
            there is one.
        pretrained: Gives, for a preset of KerasHub, where a copy of it is, None if nowhere.

    Returns:
        The settings, and the counts of the corpus if they were needed for the choice.
    """
    overrides = overrides if overrides is None or isinstance(overrides, Mapping) else [*overrides]
    copy = pretrained(preset) if preset is not None and pretrained else None
    if preset is None or copy is None:
        fetch_preset(preset, notice)
    else:
        # The shape is that of the copy, the name the one that was given.
        name = preset.removeprefix(PREFIX)
        if isinstance(overrides, Mapping):
            overrides = {**overrides, "training.from_hub": name}
        else:
            overrides = [*(overrides or ()), f"training.from_hub={name}"]
        preset = f"{PREFIX}{copy}"
    settings = load_settings(preset=preset, file=file, overrides=overrides)
    if settings.data.prepared is not None:
        shared = with_prepared(settings)
        settings = shared.settings
        if preset is None:
            preset, adjustments = _choose(settings, shared.counts, notice)
            settings = load_settings(
                preset=preset, file=file, overrides=overrides, adjustments=adjustments
            )
        return with_prepared(settings).settings, shared.counts
    if path := settings.training.from_run:
        if notice and preset is None:
            notice(f"settings of {path} in the place of a preset")
        base = base_settings(started(path) if started else path)
        return load_settings(base=base, preset=preset, file=file, overrides=overrides), None
    if preset is not None:
        return settings, None
    counts = (known(settings.data) if known else None) or count_pairs(
        settings.data, notice, settings.task
    )
    settings = with_units(settings, counts)
    name, adjustments = _choose(settings, counts, notice)
    return load_settings(
        preset=name, file=file, overrides=overrides, adjustments=adjustments
    ), counts


def _choose(
    settings: Settings, counts: PairCounts, notice: Notice | None
) -> tuple[str, dict[str, Any]]:
    """The preset for a corpus, and settings in proportion where it is small."""
    shape = corpus_shape(settings, counts)
    translates = settings.task == "translate"
    # Settings of the model that another family lacks say which family is meant.
    given = settings.model.model_fields_set
    is_open = translates and given <= set(RecurrentSettings.model_fields) - {"family"}
    name, reason = choose_preset(shape, None if is_open else settings.model.family)
    family = PRESETS[name]["model"]["family"]
    adjustments = in_proportion(shape, family) if translates and shape.is_small else {}
    if notice:
        notice(f"preset {name}, chosen by {reason}")
        if adjustments:
            training = adjustments["training"]
            notice(
                f"settings in proportion to {shape.pairs:,} pairs: batches of "
                f"{training['batch_tokens']:,} tokens, {training['warmup_steps']:,} updates of "
                f"warm-up, a validation every {training['validate_every']:,} updates, at most "
                f"{training['max_epochs']:,} epochs"
            )
    return name, adjustments
