"""Word pieces and weights of pretrained encoders of KerasHub, read without Keras."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

from keras_seq.run import Run
from keras_seq.settings import (
    BACKBONE_CLASSES,
    PREFIX,
    BackboneSettings,
    Settings,
    SettingsError,
    is_known_by_name,
    preset_directory,
    read_backbone,
)
from keras_seq.storage import (
    atomic_file,
    open_regular,
    read_file,
    read_json,
    reason,
    require_space,
    size_on_disk,
    sync_tree,
    temporary_directory,
)
from keras_seq.storage.limits import MAX_VOCABULARY_BYTES
from keras_seq.text import InputError, Notice, WordPieceTokenizer

_TOKENIZERS = ("BertTokenizer", "DistilBertTokenizer")
_WEIGHTS = "model.weights.h5"
# Bytes of positions, segments and biases, which the lower bound of a size does not count.
_OTHER_WEIGHTS = 64 << 20
# Files of a preset that training needs.
_FILES = ("config.json", _WEIGHTS)
_NO_KERAS_HUB = "a pretrained encoder needs KerasHub: python -m pip install 'keras-seq[hub]'"
_SAVE = """
import sys
import keras_hub
name, directory, *kinds = sys.argv[1:]
kind = type(keras_hub.models.Backbone.from_preset(name, load_weights=False)).__name__
if kind not in kinds:
    raise SystemExit(f"{kind}, expected {' or '.join(kinds)}")
keras_hub.models.Backbone.from_preset(name).save_to_preset(directory)
keras_hub.tokenizers.Tokenizer.from_preset(name).save_to_preset(directory)
"""


def fetch_preset(preset: str | None, notice: Notice | None = None) -> None:
    """Downloads a preset that KerasHub knows by name, once. Other presets are ignored.

    Raises InputError if KerasHub is not installed, or has no such preset.
    """
    if preset is None or not preset.startswith(PREFIX):
        return
    name = preset.removeprefix(PREFIX)
    directory = preset_directory(name)
    if not is_known_by_name(name) or (directory / _WEIGHTS).is_file():
        return
    if notice:
        notice(f"{name}: KerasHub downloads it to {directory}")
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{directory}: cannot be written: {reason(error)}") from None
    with temporary_directory(directory.parent, directory.name) as part:
        # Use a separate process, because the backend of Keras in this process is not chosen yet.
        process = subprocess.run(
            [sys.executable, "-P", "-c", _SAVE, name, str(part), *BACKBONE_CLASSES],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if process.returncode == 0:
            sync_tree(part)
            # Another process may have downloaded the preset meanwhile.
            with contextlib.suppress(OSError):
                part.rename(directory)
    if process.returncode:
        lines = [line for line in process.stderr.splitlines() if line.strip()] or [""]
        if "No module named 'keras_hub'" in lines[-1]:
            raise InputError(_NO_KERAS_HUB)
        raise InputError(f"{PREFIX}{name}: KerasHub cannot load it: {lines[-1].strip()[:300]}")


def read_word_pieces(directory: str | Path) -> WordPieceTokenizer:
    """Reads the tokenizer of an untrusted preset. Raises InputError if it is unsupported."""
    path = Path(directory) / "tokenizer.json"
    values = read_json(path, MAX_VOCABULARY_BYTES)
    kind, config = values.get("class_name"), values.get("config")
    if kind not in _TOKENIZERS or not isinstance(config, dict):
        raise InputError(f"{path}: expected a tokenizer of {' or '.join(_TOKENIZERS)}")
    if config.get("suffix_indicator") != "##" or config.get("oov_token") != "[UNK]":
        raise InputError(f"{path}: expected the suffix indicator ## and the unknown token [UNK]")
    if config.get("split", True) is not True or config.get("special_tokens_in_strings"):
        raise InputError(f"{path}: expected split words and no special tokens in strings")
    vocabulary = Path(directory) / "assets" / "tokenizer" / "vocabulary.txt"
    content = read_file(vocabulary, MAX_VOCABULARY_BYTES)
    try:
        text = content.decode("utf-8")
        lines = text.replace("\r\n", "\n").split("\n")
        return WordPieceTokenizer(
            lines[:-1] if lines[-1] == "" else lines,
            lowercase=config.get("lowercase") is True,
            strip_accents=config.get("strip_accents") is True,
        )
    except UnicodeDecodeError:
        raise InputError(f"{vocabulary}: not UTF-8 text") from None
    except InputError as error:
        raise InputError(f"{vocabulary}: {error}") from None


def pretrained_pieces(settings: Settings) -> str | None:
    """Returns the SHA-256 of the pretrained word pieces; None if the vocabulary is learned."""
    if settings.training.from_hub is None:
        return None
    pieces = read_word_pieces(preset_directory(settings.training.from_hub))
    return hashlib.sha256(pieces.to_bytes()).hexdigest()


def check_pretrained(settings: Settings) -> None:
    """Raises InputError if the pretrained encoder is incomplete or does not fit the settings."""
    name, model = settings.training.from_hub, settings.model
    if name is None or not isinstance(model, BackboneSettings):
        return
    directory = preset_directory(name)
    try:
        shape, rows = read_backbone(directory)
    except SettingsError as error:
        raise InputError(str(error)) from None
    expected = model.model_dump()
    differences = [
        f"model.{key} {value} -> {expected[key]}"
        for key, value in shape.items()
        # Dropout rates affect training only, not the shape of the encoder.
        if value != expected[key] and not key.endswith("dropout")
    ]
    if differences:
        raise InputError(
            f"{directory}: the encoder does not fit the settings: {'; '.join(differences)}: leave "
            "these settings to the preset"
        )
    pieces = read_word_pieces(directory).vocabulary_size
    if pieces > rows:
        raise InputError(f"{directory}: {pieces:,} word pieces, but embeddings for only {rows:,}")
    weights = directory / _WEIGHTS
    if not weights.exists():
        raise InputError(f"{weights}: no such file: a preset without weights?")
    if weights.is_symlink() or not weights.is_file():
        raise InputError(f"{weights}: expected a regular file")
    # Check the size before building a huge model. A stored number takes at least two bytes.
    min_size = 2 * (rows * model.backbone_units + model.min_backbone_parameters())
    status = weights.stat()
    if size_on_disk(status) < status.st_size:
        raise InputError(f"{weights}: a sparse file: it has holes instead of weights")
    # A generous limit.
    max_size = 8 * min_size + _OTHER_WEIGHTS
    if not min_size <= (size := status.st_size) <= max_size:
        limit = f"at least {min_size:,}" if size < min_size else f"at most {max_size:,}"
        raise InputError(
            f"{weights}: received {size:,} bytes, expected {limit} for the encoder that "
            "config.json describes"
        )
    if importlib.util.find_spec("keras_hub") is None:
        raise InputError(_NO_KERAS_HUB)


def copied_preset(preset: str, earlier: Run | None) -> Path | None:
    """Returns the copy of a preset of KerasHub in a run that may be resumed, or None."""
    if earlier is None or not preset.startswith(PREFIX):
        return None
    directory = earlier.pretrained_directory
    same = earlier.settings.training.from_hub == preset.removeprefix(PREFIX)
    try:
        # An unfinished preparation may have an incomplete copy.
        complete = earlier.read_preparation() is not None
    except InputError:
        return None
    return directory if same and complete and directory.is_dir() else None


def copy_pretrained(run: Run, notice: Notice) -> None:
    """Copies the weights of the pretrained encoder, if any, into a new run."""
    preset = run.settings.training.from_hub
    if preset is None:
        return
    directory = preset_directory(preset)
    if read_word_pieces(directory).to_bytes() != run.source_tokenizer.to_bytes():
        raise InputError(
            f"{directory}: its word pieces differ from the source vocabulary of the prepared "
            "text: prepare the text with this preset"
        )
    run.pretrained_directory.mkdir(parents=True, exist_ok=True)
    weights = directory / _WEIGHTS
    if weights.is_file():
        require_space(weights.stat().st_size, run.path, f"the copy of {weights}")
    for name in _FILES:
        try:
            with (
                open_regular(directory / name) as source,
                atomic_file(run.pretrained_directory / name) as copy,
            ):
                shutil.copyfileobj(source, copy)
        except OSError as error:
            where = f"{directory / name}, copied into {run.pretrained_directory}"
            raise InputError(f"{where}: {reason(error)}") from None
    notice(f"initial weights: those of the pretrained encoder {preset} are copied")
