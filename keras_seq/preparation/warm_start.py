"""What a training starts from besides its text: another run, or vectors of words.

All that can be wrong with these is found here, before Keras is imported. What is needed of
them is put into the run that is prepared, so that its training does not change with them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from keras_seq.preparation.pretrained import check_pretrained, keep_pretrained
from keras_seq.run import Run
from keras_seq.settings import PRESETS, BackboneSettings, Settings
from keras_seq.storage.checkpoints.tensor_file import (
    TensorFileError,
    TensorSpec,
    read_tensors,
    write_tensors,
)
from keras_seq.text import InputError, piece_vectors, vector_width

Notice = Callable[[str], None]

SIDES = ("source", "target")
# What presets say of a training: how large its steps are and how often it is looked at.
_TRAINING_KEYS = {key for preset in PRESETS.values() for key in preset["training"]} - {"max_steps"}


def base_settings(path: str | Path) -> dict[str, Any]:
    """What a training that starts from a run takes from it, in the place of a preset.

    Args:
        path: The run's directory.

    Returns:
        Nested values, as `load_settings` takes them for `base`.

    Raises:
        InputError: No run with weights.

    Example:

    >>> from keras_seq import load_settings
    >>> settings = load_settings(  # doctest: +SKIP
    ...     base=base_settings("runs/first"),
    ...     overrides={"training.from_run": "runs/first", "data.pairs": "other.tsv"},
    ... )
    """
    settings = _open(path).settings
    values = settings.to_dict()
    training = {key: values["training"][key] for key in _TRAINING_KEYS & values["training"].keys()}
    base = {"tokenizer": values["tokenizer"], "model": values["model"], "training": training}
    if isinstance(settings.model, BackboneSettings):
        # A pretrained encoder has so many positions and no more.
        base["data"] = {"max_source_length": settings.data.max_source_length}
    return base


def check_initial_checkpoint(
    settings: Settings, directory: str | os.PathLike[str], notice: Notice | None = None
) -> None:
    """Refuses a start that cannot be, before the text is read or anything is written.

    Args:
        settings: Of the training.
        directory: Where it shall be.
        notice: Called with a line for each damaged checkpoint passed over.

    Raises:
        InputError: No run with weights, or one with another model, with each difference; the
            run that is to be made itself; vectors that do not fit the embeddings.
    """
    path = settings.training.from_run
    if path is not None:
        if Path(directory).exists() and Path(path).exists() and Path(path).samefile(directory):
            raise InputError(
                f"{path}: the run to start from and the run to make are one directory: name another"
            )
        _check_model(_open(path, notice), settings)
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


def vocabulary_run(settings: Settings) -> Run | None:
    """The run whose vocabulary a training goes on with, None if it is to be learned."""
    return _open(settings.training.from_run or "") if keeps_vocabulary(settings) else None


def keeps_vocabulary(settings: Settings) -> bool:
    """Whether a training takes the vocabulary of the run that it starts from."""
    training = settings.training
    return training.from_run is not None and training.from_run_vocabulary == "keep"


def copy_initial_checkpoint(run: Run, notice: Notice | None = None) -> None:
    """Puts into a run what its training starts from.

    Args:
        run: With its settings and tokenizers.
        notice: Called with what was found.

    Raises:
        InputError: Another run without a whole checkpoint, or a file that is none of vectors.
    """
    say = notice or (lambda line: None)
    path = run.settings.training.from_run
    if path is not None:
        base = _open(path, notice)
        _check_model(base, run.settings)
        step = base.copy_checkpoint(run.start_directory).checkpoints.latest_step
        say(f"starts from {path}: its best weights, of step {step:,}, are copied")
    keep_pretrained(run, say)
    for side, name in _vector_files(run.settings):
        tokenizer = run.source_tokenizer if side == "source" else run.target_tokenizer
        ids, vectors = piece_vectors(tokenizer, name, notice=say)
        size = tokenizer.vocabulary_size
        words = sum(piece.is_text for piece in tokenizer.pieces)
        if not len(ids):
            raise InputError(
                f"{name}: has none of the {words:,} pieces of the {side} vocabulary: is it of "
                "another language?"
            )
        say(
            f"{name}: vectors for {len(ids):,} of {words:,} pieces of the {side} vocabulary "
            f"({len(ids) / words:.0%})"
        )
        table = np.zeros((size, vectors.shape[1]), np.float32)
        table[ids] = vectors
        found = np.zeros(size, bool)
        found[ids] = True
        run.vectors_file(side).parent.mkdir(exist_ok=True)
        try:
            write_tensors(run.vectors_file(side), {"vectors": table, "found": found})
        except TensorFileError as error:
            raise InputError(f"{name}: {error}") from None


def kept_vectors(run: Run, side: str, units: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Ids and vectors `(N, D)` that `copy_initial_checkpoint` put into a run, or None.

    Args:
        run: Prepared.
        side: "source" or "target".
        units: The width D.

    Raises:
        InputError: A file that is not what was put there.
    """
    path = run.vectors_file(side)
    if side not in dict(_vector_files(run.settings)):
        return None
    tokenizer = run.source_tokenizer if side == "source" else run.target_tokenizer
    size = tokenizer.vocabulary_size
    expected = {
        "vectors": TensorSpec((size, units), "float32"),
        "found": TensorSpec((size,), "bool"),
    }
    try:
        arrays = read_tensors(path, expected)
    except (OSError, TensorFileError) as error:
        raise InputError(f"{path}: not what the run was prepared with: {error}") from None
    ids = np.flatnonzero(arrays["found"])
    return ids, arrays["vectors"][ids]


def sides_with_vectors(settings: Settings) -> list[str]:
    """The sides whose embeddings start from a file of word vectors."""
    return [side for side, _ in _vector_files(settings)]


def _open(path: str | Path, notice: Notice | None = None) -> Run:
    run = Run.open(path, notice=notice)
    run.require_weights()
    return run


def _vector_files(settings: Settings) -> list[tuple[str, str]]:
    files = [(side, getattr(settings.training, f"{side}_embeddings")) for side in SIDES]
    return [(side, name) for side, name in files if name is not None]


def _check_model(base: Run, settings: Settings) -> None:
    differences = _differences("model", base.settings, settings)
    # A vocabulary that is kept brings its settings; what was not asked for gives way.
    new = settings.training.from_run_vocabulary == "new"
    matter = {"joint"} if new else settings.tokenizer.model_fields_set
    differences += [
        line
        for line in _differences("tokenizer", base.settings, settings)
        if line.split(" ")[0].removeprefix("tokenizer.") in matter
    ]
    if differences:
        raise InputError(
            f"{base.path}: its weights are of another model than is to be trained: "
            f"{'; '.join(differences)}: leave out the preset and these settings, or give what it "
            "was trained with"
        )


def _differences(section: str, base: Settings, settings: Settings) -> list[str]:
    was: Mapping[str, Any] = getattr(base, section).model_dump()
    now: Mapping[str, Any] = getattr(settings, section).model_dump()
    return [
        f"{section}.{key} {was.get(key)} -> {now.get(key)}"
        for key in {**was, **now}
        # Rates of dropout decide how a model is trained, not what it is.
        if was.get(key) != now.get(key) and not key.endswith("dropout")
    ]
