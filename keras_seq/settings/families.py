"""Families of models by name."""

from __future__ import annotations

from typing import Any

from keras_seq.plugins import added
from keras_seq.plugins.registry import WithPlugins, reserve
from keras_seq.settings.errors import SettingsError, choices, show
from keras_seq.settings.hub_models import BackboneClassifierSettings, BackboneSeq2SeqSettings
from keras_seq.settings.label_models import (
    BagClassifierSettings,
    ConvolutionalClassifierSettings,
    RecurrentClassifierSettings,
    RecurrentTaggerSettings,
    TransformerClassifierSettings,
    TransformerTaggerSettings,
)
from keras_seq.settings.section import ModelSection
from keras_seq.settings.sequence_models import (
    RecurrentLanguageModelSettings,
    RecurrentSettings,
    SequenceVAESettings,
    TransformerLanguageModelSettings,
    TransformerSettings,
)
from keras_seq.settings.speech_models import (
    AttentionRecognizerSettings,
    CTCRecognizerSettings,
    WakeWordSettings,
)

_OWN: dict[str, type[ModelSection]] = {
    section.model_fields["family"].default: section
    for section in (
        TransformerSettings,
        RecurrentSettings,
        TransformerLanguageModelSettings,
        RecurrentLanguageModelSettings,
        BagClassifierSettings,
        RecurrentClassifierSettings,
        ConvolutionalClassifierSettings,
        TransformerClassifierSettings,
        RecurrentTaggerSettings,
        TransformerTaggerSettings,
        SequenceVAESettings,
        BackboneClassifierSettings,
        BackboneSeq2SeqSettings,
        CTCRecognizerSettings,
        AttentionRecognizerSettings,
        WakeWordSettings,
    )
}


FAMILIES = WithPlugins("family", _OWN, lambda name, family: family.section)
reserve("family", _OWN)


def families_of(task: Any) -> tuple[str, ...]:
    """Returns the families of models for a task, the default first.

    Raises SettingsError if there is none.
    """
    others = added("family").items()
    found = (*task.families, *(name for name, family in others if task.name in family.tasks))
    if not found:
        raise SettingsError(f"task {task.name!r} has no family of models: register or import one")
    return found


def model_section(value: Any) -> Any:
    """Validates the section `model` with the class of its family."""
    if not isinstance(value, dict):
        return value
    family = value.get("family")
    if not isinstance(family, str) or family not in FAMILIES:
        raise ValueError(f"family: received {show(family)}, expected {choices(FAMILIES)}")
    return FAMILIES[family].model_validate(value)
