"""Verifies and publishes a SavedModel that takes recordings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import tensor_pb2, types_pb2

from keras_seq.data import TokenCorpus, samples_of
from keras_seq.inference.recognizer import pad_audio
from keras_seq.preparation.prepared_corpora import check_corpus
from keras_seq.run import Run
from keras_seq.serving.deployment import batching_parameters, write_deployment
from keras_seq.serving.graph_file.operations import operations
from keras_seq.serving.guide import GuideParts, write_guide
from keras_seq.serving.publishing import publish_version
from keras_seq.serving.signature_module import SignatureModule
from keras_seq.serving.verification import verify_saved_model
from keras_seq.serving.warmup import write_warmup_tensors
from keras_seq.storage import write_file


class Examples(NamedTuple):
    """Recordings, and the text that Python returns for each.

    `source` is the name of their input, "samples" or "features".
    """

    source: str
    sounds: Sequence[np.ndarray]
    expected: Sequence[str]


def publish_sound_model(
    module: SignatureModule,
    base: Path,
    examples: Examples,
    guide: GuideParts,
    *,
    batch_size: int,
    needs_text: bool,
    notice: Callable[[str], None] | None,
    files: Mapping[str, bytes],
) -> Path:
    """Saves, verifies and publishes a model as the next version. Returns its directory.

    The export must return the texts of the examples, in a process without Keras. `needs_text` is
    True if it has operations of tensorflow-text. `files` are contents of further files by name.
    Raises InputError if the verification fails; nothing is published.
    """
    source, sounds, expected = examples
    by_name = {f"recording {number}": sound for number, sound in enumerate(sounds)}

    def encode(names: Sequence[str]) -> dict[str, list[Any]]:
        padded, lengths = pad_audio([by_name[name] for name in names])
        return {source: padded.tolist(), "lengths": lengths.tolist()}

    def write(version: Path) -> None:
        module.save(version)
        for name, content in files.items():
            write_file(version / name, content)
        seconds = verify_saved_model(
            version,
            list(by_name),
            expected,
            batch_size=1,
            requests=encode,
            encode=None if needs_text else encode,
        )
        if notice:
            notice(f"{len(sounds)} recordings come out as in Python; loaded in {seconds:.2f} s")
        write_warmup_tensors(version, _warmup_requests(source, sounds, batch_size))

    version = publish_version(base, write)
    batching = batching_parameters(guide.items, batch_size, guide.padding)
    write_deployment(base, version, batching)
    write_guide(base, guide, operations(version), batch_size, tf.__version__)
    return version


def validation_sounds(run: Run, count: int) -> list[np.ndarray]:
    """Returns the samples of the first `count` recordings of the validation set."""
    if not count:
        return []
    check_corpus(run, run.valid_directory)
    corpus = TokenCorpus.open(run.valid_directory)
    rows = [corpus.source(i)[None] for i in range(min(count, len(corpus)))]
    return [samples_of(ids, np.array([ids.shape[1]]))[0] for ids in rows]


def _warmup_requests(source: str, sounds: Sequence[np.ndarray], rows: int) -> list[dict[str, Any]]:
    """Builds requests of one row and of a full batch, with the minimum and maximum length.

    The requests contain silence, because a `TensorProto` stores a constant value only once.
    """
    lengths = sorted(len(sound) for sound in sounds if len(sound)) or [1]
    features = sounds[0].shape[1:]
    requests = []
    for count in (1, rows):
        for length in (lengths[0], lengths[-1]):
            silence = tensor_pb2.TensorProto(
                dtype=types_pb2.DT_FLOAT,
                tensor_shape=tf.TensorShape([count, length, *features]).as_proto(),
                float_val=[0.0],
            )
            ends = tf.make_tensor_proto([length] * count, tf.int32)
            requests.append({source: silence, "lengths": ends})
    return requests
