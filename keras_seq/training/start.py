"""The weights that a training starts from, where these are not drawn by chance."""

from __future__ import annotations

from collections.abc import Callable

import keras
import numpy as np

from keras_seq.base_run import open_base_run
from keras_seq.modelling import build_run_model, named_weights, weight_shapes
from keras_seq.run import Run
from keras_seq.text import InputError, Tokenizer, read_word_vectors

Notice = Callable[[str], None]

# First parts of the names of weights with a row, or a column, for each token.
_TABLES = {
    "embedding": "source",
    "source_embedding": "source",
    "target_embedding": "target",
    "logits": "target",
}
_SPACE = "\u2581"


def set_start(run: Run, model: keras.Model, notice: Notice) -> None:
    """Gives a new model the weights of another run, and the vectors of words, that settings name.

    Args:
        run: Prepared, without a checkpoint.
        model: Its model.
        notice: Called with what was done.

    Raises:
        InputError: Another run or a file that does not serve.
    """
    base = open_base_run(run.settings, notice)
    if base is not None:
        if run.settings.training.from_run_vocabulary == "keep":
            arrays = base.load_weights(weight_shapes(model))
            notice(f"starts from the weights of {base.path}")
        else:
            arrays = _with_new_vocabulary(run, base, model, notice)
        for name, weight in named_weights(model).items():
            weight.assign(arrays[name])
    for side in ("source", "target"):
        path = getattr(run.settings.training, f"{side}_embeddings")
        if path is not None:
            _take_vectors(run, model, side, path, notice)


def _with_new_vocabulary(
    run: Run, base: Run, model: keras.Model, notice: Notice
) -> dict[str, np.ndarray]:
    """The other run's arrays, with the rows of its tables where the new vocabulary has them."""
    arrays = base.load_weights(weight_shapes(build_run_model(base)))
    rows = {
        "source": _rows(base.source_tokenizer, run.source_tokenizer),
        "target": _rows(base.target_tokenizer, run.target_tokenizer),
    }
    adapted = {}
    for name, weight in named_weights(model).items():
        side = _TABLES.get(name.split("/")[0])
        array = arrays[name]
        if side is None:
            adapted[name] = array
            continue
        # A table has tokens first; the matrix before the logits has them last.
        by_token = np.moveaxis(array, -1, 0) if name.startswith("logits/") else array
        fresh = np.array(keras.ops.convert_to_numpy(weight.value))
        new = np.moveaxis(fresh, -1, 0) if name.startswith("logits/") else fresh
        for row, old in enumerate(rows[side]):
            if old:
                new[row] = by_token[old].mean(axis=0)
        adapted[name] = fresh
    sides = ["joint"] if run.settings.tokenizer.joint else ["source", "target"]
    for side in sides:
        found = rows["source" if side == "joint" else side]
        counts = [sum(len(old) == 1 for old in found), sum(len(old) > 1 for old in found)]
        notice(
            f"starts from the weights of {base.path}; {side} vocabulary of {len(found):,}: "
            f"{counts[0]:,} rows are those of one old token, {counts[1]:,} the mean of several, "
            f"{len(found) - sum(counts):,} new"
        )
    return adapted


def _rows(old: Tokenizer, new: Tokenizer) -> list[list[int]]:
    """For each new id the old ids whose mean it starts from; none where it starts anew."""
    places = {piece.text: id for id, piece in enumerate(old.pieces)}
    rows = []
    for piece in new.pieces:
        if piece.text in places:
            rows.append([places[piece.text]])
            continue
        ids = old.encode([piece.text.replace(_SPACE, " ")])[0]
        # A space is put before every text; inside a word it says nothing.
        space = places.get(_SPACE)
        rows.append([id for id in ids if id != space])
    return rows


def _take_vectors(run: Run, model: keras.Model, side: str, path: str, notice: Notice) -> None:
    tokenizer = run.source_tokenizer if side == "source" else run.target_tokenizer
    name = (
        "embedding/embeddings" if run.settings.tokenizer.joint else f"{side}_embedding/embeddings"
    )
    weight = named_weights(model)[name]
    # Only pieces that begin a word can be a word.
    words = {
        id: piece.text[1:]
        for id, piece in enumerate(tokenizer.pieces)
        if piece.is_text and piece.text.startswith(_SPACE) and len(piece.text) > 1
    }
    wanted = set(words.values())
    vectors, width = read_word_vectors(path, wanted | {word.lower() for word in wanted})
    units = int(weight.shape[1])
    if width != units:
        raise InputError(
            f"{path}: its vectors have {width:,} numbers, the embedding has {units:,}: set "
            f"model.{'units' if run.settings.model.family == 'transformer' else 'embedding_units'}"
            f"={width}, or give another file"
        )
    table = np.array(keras.ops.convert_to_numpy(weight.value))
    found = {}
    for id, word in words.items():
        vector = vectors.get(word, vectors.get(word.lower()))
        if vector is not None:
            found[id] = vector
    if found:
        matrix = np.array(list(found.values()), np.float64)
        # As large as the rows beside them, by one factor for all.
        size = np.sqrt(np.mean(matrix**2))
        factor = np.sqrt(np.mean(np.square(table, dtype=np.float64))) / size if size else 1.0
        table[list(found)] = matrix * factor
        weight.assign(table)
    notice(f"{path}: vectors for {len(found):,} of {len(words):,} {side} tokens that begin a word")
