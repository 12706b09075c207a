"""A pretrained encoder of KerasHub that a training starts from: its word pieces and its weights.

Read without Keras; what is needed of a preset is put into the run that is prepared.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Callable
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
    size_on_disk,
    sync_tree,
    temporary_directory,
)
from keras_seq.text import InputError, WordPieceTokenizer

Notice = Callable[[str], None]

_MAX_BYTES = 64 << 20
_TOKENIZERS = ("BertTokenizer", "DistilBertTokenizer")
_WEIGHTS = "model.weights.h5"
# What the training itself needs of a preset.
_KEPT = ("config.json", _WEIGHTS)
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
    """Sees that a preset of KerasHub is there: one that it knows by a name it fetches, once.

    Args:
        preset: As of `--preset`; what is not `hub:` and such a name is left alone.
        notice: Called before something is fetched.

    Raises:
        InputError: KerasHub is not installed, or has no such preset.
    """
    if preset is None or not preset.startswith(PREFIX):
        return
    name = preset.removeprefix(PREFIX)
    directory = preset_directory(name)
    if not is_known_by_name(name) or (directory / _WEIGHTS).is_file():
        return
    if notice:
        notice(f"{name}: fetched by KerasHub into {directory}")
    _fetch(name, directory)


def _fetch(name: str, directory: Path) -> None:
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{directory}: cannot be written: {reason(error)}") from None
    with temporary_directory(directory.parent, directory.name) as part:
        # A process of its own: nothing here needs Keras, or has its backend settled.
        done = subprocess.run(
            [sys.executable, "-P", "-c", _SAVE, name, str(part), *BACKBONE_CLASSES],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode == 0:
            sync_tree(part)
            # Another process may have been as quick.
            with contextlib.suppress(OSError):
                part.rename(directory)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or [""]
        if "No module named 'keras_hub'" in lines[-1]:
            raise InputError("a pretrained encoder needs KerasHub: pip install 'keras-seq[hub]'")
        raise InputError(f"{PREFIX}{name}: KerasHub cannot fetch it: {lines[-1].strip()[:300]}")


def read_word_pieces(directory: str | Path) -> WordPieceTokenizer:
    """The tokenizer of a preset; it is not trusted.

    Args:
        directory: Of the preset.

    Raises:
        InputError: It is not there, or of another kind.
    """
    path = Path(directory) / "tokenizer.json"
    values = read_json(path, _MAX_BYTES)
    kind, config = values.get("class_name"), values.get("config")
    if kind not in _TOKENIZERS or not isinstance(config, dict):
        raise InputError(f"{path}: expected a tokenizer of {' or '.join(_TOKENIZERS)}")
    if config.get("suffix_indicator") != "##" or config.get("oov_token") != "[UNK]":
        raise InputError(f"{path}: expected pieces that go on with ##, and [UNK] for what is none")
    if config.get("split", True) is not True or config.get("special_tokens_in_strings"):
        raise InputError(f"{path}: expected words that are split, and no special pieces in text")
    vocabulary = Path(directory) / "assets" / "tokenizer" / "vocabulary.txt"
    try:
        text = read_file(vocabulary, _MAX_BYTES).decode("utf-8")
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
    """SHA-256 of the word pieces that a training starts with, None where they are learned."""
    if settings.training.from_hub is None:
        return None
    pieces = read_word_pieces(preset_directory(settings.training.from_hub))
    return hashlib.sha256(pieces.to_bytes()).hexdigest()


def check_pretrained(settings: Settings) -> None:
    """Refuses a pretrained encoder that cannot be, before text is read or anything is written.

    Args:
        settings: Of the training.

    Raises:
        InputError: No preset, one that is not whole, or of another shape than the settings say.
    """
    name, model = settings.training.from_hub, settings.model
    if name is None or not isinstance(model, BackboneSettings):
        return
    directory = preset_directory(name)
    try:
        found, rows = read_backbone(directory)
    except SettingsError as error:
        raise InputError(str(error)) from None
    now = model.model_dump()
    differences = [
        f"model.{key} {value} -> {now[key]}"
        for key, value in found.items()
        # A rate of dropout decides how it is trained, not what it is.
        if value != now[key] and not key.endswith("dropout")
    ]
    if differences:
        raise InputError(
            f"{directory}: the encoder is of another shape than is to be trained: "
            f"{'; '.join(differences)}: leave these settings to the preset"
        )
    pieces = read_word_pieces(directory).vocabulary_size
    if pieces > rows:
        raise InputError(f"{directory}: {pieces:,} word pieces, and vectors for {rows:,} of them")
    weights = directory / _WEIGHTS
    if not weights.exists():
        raise InputError(f"{weights}: no such file: a preset without weights?")
    if weights.is_symlink() or not weights.is_file():
        raise InputError(f"{weights}: expected a regular file")
    # Before a model of terabytes is built; two bytes is the least that a number takes.
    least = 2 * (rows * model.backbone_units + model.min_backbone_parameters())
    status = weights.stat()
    if size_on_disk(status) < status.st_size:
        raise InputError(f"{weights}: a sparse file: it has holes instead of weights")
    if (size := status.st_size) < least:
        raise InputError(
            f"{weights}: {size:,} bytes, and config.json describes an encoder of at least {least:,}"
        )
    if importlib.util.find_spec("keras_hub") is None:
        raise InputError("a pretrained encoder needs KerasHub: pip install 'keras-seq[hub]'")


def keep_pretrained(run: Run, notice: Notice) -> None:
    """Puts into a run the weights that its encoder starts from.

    Args:
        run: New.
        notice: Called with what was done.

    Raises:
        InputError: A file cannot be read or written, or the vocabulary is not the encoder's.
    """
    preset = run.settings.training.from_hub
    if preset is None:
        return
    directory = preset_directory(preset)
    pieces, kept = read_word_pieces(directory), run.source_tokenizer
    if pieces.to_bytes() != kept.to_bytes():
        raise InputError(
            f"{directory}: its word pieces are not the source vocabulary that the text was "
            "prepared with: prepare it with this preset"
        )
    run.pretrained_directory.mkdir(parents=True, exist_ok=True)
    for name in _KEPT:
        try:
            with (
                open_regular(directory / name) as source,
                atomic_file(run.pretrained_directory / name) as copy,
            ):
                shutil.copyfileobj(source, copy)
        except OSError as error:
            where = f"{directory / name}, copied into {run.pretrained_directory}"
            raise InputError(f"{where}: {reason(error)}") from None
    notice(f"starts from the pretrained encoder {preset}: its weights are copied")
