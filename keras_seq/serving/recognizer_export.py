"""Export of a speech recognizer to a SavedModel for TensorFlow Serving."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from keras_seq.inference.recognizer import (
    Recognizer,
    audio_lengths,
    check_labels,
)
from keras_seq.inference.sound_search import audio_signature, make_sound_search
from keras_seq.run import Run
from keras_seq.run.models import load_model
from keras_seq.serving.http.versions import RECORD_NAME
from keras_seq.serving.publishing import check_base, checkpoint_record
from keras_seq.serving.recognizer_guide import recognizer_guide
from keras_seq.serving.signature_module import SignatureModule, require_tensorflow, signature
from keras_seq.serving.sound_publishing import Examples, publish_sound_model, validation_sounds
from keras_seq.serving.text_graph import TextGraph
from keras_seq.settings import SearchSettings, Settings
from keras_seq.text import Tokenizer

# Shape letters: B batch, N n-best, L labels.


def export_recognizer(
    model: Any,
    labels: Sequence[str] | Tokenizer,
    base: str | os.PathLike[str],
    *,
    separator: str = "",
    beam_size: int | None = 10,
    n_best: int = 1,
    examples: Sequence[Any] = (),
    batch_size: int = 16,
    notice: Callable[[str], None] | None = None,
    search: SearchSettings | None = None,
    files: Mapping[str, bytes] | None = None,
) -> Path:
    """Exports a speech recognizer for TensorFlow Serving. Returns the directory of the version.

    Each signature accepts any number B of rows. `serving_default` takes `samples`, float32
    `(B, samples)` with arbitrary values after the end of a recording, and `lengths`, int32 `(B,)`,
    and returns `text` and `score`, each `(B,)`. `n_best` returns the same outputs as `(B, N)`. If
    there are fewer than N texts, empty texts with a score of -1e30 fill the rest. A model that
    reads features takes `features`, `(B, steps, features)`, instead of `samples`.

    The version is written to a temporary directory, verified, and then renamed to its number, so a
    server that polls the directory never sees an incomplete version. The version contains warm-up
    requests. The directory `serving` in `base` describes how to serve and call the model.

    Args:
        model: `models.CTCRecognizer`, or another model with the same inputs and logits; or
            `models.AttentionRecognizer`.
        labels: Strings of the labels 1 to V - 1, or a `Tokenizer` of V tokens. Label 0 is the
            blank.
        base: Directory of the versions; created if it is missing.
        separator: The string between two labels, such as a space between words.
        beam_size: Beam size of `search.ctc_beam_search`; None for greedy search.
        n_best: Number of texts that the signature `n_best` returns, at most `beam_size`.
        examples: Recordings for the verification: the export, in a process without Keras, must
            return the same texts as `Recognizer`. Warm-up requests have the length of the shortest
            and of the longest recording. The guide shows the first. The default is silence.
        batch_size: Maximum number of recordings in a batch of the server.
        notice: Called with lines that report the progress.
        search: Further settings of the search of a model with attention.
        files: Contents of further files of the version, by name.

    Raises:
        InputError: `base` cannot be written, or the verification fails; nothing is published.
        ValueError: The number of labels does not fit the model.
        RuntimeError: Keras does not run on TensorFlow.
    """
    require_tensorflow()
    base = Path(base)
    check_base(base)
    functions = recognizer_signatures(model, labels, separator, beam_size, n_best, search)
    source, (_, _, *sizes) = audio_signature(model)
    features: list[Any] = sizes
    options: dict[str, Any] = {"beam_size": beam_size, "n_best": n_best, "search": search}
    recognizer = Recognizer(model, labels, separator=separator, **options)
    # One second of samples at 16 kHz, or a hundred steps of features.
    silence = np.zeros((100 if features else 16_000, *features), "float32")
    sounds = [np.asarray(sound, "float32") for sound in examples] or [silence]
    expected = recognizer(sounds)
    guide = recognizer_guide(base.resolve().name, source, sounds[0], expected[0], n_best)
    return publish_sound_model(
        SignatureModule(model, functions),
        base,
        Examples(source, sounds, expected),
        guide,
        batch_size=batch_size,
        # Only a tokenizer needs operations of tensorflow-text.
        needs_text=isinstance(labels, Tokenizer),
        notice=notice if len(examples) else None,
        files=files or {},
    )


def export_recognizer_run(
    run: Run,
    base: str | os.PathLike[str],
    settings: Settings,
    *,
    which: str | int,
    verify: int,
    notice: Callable[[str], None] | None,
) -> Path:
    """Exports a run of the task `speech`; see `export_saved_model`.

    `verify` is the number of recordings of the validation set that must have the same texts.
    """
    model = load_model(run, which)
    search = settings.search
    return export_recognizer(
        model,
        run.target_tokenizer,
        base,
        beam_size=search.beam_size if search.beam_size > 1 else None,
        n_best=search.n_best,
        examples=validation_sounds(run, verify),
        batch_size=search.batch_size,
        notice=notice,
        search=search,
        files={RECORD_NAME: checkpoint_record([run])},
    )


def recognizer_signatures(
    model: Any,
    labels: Sequence[str] | Tokenizer,
    separator: str,
    beam_size: int | None,
    n_best: int,
    search: SearchSettings | None = None,
) -> dict[str, Any]:
    """Builds the signatures that `export_recognizer` documents."""
    check_labels(model, labels)
    source, shape = audio_signature(model)
    find = make_sound_search(model, labels, beam_size, n_best, search)
    inputs: dict[str, Any] = {source: (shape, tf.float32), "lengths": (1, tf.int32)}

    @signature(**inputs)
    def n_best_texts(sounds: Any, lengths: Any) -> dict[str, Any]:
        rows = tf.shape(lengths)[0]
        # Add a row of padding to an empty batch, because recurrent layers of Keras need a row.
        extra = tf.cast(rows == 0, tf.int32)
        sounds = tf.pad(sounds, [[0, extra], *[[0, 0]] * (len(shape) - 1)])
        sounds.set_shape(shape)
        lengths = audio_lengths(source, sounds, tf.pad(lengths, [[0, extra]]))
        result = find({source: sounds, "lengths": lengths})
        texts = _texts_of(result.labels, labels, separator)
        return {"text": texts[:rows], "score": result.scores[:rows]}

    @signature(**inputs)
    def best_text(sounds: Any, lengths: Any) -> dict[str, Any]:
        return {name: values[:, 0] for name, values in n_best_texts(sounds, lengths).items()}

    return {"serving_default": best_text, "n_best": n_best_texts}


def _texts_of(ids: Any, labels: Sequence[str] | Tokenizer, separator: str) -> Any:
    """Converts labels `(B, N, L)`, padded with 0, to texts `(B, N)` in a graph."""
    if isinstance(labels, Tokenizer):
        rows, count, steps = tf.unstack(tf.shape(ids))
        texts = TextGraph(labels).decode(tf.reshape(ids, (rows * count, steps)))
        return tf.reshape(texts, (rows, count))
    first = ["", *labels]
    later = ["", *(separator + label for label in labels)]
    at_start = tf.range(tf.shape(ids)[2]) == 0
    pieces = tf.where(at_start, tf.gather(first, ids), tf.gather(later, ids))  # (B, N, L)
    return tf.strings.reduce_join(pieces, axis=2)
