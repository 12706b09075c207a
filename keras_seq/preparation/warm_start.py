"""Warm start: checks weights or word vectors and copies them into a run, without Keras."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_seq.plugins import plugin_of
from keras_seq.preparation.pretrained import check_pretrained, copy_pretrained
from keras_seq.run import Run, is_run
from keras_seq.settings import PRESETS, SIDES, BackboneSettings, Settings, Side
from keras_seq.storage import require_space
from keras_seq.storage.checkpoints.tensor_file import (
    TensorFileError,
    TensorSpec,
    read_tensors,
    write_tensors,
)
from keras_seq.text import InputError, Notice, Tokenizer, piece_vectors, vector_width


def _training_keys() -> set[str]:
    """Returns training settings of presets: learning rate, batch size and intervals."""
    keys = {key for preset in PRESETS.values() for key in preset["training"]}
    return keys - {"max_steps"}


def base_settings(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the settings that a warm start from the run `path` uses instead of a preset.

    The result is a nested dict for the argument `base` of `load_settings`. Raises InputError if
    `path` is not a run with weights.

    Example:

    >>> from keras_seq import load_settings
    >>> settings = load_settings(  # doctest: +SKIP
    ...     base=base_settings("runs/first"),
    ...     overrides={"training.from_run": "runs/first", "data.pairs": "other.tsv"},
    ... )
    """
    settings = _open(path).settings
    values = settings.to_dict()
    keys = _training_keys() & values["training"].keys()
    training = {key: values["training"][key] for key in keys}
    base = {"tokenizer": values["tokenizer"], "model": values["model"], "training": training}
    if isinstance(settings.model, BackboneSettings):
        # The positions of a pretrained encoder limit the length.
        base["data"] = {"max_source_length": settings.data.max_source_length}
    return base


def initial_checkpoint(path: str, earlier: Run | None) -> str | Path:
    """Returns the directory of the initial checkpoint: a copy in the run `earlier`, or `path`."""
    if earlier is not None and earlier.settings.training.from_run == path:
        if is_run(earlier.start_directory):
            return earlier.start_directory
    return path


def _check_family(settings: Settings) -> None:
    """Raises InputError if a warm start needs layer names that a plugin's model may not have."""
    if plugin_of("family", settings.model.family) is None:
        return
    training = settings.training
    for key, value, allowed in (
        ("from_run_vocabulary", training.from_run_vocabulary, "keep"),
        ("source_embeddings", training.source_embeddings, None),
        ("target_embeddings", training.target_embeddings, None),
    ):
        if value != allowed:
            raise InputError(
                f"training.{key}: received {value!r}, expected {allowed or 'none'} with "
                f"model.family {settings.model.family!r}, whose embeddings are those of a plugin"
            )


def check_initial_checkpoint(
    settings: Settings, directory: str | os.PathLike[str], notice: Notice
) -> Run | None:
    """Checks everything that a warm start needs, before the text is read.

    Returns the run with the initial checkpoint, or None. Raises InputError if that run has no
    weights, has a different model, or is `directory` itself; or if pretrained weights or word
    vectors do not fit.
    """
    _check_family(settings)
    path = settings.training.from_run
    base = None
    if path is not None:
        if Path(directory).exists() and Path(path).exists() and Path(path).samefile(directory):
            raise InputError(
                f"{path}: the initial checkpoint and the new run are in the same directory: use "
                "another directory for the new run"
            )
        base = _open(path, notice)
        _check_model(base, settings)
    check_pretrained(settings)
    units = settings.model.embedding_width
    for side, name in _vector_files(settings):
        width = vector_width(name)
        if width != units:
            key = "embedding_units" if hasattr(settings.model, "embedding_units") else "units"
            raise InputError(
                f"{name}: its vectors have {width:,} numbers, the {side} embedding has {units:,}: "
                f"set model.{key}={width}, or give another file"
            )
    return base


def keeps_vocabulary(settings: Settings) -> bool:
    """Tests if a training keeps the vocabulary of its initial checkpoint or of its teacher."""
    return starts_with_vocabulary(settings) or settings.training.teacher is not None


def starts_with_vocabulary(settings: Settings) -> bool:
    """Tests if a warm start keeps the vocabulary of the run with the initial checkpoint."""
    training = settings.training
    return training.from_run is not None and training.from_run_vocabulary == "keep"


def copy_initial_checkpoint(run: Run, base: Run | None, notice: Notice) -> None:
    """Copies all that a warm start needs, except vocabularies, into the directory of a run."""
    if base is not None:
        # Check again, because reading the text may have changed the vocabulary settings.
        _check_model(base, run.settings)
        require_space_of_weights(base, run)
        step = base.copy_checkpoint(run.start_directory).checkpoints.latest_step
        notice(f"initial weights: the best weights of {base.path}, of step {step:,}, are copied")
    copy_pretrained(run, notice)
    for side, name in _vector_files(run.settings):
        _copy_vectors(run, side, name, notice)


def require_space_of_weights(base: Run, run: Run) -> None:
    """Raises InputError if the weights of a run do not fit on the disk of another run.

    The copy of a sparse file, which can be larger than its disk space, is refused elsewhere.
    """
    size = base.checkpoints.weights_size() or 0
    require_space(size, run.path, f"the copy of the weights of {base.path}")


def _copy_vectors(run: Run, side: Side, name: str, notice: Notice) -> None:
    tokenizer = _tokenizer(run, side)
    ids, vectors = piece_vectors(tokenizer, name, notice=notice)
    words = sum(piece.is_text for piece in tokenizer.pieces)
    if not len(ids):
        raise InputError(
            f"{name}: has none of the {words:,} pieces of the {side} vocabulary: is it of "
            "another language?"
        )
    notice(
        f"{name}: vectors for {len(ids):,} of {words:,} pieces of the {side} vocabulary "
        f"({len(ids) / words:.0%})"
    )
    table = np.zeros((tokenizer.vocabulary_size, vectors.shape[1]), np.float32)
    table[ids] = vectors
    has_vector = np.zeros(len(table), bool)
    has_vector[ids] = True
    file = run.vectors_file(side)
    file.parent.mkdir(exist_ok=True)
    try:
        write_tensors(file, {"vectors": table, "found": has_vector})
    except TensorFileError as error:
        raise InputError(f"{name}: {error}") from None


def copied_vectors(run: Run, side: Side, units: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Returns the initial word vectors of one side that preparation copied into a run.

    These are ids `(N,)` and vectors `(N, units)`, or None if this side has none.
    """
    path = run.vectors_file(side)
    if side not in dict(_vector_files(run.settings)):
        return None
    size = _tokenizer(run, side).vocabulary_size
    shapes = {"vectors": ((size, units), "float32"), "found": ((size,), "bool")}
    try:
        arrays = read_tensors(path, {name: TensorSpec(*shape) for name, shape in shapes.items()})
    except (OSError, TensorFileError) as error:
        raise InputError(f"{path}: changed since the run was prepared: {error}") from None
    ids = np.flatnonzero(arrays["found"])
    return ids, arrays["vectors"][ids]


def sides_with_vectors(settings: Settings) -> list[Side]:
    """Returns the sides whose embeddings start from a file of word vectors."""
    return [side for side, _ in _vector_files(settings)]


def _tokenizer(run: Run, side: Side) -> Tokenizer:
    return run.source_tokenizer if side == "source" else run.target_tokenizer


def _open(path: str | os.PathLike[str], notice: Notice | None = None) -> Run:
    run = Run.open(path, notice=notice)
    run.require_weights()
    return run


def _vector_files(settings: Settings) -> list[tuple[Side, str]]:
    files = [(side, getattr(settings.training, f"{side}_embeddings")) for side in SIDES]
    return [(side, name) for side, name in files if name is not None]


def _check_model(base: Run, settings: Settings) -> None:
    """Raises InputError if the initial weights do not fit the model or the vocabulary."""
    differences = _differences("model", base.settings, settings)
    # The settings of a kept vocabulary apply. Only settings from the user can conflict with them.
    new = settings.training.from_run_vocabulary == "new"
    relevant = {"joint"} if new else settings.tokenizer.model_fields_set
    differences += [
        line
        for line in _differences("tokenizer", base.settings, settings)
        if line.split(" ")[0].removeprefix("tokenizer.") in relevant
    ]
    if differences:
        raise InputError(
            f"{base.path}: its weights do not fit the model to train: {'; '.join(differences)}: "
            "leave out the preset and these settings, or give those of the weights"
        )


def _differences(section: str, base: Settings, settings: Settings) -> list[str]:
    was: Mapping[str, Any] = getattr(base, section).model_dump()
    now: Mapping[str, Any] = getattr(settings, section).model_dump()
    return [
        f"{section}.{key} {was.get(key)} -> {now.get(key)}"
        for key in {**was, **now}
        # Dropout rates affect training only, not the shape of the model.
        if was.get(key) != now.get(key) and not key.endswith("dropout")
    ]
