"""Export of a wake word detector to a SavedModel for TensorFlow Serving."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from keras_seq.inference.wake_words import WakeWordDetector, shown_detections
from keras_seq.run import Run
from keras_seq.run.models import load_model
from keras_seq.serving.detector_guide import detector_guide
from keras_seq.serving.http.versions import RECORD_NAME
from keras_seq.serving.publishing import check_base, checkpoint_record
from keras_seq.serving.signature_module import SignatureModule, signature
from keras_seq.serving.sound_publishing import Examples, publish_sound_model, validation_sounds

# Shape letters: B batch, N samples, S frames, W words.


def export_detector_run(
    run: Run,
    base: str | os.PathLike[str],
    *,
    which: str | int,
    verify: int,
    notice: Callable[[str], None] | None,
) -> Path:
    """Exports a run of the task `wake-word`; see `export_saved_model`.

    Signatures: `serving_default` takes `samples`, float32 `(B, N)`, and `lengths`, int32 `(B,)`,
    and returns `detections`, a text such as "seven:0.52 seven:2.31" for each row, and
    `probability`, `(B, W)`, the highest of each word. `stream` takes the next `samples` of B
    streams and their state, and returns `probabilities`, `(B, S, W)`, and the next state.

    `verify` is the number of recordings of the validation set that must have the same detections.
    """
    detector = WakeWordDetector.of_run(run, load_model(run, which))
    base = Path(base)
    check_base(base)
    # One second of silence.
    silence = np.zeros(detector.sample_rate, "float32")
    sounds = validation_sounds(run, verify) or [silence]
    expected = [shown_detections(found) for found in detector.detect(sounds)]
    return publish_sound_model(
        SignatureModule(detector.model, detector_signatures(detector)),
        base,
        Examples("samples", sounds, expected),
        detector_guide(base.resolve().name, detector, sounds[0], expected[0]),
        batch_size=run.settings.search.batch_size,
        needs_text=False,
        notice=notice if verify else None,
        files={RECORD_NAME: checkpoint_record([run])},
    )


def detector_signatures(detector: WakeWordDetector) -> dict[str, Any]:
    """Builds the signatures that `export_detector_run` documents."""
    model, words = detector.model, detector.words
    silence = detector.hold * detector.frame_step
    step = model.stream_step
    state = model.initial_state(1)

    @signature(samples=(2, tf.float32), lengths=(1, tf.int32))
    def detect(samples: Any, lengths: Any) -> dict[str, Any]:
        rows = tf.shape(lengths)[0]
        # Add a row of padding to an empty batch, because recurrent layers of Keras need a row.
        extra = tf.cast(rows == 0, tf.int32)
        lengths = tf.pad(lengths, [[0, extra]])
        samples = tf.pad(samples, [[0, extra], [0, 0]])
        lengths = tf.clip_by_value(lengths, 0, tf.shape(samples)[1])
        real = tf.range(tf.shape(samples)[1]) < lengths[:, None]
        samples = tf.pad(tf.where(real, samples, 0.0), [[0, 0], [0, silence]])
        lengths += silence
        logits = model({"samples": samples, "lengths": lengths})
        frames = tf.range(tf.shape(logits)[1]) < (lengths // detector.frame_step)[:, None]
        probabilities = tf.where(frames[..., None], tf.sigmoid(logits), 0.0)
        found = first_frames_in_graph(probabilities, detector.threshold, detector.hold)
        texts = _texts(found, words, detector.frame_step, detector.sample_rate)
        return {"detections": texts[:rows], "probability": tf.reduce_max(probabilities, 1)[:rows]}

    shapes = {
        f"state_{name}": ([None, *value.shape[1:]], value.dtype) for name, value in state.items()
    }

    @signature(samples=(2, tf.float32), **shapes)
    def stream(samples: Any, *values: Any) -> dict[str, Any]:
        given = dict(zip(state, values, strict=True))
        outputs = step({"samples": samples, "state": given})
        after = {f"state_{name}": value for name, value in outputs["state"].items()}
        return {"probabilities": tf.sigmoid(outputs["logits"]), **after}

    return {"serving_default": detect, "stream": stream}


def first_frames_in_graph(probabilities: Any, threshold: float, hold: int) -> Any:
    """Returns True at frames that reach the threshold, none within `hold` frames after another.

    `probabilities` and the result are `(B, S, W)`.
    """
    over = tf.transpose(probabilities >= threshold, [1, 0, 2])  # (S, B, W)
    count = tf.shape(over)[0]

    def advance(frame: Any, waiting: Any, found: Any) -> Any:
        now = over[frame] & (waiting == 0)
        waiting = tf.where(now, hold - 1, tf.maximum(waiting - 1, 0))
        return frame + 1, waiting, found.write(frame, now)

    found = tf.TensorArray(tf.bool, count)
    waiting = tf.zeros(tf.shape(over)[1:], tf.int32)
    _, _, found = tf.while_loop(
        lambda frame, *_: frame < count, advance, (0, waiting, found), maximum_iterations=count
    )
    return tf.transpose(found.stack(), [1, 0, 2])


def _texts(found: Any, words: list[str], step: int, rate: int) -> Any:
    """Returns a text of the detections `(B, S, W)` of each row."""
    frames = tf.cast(tf.range(tf.shape(found)[1]) + 1, tf.float64)
    seconds = tf.strings.as_string(frames * step / rate, precision=2)  # (S,)
    names = tf.constant([f" {word}:" for word in words])
    pieces = names[None, :] + seconds[:, None]  # (S, W)
    texts = tf.strings.reduce_join(tf.where(found, pieces[None], ""), axis=[1, 2])
    return tf.where(texts == "", "-", tf.strings.regex_replace(texts, "^ ", ""))
