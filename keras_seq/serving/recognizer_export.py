"""A recogniser as a SavedModel: a sound in, text out, on stock TensorFlow Serving."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2, types_pb2

from keras_seq import backend
from keras_seq.inference.recognizer import (
    Recognizer,
    check_labels,
    heard_lengths,
    make_ctc_search,
    pad_sounds,
    sound_spec,
)
from keras_seq.serving.compaction import compact
from keras_seq.serving.publishing import check_base, publish_version
from keras_seq.serving.recognizer_guide import write_recognizer_guide
from keras_seq.serving.verification import verify_saved_model
from keras_seq.serving.warmup import write_warmup_tensors

# Shape letters: B batch, N n-best, L labels.


def export_recognizer(
    model: Any,
    labels: Sequence[str],
    base: str | os.PathLike[str],
    *,
    separator: str = "",
    beam_size: int | None = 10,
    n_best: int = 1,
    examples: Sequence[Any] = (),
    batch_size: int = 16,
    notice: Callable[[str], None] | None = None,
) -> Path:
    """Publishes a recogniser as the next version of a SavedModel for TensorFlow Serving.

    Signatures, for any number B of rows: `serving_default` takes `samples`, float32
    `(B, samples)` with anything behind the end of a sound, and `lengths`, int32 `(B,)`;
    it answers `text` and `score` `(B,)`. `n_best` answers the same as `(B, N)`; where
    there are fewer than N, the rest is empty with a score of -1e30. A model of features
    takes `features`, `(B, steps, features)`, in place of `samples`.

    The version is written beside the others, proved, and only then renamed to its
    number: a server that polls the directory never sees half of it. It holds requests
    that a server warms up with, and beside the versions lies `serving/` with how to serve
    and call this very model.

    Args:
        model: `models.CTCRecognizer`, or another model of the same inputs and logits.
        labels: V - 1 strings, that of label 1 first; label 0 is the blank.
        base: Directory of the versions, made if need be.
        separator: What stands between two labels, such as a space between words.
        beam_size: Of `search.ctc_beam_search`; None is the greedy search.
        n_best: How many texts the signature `n_best` answers, at most `beam_size`.
        examples: Sounds that must come out of the export, in a process without Keras, as
            `Recognizer` hears them here. The shortest and the longest say how long the sounds
            of the warm-up are, and the first is the example of the guide; without any it is
            a silence.
        batch_size: How many sounds a server is told to hear together.
        notice: Called with lines on what was done.

    Returns:
        The directory of the new version.

    Raises:
        InputError: A directory that cannot be written, or an export that is not proved;
            nothing is published then.
        ValueError: There are not as many labels as the model has.
        RuntimeError: Keras does not run on TensorFlow.
    """
    if backend.name() != "tensorflow":
        raise RuntimeError(
            f"Only TensorFlow writes a SavedModel, received the backend {backend.name()!r}: set "
            "KERAS_BACKEND=tensorflow; the weights are the same on every backend."
        )
    say = notice or (lambda line: None)
    check_base(Path(base))
    graph = RecognizerGraph(model, labels, separator, beam_size, n_best)
    here = Recognizer(model, labels, separator=separator, beam_size=beam_size, n_best=n_best)
    sounds = [np.asarray(sound, "float32") for sound in examples] or [_silence(graph)]
    expected = here(sounds)

    def write(version: Path) -> None:
        tf.saved_model.save(
            graph,
            str(version),
            signatures=graph.signatures,
            options=tf.saved_model.SaveOptions(experimental_debug_stripper=True),
        )
        compact(version)
        named = {f"sound {number}": sound for number, sound in enumerate(sounds)}
        seconds = verify_saved_model(
            version,
            list(named),
            expected,
            batch_size=1,
            feeds=lambda names: _feeds(graph.source, [named[name] for name in names]),
        )
        if len(examples):
            say(f"{len(examples)} sounds come out as here; loaded in {seconds:.2f} s")
        write_warmup_tensors(version, _warmup_requests(graph, sounds, batch_size))

    version = publish_version(Path(base), write)
    write_recognizer_guide(
        Path(base),
        source=graph.source,
        example=sounds[0],
        example_answer=expected[0],
        n_best=n_best,
        max_batch=batch_size,
        tensorflow_version=tf.__version__,
    )
    return version


class RecognizerGraph(tf.Module):
    """What a SavedModel of a recogniser holds: raw variables, labels, and the functions.

    The model itself must not be an attribute: Keras objects restore their
    variables in Python, but not in the session of a model server.
    """

    def __init__(
        self,
        model: Any,
        labels: Sequence[str],
        separator: str,
        beam_size: int | None,
        n_best: int,
    ) -> None:
        super().__init__()
        check_labels(model, labels)
        self.source, shape = sound_spec(model)
        # How many features a step has; nothing of samples.
        self.features: list[Any] = list(shape[2:])
        self.weights = [weight.value for weight in model.weights]
        search = make_ctc_search(beam_size, n_best)
        specs = [
            tf.TensorSpec(shape, tf.float32, name=self.source),
            tf.TensorSpec([None], tf.int32, name="lengths"),
        ]

        first = ["", *labels]
        later = ["", *(separator + label for label in labels)]

        @tf.function(input_signature=specs, autograph=False)
        def n_best_texts(sounds: Any, lengths: Any) -> dict[str, Any]:
            rows = tf.shape(lengths)[0]
            # Recurrent layers of Keras fail where there are no rows: then there is one of padding.
            more = tf.cast(rows == 0, tf.int32)
            sounds = tf.pad(sounds, [[0, more], *[[0, 0]] * (len(shape) - 1)])
            sounds.set_shape(shape)
            lengths = heard_lengths(self.source, sounds, tf.pad(lengths, [[0, more]]))
            found = search(model({self.source: sounds, "lengths": lengths}))
            at_start = tf.range(tf.shape(found.labels)[2]) == 0
            pieces = tf.where(
                at_start, tf.gather(first, found.labels), tf.gather(later, found.labels)
            )  # (B, N, L)
            texts = tf.strings.reduce_join(pieces, axis=2)
            return {"text": texts[:rows], "score": found.scores[:rows]}

        @tf.function(input_signature=specs, autograph=False)
        def best_text(sounds: Any, lengths: Any) -> dict[str, Any]:
            return {name: values[:, 0] for name, values in n_best_texts(sounds, lengths).items()}

        # Not as attributes: those would be saved a second time, as functions of their own.
        self._signatures = SimpleNamespace(serving_default=best_text, n_best=n_best_texts)

    @property
    def signatures(self) -> dict[str, Any]:
        """The functions that a server offers, by name."""
        return dict(vars(self._signatures))


def _silence(graph: RecognizerGraph) -> np.ndarray:
    """A sound for who gives none: of a second or two, or of a hundred steps of features."""
    return np.zeros((100 if graph.features else 16_000, *graph.features), "float32")


def _warmup_requests(
    graph: RecognizerGraph, sounds: Sequence[np.ndarray], rows: int
) -> list[dict[str, Any]]:
    """One row and a full batch, as long as the shortest sound and as the longest: silence.

    What a sound holds changes nothing of how much is computed, and of equal values a message holds
    one.
    """
    lengths = sorted(len(sound) for sound in sounds if len(sound)) or [1]
    requests = []
    for count in (1, rows):
        for length in (lengths[0], lengths[-1]):
            silence = tensor_pb2.TensorProto(
                dtype=types_pb2.DT_FLOAT,
                tensor_shape=tf.TensorShape([count, length, *graph.features]).as_proto(),
                float_val=[0.0],
            )
            ends = tf.make_tensor_proto([length] * count, tf.int32)
            requests.append({graph.source: silence, "lengths": ends})
    return requests


def _feeds(source: str, sounds: Sequence[Any]) -> dict[str, list[Any]]:
    padded, lengths = pad_sounds([np.asarray(sound, "float32") for sound in sounds])
    return {source: padded.tolist(), "lengths": lengths.tolist()}
