"""Warm start: initial weights from another run, a pretrained encoder or word vectors."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Literal

import keras
import numpy as np

from keras_seq import backend
from keras_seq.models import BackboneTextEncoder
from keras_seq.preparation.warm_start import SIDES, copied_vectors, sides_with_vectors
from keras_seq.process.memory import is_out_of_memory
from keras_seq.run import Run
from keras_seq.run.models import build_run_model, named_weights, weight_shapes
from keras_seq.settings import SettingsError, read_backbone
from keras_seq.text import InputError, Tokenizer, WordPieceTokenizer, piece_vectors, pieces_in

Notice = Callable[[str], None]

# Shape letters: V vocabulary, D units, N vectors.

# Maps each layer that has one vector per token to the side of its vocabulary.
_TABLES = {
    "embedding": "source",
    "source_embedding": "source",
    "target_embedding": "target",
    "logits": "target",
}
# An optional layer after the encoder.
_POOLER = "pooled_dense/"
# Characters of an error of Keras that a message shows.
_MAX_REASON = 300
# The embedding, with one row per word piece.
_EMBEDDING = "token_embedding/embeddings"


def initialize_weights(run: Run, model: keras.Model, notice: Notice) -> None:
    """Sets the initial weights of a run that has no checkpoint yet.

    Raises InputError if the files of the run have changed since its preparation.
    """
    if run.settings.training.from_hub is not None:
        set_pretrained(run, model)
    if run.settings.training.from_run is not None:
        base = Run.open(run.start_directory)
        if run.settings.training.from_run_vocabulary == "keep":
            arrays = base.load_weights(weight_shapes(model))
        else:
            arrays = _with_new_vocabulary(run, base, model, notice)
        for name, weight in named_weights(model).items():
            weight.assign(arrays[name])
    assigned: set[int] = set()
    for side in sides_with_vectors(run.settings):
        tables = _embeddings(model, side)
        stored = copied_vectors(run, side, int(tables[0].shape[1]))
        if stored is not None:
            ids, vectors = stored
            # Both sides may share an embedding. The vectors of the source take precedence.
            new = [i for i, id in enumerate(ids) if id not in assigned]
            for weight in tables:
                _set_rows(weight, ids[new], vectors[new])
            if run.settings.tokenizer.joint:
                assigned.update(int(id) for id in ids)


def load_word_vectors(
    model: keras.Model,
    tokenizer: Tokenizer,
    path: str | os.PathLike[str],
    side: Literal["source", "target"] = "source",
) -> int:
    """Initializes rows of a model's embedding with word vectors from a file.

    Rows of tokens that are not in the file do not change. The vectors are scaled by a common factor
    so that their mean square equals that of the embedding.

    Args:
        model: A model of `keras_seq.models`.
        tokenizer: The tokenizer of `side`.
        path: File of word vectors; see `keras_seq.text.read_word_vectors`.
        side: "source" or "target". The result is the same if both sides share an embedding.

    Returns:
        The number of rows set.

    Raises:
        InputError: If the file does not contain word vectors, or their width differs from that of
            the embedding.
        ValueError: If `side` is invalid, or the vocabulary and the embedding differ in size.

    Example:

    >>> import pathlib, tempfile
    >>> from keras_seq.models import Transformer
    >>> from keras_seq.text import Tokenizer
    >>> tokenizer = Tokenizer.train(["dog cat dog cat"] * 9, size=280, kind="bpe")
    >>> size = tokenizer.vocabulary_size
    >>> model = Transformer(size, size, 1, 1, units=2, feedforward_units=4, num_heads=1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "vectors.txt"
    ...     _ = path.write_text("dog 1 0\\ncow 0 1\\n")
    ...     load_word_vectors(model, tokenizer, path)
    2
    >>> [piece.text for piece in tokenizer.pieces if piece.text.endswith("dog")]
    ['dog', '▁dog']
    """
    if side not in SIDES:
        raise ValueError(f'`side` must be "source" or "target", received {side!r}.')
    tables = _embeddings(model, side)
    rows, width = (int(size) for size in tables[0].shape)
    if rows != tokenizer.vocabulary_size:
        raise ValueError(
            f"The {side} embedding has {rows} rows, the tokenizer {tokenizer.vocabulary_size} "
            "pieces: give the one that the model was made for."
        )
    ids, vectors = piece_vectors(tokenizer, path)
    if vectors.shape[1] != width:
        raise InputError(
            f"{path}: its vectors have {vectors.shape[1]:,} numbers, the {side} embedding has "
            f"{width:,}"
        )
    for weight in tables:
        _set_rows(weight, ids, vectors)
    return len(ids)


def _embeddings(model: keras.Model, side: str) -> list[Any]:
    """Returns the embedding of a side; of an ensemble that of each member."""
    named = named_weights(model)
    for layer in (f"{side}_embedding", "embedding"):
        ending = [layer, "embeddings"]
        found = [weight for name, weight in named.items() if name.split("/")[-2:] == ending]
        if found:
            break
    return found


def _set_rows(weight: Any, ids: np.ndarray, vectors: np.ndarray) -> None:
    """Sets rows of an embedding `(V, D)` to vectors `(N, D)`, scaled to its mean square."""
    table = backend.to_numpy(weight)
    size = _root_mean_square(vectors)
    if size:
        vectors = vectors * (_root_mean_square(table) / size)
    table[ids] = vectors
    weight.assign(table)


def _root_mean_square(array: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(array, dtype=np.float64)))) if array.size else 0.0


def _with_new_vocabulary(
    run: Run, base: Run, model: keras.Model, notice: Notice
) -> dict[str, np.ndarray]:
    """Returns the weights of another run, with vectors of tokens mapped to a new vocabulary."""
    arrays = base.load_weights(weight_shapes(build_run_model(base)))
    vocabularies = {
        "source": (base.source_tokenizer, run.source_tokenizer),
        "target": (base.target_tokenizer, run.target_tokenizer),
    }
    rows = {side: pieces_in(*old_and_new) for side, old_and_new in vocabularies.items()}
    for name, weight in named_weights(model).items():
        side = _TABLES.get(name.split("/")[0])
        if side is None:
            continue
        # Tokens are the first axis of an embedding and the last axis of the output layer.
        axis = -1 if name.startswith("logits/") else 0
        old = np.moveaxis(arrays[name], axis, 0)
        arrays[name] = backend.to_numpy(weight)
        new = np.moveaxis(arrays[name], axis, 0)
        for id, ids in enumerate(rows[side]):
            if ids:
                new[id] = old[ids].mean(axis=0)
    joint = run.settings.tokenizer.joint
    for side in ("source",) if joint else SIDES:
        name = "joint" if joint else side
        notice(_describe_rows(name, *vocabularies[side], rows[side]))
    return arrays


def _describe_rows(side: str, old: Tokenizer, new: Tokenizer, rows: list[list[int]]) -> str:
    copied = sum(
        len(ids) == 1 and old.pieces[ids[0]].text == piece.text
        for piece, ids in zip(new.pieces, rows, strict=True)
    )
    fresh = sum(not ids for ids in rows)
    return (
        f"{side} vocabulary of {len(rows):,}: the rows of {copied:,} pieces are copied, "
        f"{len(rows) - copied - fresh:,} start as the mean of the pieces that they were cut into, "
        f"{fresh:,} are new"
    )


def set_pretrained(run: Run, model: keras.Model) -> None:
    """Loads the pretrained weights of a run into the encoder of its model.

    The rows of the embedding are reordered to the run's vocabulary. If the model has a layer with
    the name of the pretrained pooler (BERT's layer over the first step), its weights are loaded as
    well.
    """
    directory = run.pretrained_directory
    tokenizer = run.source_tokenizer
    if not isinstance(tokenizer, WordPieceTokenizer):
        raise InputError(f"{run.path}: its vocabulary is not that of a pretrained encoder")
    try:
        _, rows = read_backbone(directory)
    except SettingsError as error:
        raise InputError(str(error)) from None
    try:
        encoder = BackboneTextEncoder(rows, **run.settings.model.encoder_arguments()).backbone
        encoder.load_weights(directory / "model.weights.h5")
    except Exception as error:
        if is_out_of_memory(error):
            raise
        # For a damaged file, h5py raises RuntimeError and many other kinds.
        raise InputError(
            f"{directory}: not the weights of the encoder that settings.toml describes: "
            f"{_first_reason(error)}"
        ) from None
    weights = named_weights(model)
    for name, weight in named_weights(encoder).items():
        if name not in weights:
            if name.startswith(_POOLER):
                continue
            raise InputError(f"{directory}: the model has no weight {name}")
        array = backend.to_numpy(weight)
        if not np.isfinite(array).all():
            raise InputError(f"{directory}: the weight {name} has values that are not finite")
        if name.endswith(_EMBEDDING):
            array = array[list(tokenizer.original_ids)]
        weights[name].assign(array)


def _first_reason(error: Exception) -> str:
    """Returns the line of an error of Keras that says what is wrong."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [repr(error)]
    # Keras lists the objects that it could not load, and gives the error of one of them.
    line = lines[1] if lines[0].endswith(":") and len(lines) > 1 else lines[0]
    # It may quote the file.
    return "".join(char if char.isprintable() else "?" for char in line[:_MAX_REASON])
