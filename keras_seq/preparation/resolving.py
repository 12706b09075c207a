"""Resolves the settings of a training, with a preset chosen by the corpus if none is given."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from keras_seq.plugins import plugin_of
from keras_seq.preparation.files import PairCounts, count_pairs
from keras_seq.preparation.pretrained import copied_preset, fetch_preset
from keras_seq.preparation.record import known_counts
from keras_seq.preparation.sharing import with_prepared
from keras_seq.preparation.sound_encoding import survey_sounds
from keras_seq.preparation.units import corpus_shape, with_units
from keras_seq.preparation.warm_start import base_settings, initial_checkpoint
from keras_seq.run import Run
from keras_seq.settings import (
    FAMILIES,
    PREFIX,
    PRESETS,
    TASKS,
    RecurrentSettings,
    Settings,
    TransformerSettings,
    allows_several_members,
    choose_preset,
    in_proportion,
    in_proportion_to_sounds,
    in_proportion_to_texts,
    load_settings,
)
from keras_seq.text import Notice, vector_width


def resolve_settings(
    *,
    preset: str | None = None,
    file: str | Path | None = None,
    overrides: Mapping[str, Any] | Iterable[str] | None = None,
    notice: Notice | None = None,
    earlier: Run | None = None,
) -> tuple[Settings, PairCounts | None]:
    """Loads settings as `load_settings` does, with a preset chosen by the corpus if none is given.

    With `training.from_run`, the settings of that run replace the preset.

    `earlier` is the run that may be resumed. Its counts of the text are used instead of reading the
    text, and its copies of an initial checkpoint or a pretrained encoder instead of the originals.
    Also returns the counts of the corpus if the choice needed them.
    """
    if overrides is not None and not isinstance(overrides, Mapping):
        overrides = list(overrides)
    load = functools.partial(load_settings, file=file, overrides=overrides)
    if preset is not None and (copy := copied_preset(preset, earlier)) is not None:
        # The copy describes the encoder. The settings keep its original name.
        adjustments = {"training": {"from_hub": preset.removeprefix(PREFIX)}}
        load = functools.partial(load, adjustments=adjustments)
        preset = f"{PREFIX}{copy}"
    else:
        fetch_preset(preset, notice)
    settings = load(preset=preset)
    path = settings.training.from_run
    if path is not None and settings.data.prepared is None:
        if notice and preset is None:
            notice(f"settings of {path} instead of a preset")
        base = base_settings(initial_checkpoint(path, earlier))
        return load(base=base, preset=preset), None
    if preset is not None:
        adjustments = _of_vectors(settings, settings.model.family, earlier)
        return load(preset=preset, adjustments=adjustments) if adjustments else settings, None
    # Load the settings twice, because they name the corpus and the corpus determines the preset.
    settings, counts, prepared = with_prepared(settings, known_counts(earlier, settings.data))
    if counts is None:
        counts = count_pairs(settings.data, notice, settings.task)
    if prepared is None:
        settings = with_units(settings, counts)
    name, adjustments = _choose_preset(settings, counts, notice)
    for section, values in _of_vectors(settings, PRESETS[name]["model"]["family"], earlier).items():
        adjustments[section] = {**adjustments.get(section, {}), **values}
    return load(preset=name, adjustments=adjustments), counts


def _of_vectors(settings: Settings, family: str, earlier: Run | None) -> dict[str, Any]:
    """Returns the width of the embeddings of a family of models, that of pretrained vectors."""
    training = settings.training
    name = training.source_embeddings or training.target_embeddings
    if name is None or "embedding_units" not in FAMILIES[family].model_fields:
        return {}
    if earlier is not None and earlier.settings.model.family == family:
        # A resumed training does not read the file.
        return {"model": {"embedding_units": earlier.settings.model.embedding_width}}
    return {"model": {"embedding_units": vector_width(name)}}


def _choose_preset(
    settings: Settings, counts: PairCounts, notice: Notice | None
) -> tuple[str, dict[str, Any]]:
    """Returns the preset for a corpus, and adjustments if the corpus is small."""
    shape = corpus_shape(settings, counts)
    translates = settings.task == "translate"
    # If the user sets an option that only one model family has, the preset must be of that family.
    common = RecurrentSettings.model_fields.keys() & TransformerSettings.model_fields.keys()
    is_open = translates and settings.model.model_fields_set <= common - {"family"}
    name, reason = choose_preset(shape, None if is_open else settings.model.family)
    family = PRESETS[name]["model"]["family"]
    task = TASKS[settings.task]
    unit, amount = "pairs", "tokens"
    adjustments: dict[str, Any] = {}
    if task.reads_sounds:
        unit, amount = "recordings", "samples"
        survey = survey_sounds(settings.data)
        rate = settings.data.sample_rate or survey.rate
        samples = survey.mean_seconds * rate
        adjustments = in_proportion_to_sounds(shape.pairs, samples, task.recordings_per_batch)
        # So that the headers are not read again.
        adjustments["data"]["sample_rate"] = rate
    elif task.has_labels:
        unit = "lines"
        adjustments = in_proportion_to_texts(shape)
    elif translates and shape.is_small:
        adjustments = in_proportion(shape, family)
        if not allows_several_members(settings.training):
            adjustments.get("model", {}).pop("members", None)
    # A plugin knows better what its models need.
    for key in PRESETS[name]["training"] if plugin_of("family", family) else ():
        adjustments.get("training", {}).pop(key, None)
    if notice:
        notice(f"preset {name}, chosen by {reason}")
        if adjustments:
            training = {**PRESETS[name]["training"], **adjustments["training"]}
            notice(
                f"settings in proportion to {shape.pairs:,} {unit}: batches of "
                f"{training['batch_tokens']:,} {amount}, {training['warmup_steps']:,} warm-up "
                f"updates, a validation every {training['validate_every']:,} updates, at most "
                f"{training['max_epochs']:,} epochs"
            )
    return name, adjustments
