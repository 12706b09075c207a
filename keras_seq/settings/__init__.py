"""Settings of a run: sections, presets, loading, and error messages."""

from keras_seq.settings.combinations import allows_several_members
from keras_seq.settings.data import DataSettings
from keras_seq.settings.errors import SettingsError
from keras_seq.settings.families import FAMILIES
from keras_seq.settings.hub_models import BackboneSeq2SeqSettings, BackboneSettings
from keras_seq.settings.hub_presets import (
    BACKBONE_CLASSES,
    PREFIX,
    is_known_by_name,
    preset_directory,
    read_backbone,
)
from keras_seq.settings.loading import load_settings
from keras_seq.settings.monitors import METRICS, MONITORS, TEXT_MONITORS
from keras_seq.settings.preset_choice import choose_preset
from keras_seq.settings.presets import PRESETS
from keras_seq.settings.score import ScoreSettings
from keras_seq.settings.search import SearchSettings
from keras_seq.settings.section import (
    ModelSection,
    a_choice,
    a_family,
    a_number,
    a_share,
    a_text,
    as_list,
)
from keras_seq.settings.sequence_models import RecurrentSettings, TransformerSettings
from keras_seq.settings.settings import Settings, setting_keys
from keras_seq.settings.small_corpus import (
    CorpusShape,
    in_proportion,
    in_proportion_to_sounds,
    in_proportion_to_texts,
)
from keras_seq.settings.tasks import TASKS, metrics_of, monitors_of
from keras_seq.settings.tokenizer import (
    SIDES,
    SUBWORDS,
    Side,
    TokenizerSettings,
    VocabularySettings,
)
from keras_seq.settings.toml import MAX_FILE_BYTES
from keras_seq.settings.training import TrainingSettings

__all__ = [
    "BACKBONE_CLASSES",
    "FAMILIES",
    "MAX_FILE_BYTES",
    "METRICS",
    "MONITORS",
    "PRESETS",
    "PREFIX",
    "SIDES",
    "SUBWORDS",
    "TASKS",
    "TEXT_MONITORS",
    "BackboneSeq2SeqSettings",
    "BackboneSettings",
    "CorpusShape",
    "DataSettings",
    "ModelSection",
    "RecurrentSettings",
    "ScoreSettings",
    "SearchSettings",
    "Settings",
    "SettingsError",
    "Side",
    "TokenizerSettings",
    "TrainingSettings",
    "TransformerSettings",
    "VocabularySettings",
    "a_choice",
    "a_family",
    "a_number",
    "a_share",
    "a_text",
    "allows_several_members",
    "as_list",
    "choose_preset",
    "in_proportion",
    "in_proportion_to_sounds",
    "in_proportion_to_texts",
    "is_known_by_name",
    "load_settings",
    "metrics_of",
    "monitors_of",
    "preset_directory",
    "read_backbone",
    "setting_keys",
]
