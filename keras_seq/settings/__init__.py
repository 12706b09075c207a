"""Settings: their sections, the presets, how they are read, and what is said of a wrong one."""

from keras_seq.settings.errors import SettingsError
from keras_seq.settings.presets import PRESETS, choose_preset
from keras_seq.settings.sections import (
    DataSettings,
    RecurrentSettings,
    SearchSettings,
    TokenizerSettings,
    TrainingSettings,
    TransformerSettings,
)
from keras_seq.settings.settings import MAX_FILE_BYTES, Settings, load_settings, setting_keys

__all__ = [
    "MAX_FILE_BYTES",
    "PRESETS",
    "DataSettings",
    "RecurrentSettings",
    "SearchSettings",
    "Settings",
    "SettingsError",
    "TokenizerSettings",
    "TrainingSettings",
    "TransformerSettings",
    "choose_preset",
    "load_settings",
    "setting_keys",
]
