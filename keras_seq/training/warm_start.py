"""The weights that a training starts from, where these are not drawn by chance."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Literal

import keras
import numpy as np

from keras_seq import backend
from keras_seq.preparation.warm_start import SIDES, copied_vectors, sides_with_vectors
from keras_seq.run import Run
from keras_seq.run.models import build_run_model, named_weights, weight_shapes
from keras_seq.text import InputError, Tokenizer, piece_vectors, pieces_in
from keras_seq.training.pretrained import set_pretrained

Notice = Callable[[str], None]

# Shape letters: V vocabulary, D units, N vectors.

# Layers whose weights have a row, or a last dimension, for each token, and of which side.
_TABLES = {
    "embedding": "source",
    "source_embedding": "source",
    "target_embedding": "target",
    "logits": "target",
}


def initialize_weights(run: Run, model: keras.Model, notice: Notice) -> None:
    """Gives a new model the weights and the word vectors that its run was prepared with.

    Args:
        run: Prepared, without a checkpoint.
        model: Its model.
        notice: Called with what was done.

    Raises:
        InputError: The run is not as it was prepared.
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
    taken: set[int] = set()
    for side in sides_with_vectors(run.settings):
        weight = _embedding(model, side)
        kept = copied_vectors(run, side, int(weight.shape[1]))
        if kept is not None:
            ids, vectors = kept
            # One table may be for both sides; what the source's file has stays.
            new = [place for place, id in enumerate(ids) if id not in taken]
            _set_rows(weight, ids[new], vectors[new])
            if run.settings.tokenizer.joint:
                taken.update(int(id) for id in ids)


def load_word_vectors(
    model: keras.Model,
    tokenizer: Tokenizer,
    path: str | os.PathLike[str],
    side: Literal["source", "target"] = "source",
) -> int:
    """Lets rows of a model's embedding start from a file of word vectors.

    Rows of tokens that the file has no word for stay as they are. All vectors are
    multiplied by one factor, which makes their mean square that of the table's rows.

    Args:
        model: A model of `keras_seq.models`.
        tokenizer: Its vocabulary of that side.
        path: As for `keras_seq.text.read_word_vectors`.
        side: "source" or "target"; the same where one table is for both.

    Returns:
        How many rows were set.

    Raises:
        InputError: A file that is none of word vectors, or of vectors of another width.
        ValueError: Another side, or a vocabulary of another size than the model's.

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
    weight = _embedding(model, side)
    rows, width = (int(size) for size in weight.shape)
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
    _set_rows(weight, ids, vectors)
    return len(ids)


def _embedding(model: keras.Model, side: str) -> Any:
    named = named_weights(model)
    return named.get(f"{side}_embedding/embeddings", named.get("embedding/embeddings"))


def _set_rows(weight: Any, ids: np.ndarray, vectors: np.ndarray) -> None:
    """Puts vectors `(N, D)` into a table `(V, D)`, as large as the rows that are there."""
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
    """The other run's arrays, with the rows of its tables where the new vocabulary has them."""
    arrays = base.load_weights(weight_shapes(build_run_model(base)))
    rows = {
        "source": pieces_in(base.source_tokenizer, run.source_tokenizer),
        "target": pieces_in(base.target_tokenizer, run.target_tokenizer),
    }
    for name, weight in named_weights(model).items():
        side = _TABLES.get(name.split("/")[0])
        if side is None:
            continue
        # A table has tokens first, what makes logits has them last.
        place = -1 if name.startswith("logits/") else 0
        old = np.moveaxis(arrays[name], place, 0)
        arrays[name] = backend.to_numpy(weight)
        new = np.moveaxis(arrays[name], place, 0)
        for id, ids in enumerate(rows[side]):
            if ids:
                new[id] = old[ids].mean(axis=0)
    if run.settings.tokenizer.joint:
        notice(_say_rows("joint", base.source_tokenizer, run.source_tokenizer, rows["source"]))
    else:
        notice(_say_rows("source", base.source_tokenizer, run.source_tokenizer, rows["source"]))
        notice(_say_rows("target", base.target_tokenizer, run.target_tokenizer, rows["target"]))
    return arrays


def _say_rows(side: str, old: Tokenizer, new: Tokenizer, rows: list[list[int]]) -> str:
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
