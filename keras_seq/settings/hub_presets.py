"""Presets `hub:NAME`: settings of models with a pretrained encoder of KerasHub."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import ValidationError

from keras_seq.settings.errors import SettingsError, choices, show
from keras_seq.settings.hub_models import BackboneClassifierSettings
from keras_seq.settings.presets import model_values, training_values

PREFIX = "hub:"
_MAX_BYTES = 1 << 20
# Values of `model.backbone` by class name.
BACKBONE_CLASSES = {"BertBackbone": "bert", "DistilBertBackbone": "distil_bert"}
# Maps names of KerasHub to settings.
_SIZES = {
    "num_layers": "backbone_layers",
    "hidden_dim": "backbone_units",
    "intermediate_dim": "backbone_feedforward_units",
    "num_heads": "backbone_heads",
    "max_sequence_length": "backbone_positions",
    "dropout": "backbone_dropout",
}
# Common values for fine-tuning such encoders. They have not been tuned for this library.
_TASKS: Mapping[str, dict[str, Any]] = {
    "classify": {
        "model": model_values("classifier-hub"),
        "training": training_values(0.00005, 100, ema=0.99, every=200),
    },
    "translate": {
        "tokenizer": {"joint": False},
        "model": model_values(
            "transformer-hub",
            num_decoder_layers=3,
            units=256,
            feedforward_units=1024,
            num_heads=4,
            dropout=0.2,
        ),
        "training": training_values(0.0003, 1000, ema=0.998),
    },
}
_LONGEST = {"classify": 400, "translate": 200}


def preset_directory(name: str) -> Path:
    """Returns the directory of a preset of KerasHub, even if it is not downloaded yet.

    Downloads are stored in a folder of `KERAS_HOME`, or else of `~/.keras`.
    """
    if not is_known_by_name(name):
        return Path(os.path.expanduser(name))
    home = os.environ.get("KERAS_HOME") or os.path.expanduser("~/.keras")
    return Path(home) / "keras-seq" / quote(name, safe="")


def is_known_by_name(name: str) -> bool:
    """Tests if a preset is a name that KerasHub knows, not a directory."""
    # A name that looks like a path means a directory, even if the directory does not exist.
    looks_like_a_path = name.startswith((".", "/", "~")) or "\\" in name or not name
    return not looks_like_a_path and not os.path.isdir(name)


def hub_preset(name: str, task: str) -> dict[str, Any]:
    """Returns the preset `hub:NAME` for a task: nested values, as in `PRESETS`."""
    if task not in _TASKS:
        raise SettingsError(
            f"preset {show(PREFIX + name)}: a pretrained encoder is for task "
            f"{choices(_TASKS)}, not for {show(task)}"
        )
    model, _ = read_backbone(preset_directory(name))
    values = {section: dict(keys) for section, keys in _TASKS[task].items()}
    values["model"].update(model)
    values["training"]["from_hub"] = name
    longest = min(_LONGEST[task], model["backbone_positions"] - 2)
    return {"task": task, "data": {"max_source_length": longest}, **values}


def read_backbone(directory: str | Path) -> tuple[dict[str, Any], int]:
    """Reads the untrusted `config.json` of a preset.

    Returns settings of the section `model`, and the number of rows of the embedding table.
    """
    path = Path(directory) / "config.json"
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            raise SettingsError(f"{path}: expected a regular file")
        with open(path, "rb") as file:
            content = file.read(_MAX_BYTES + 1)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise SettingsError(f"{path}: not a preset of KerasHub: {reason}") from None
    try:
        values = json.loads(content[:_MAX_BYTES])
        kind, config = values["class_name"], values["config"]
        backbone = BACKBONE_CLASSES.get(kind)
        sizes = {ours: config[theirs] for theirs, ours in _SIZES.items()} if backbone else {}
        rows = config["vocabulary_size"] if backbone else 0
    except (ValueError, RecursionError, KeyError, TypeError):
        raise SettingsError(f"{path}: not the configuration of a preset of KerasHub") from None
    if backbone is None:
        raise SettingsError(
            f"{path}: received {show(kind)}, expected an encoder with word pieces: "
            f"{choices(BACKBONE_CLASSES)}"
        )
    model = {"backbone": backbone, **sizes}
    try:
        BackboneClassifierSettings.model_validate(model)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = first["loc"][0] if first["loc"] else "backbone_heads"
        theirs = next(key for key, ours in _SIZES.items() if ours == name)
        raise SettingsError(f"{path}: {theirs}: received {show(config[theirs])}") from None
    if type(rows) is not int or not 0 < rows <= 10**7:
        raise SettingsError(f"{path}: vocabulary_size: received {show(rows)}")
    return model, rows
