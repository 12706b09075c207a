"""Connectionist temporal classification: transcribes spoken digits.

    python examples/digits_ctc.py [--utterances 2000] [--epochs 5] [--folder run]

`spoken_digits.py`, next to this file, synthesizes the digits. With --folder an interrupted training
resumes exactly, and the recognizer is exported to the folder: sound in, text out.
"""

import argparse
import tempfile
from pathlib import Path

import keras
import numpy as np
from spoken_digits import RATE, WORDS, say

from keras_seq import Recognizer, callbacks
from keras_seq.layers import LogMelSpectrogram
from keras_seq.losses import CTCLoss
from keras_seq.models import CTCRecognizer
from keras_seq.scoring import character_errors, word_errors
from keras_seq.storage.checkpoints import CheckpointStore

ROWS = 32


def speak(count, seed):
    """Sounds of one to four digits with their lengths, and the digits."""
    generator = np.random.default_rng(seed)
    digits = [generator.integers(0, 10, generator.integers(1, 5)) for _ in range(count)]
    sounds = [say(each, generator)[0][: 3 * RATE] for each in digits]
    # All sounds are padded to one length, so that JAX compiles once.
    samples = np.zeros((count, 3 * RATE), "float32")
    for row, sound in zip(samples, sounds, strict=True):
        row[: len(sound)] = sound
    return samples, np.array([len(sound) for sound in sounds], "int32"), digits


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--utterances", type=int, default=2000)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--units", type=int, default=64)
    parser.add_argument("--folder", type=Path)
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp())
    keras.utils.set_random_seed(1)

    samples, lengths, digits = speak(arguments.utterances, seed=1)
    # Label 0 is both the blank and padding.
    labels = np.zeros((len(digits), 4), "int32")
    for row, each in zip(labels, digits, strict=True):
        row[: len(each)] = each + 1

    def batch(step):
        """Returns a batch that depends only on `step`, so a training can resume at any step."""
        rows = np.random.default_rng(step).integers(0, len(samples), ROWS)
        return {"samples": samples[rows], "lengths": lengths[rows]}, labels[rows]

    front = LogMelSpectrogram(RATE, num_mels=32, frame_length=0.032, frame_step=0.016)
    units = arguments.units
    model = CTCRecognizer(11, front, convolution_units=units, units=units, seed=1)
    steps = max(1, len(samples) // ROWS)
    rate = keras.optimizers.schedules.CosineDecay(3e-3, steps * arguments.epochs)
    model.compile(keras.optimizers.Adam(rate, clipnorm=1.0), CTCLoss())
    checkpoint = callbacks.ExactCheckpoint(
        CheckpointStore(folder / "checkpoints"), every=steps, steps_per_epoch=steps
    )
    if begin := checkpoint.restore(model):
        print(f"goes on after update {begin}")
    model.fit(
        checkpoint.remaining(batch),
        initial_epoch=checkpoint.epoch,
        epochs=arguments.epochs,
        steps_per_epoch=steps,
        shuffle=False,
        verbose=2,
        callbacks=[checkpoint],
    )

    samples, lengths, digits = speak(200, seed=2)
    sounds = [sound[:length] for sound, length in zip(samples, lengths, strict=True)]
    said = [" ".join(WORDS[digit] for digit in each) for each in digits]
    for beam_size in (None, 8):
        heard = Recognizer(model, WORDS, separator=" ", beam_size=beam_size)(sounds)
        words, characters = word_errors(heard, said).rate, character_errors(heard, said).rate
        name = f"beam of {beam_size}" if beam_size else "greedy"
        print(f"{name}: word error rate {words:.1%}, character error rate {characters:.1%}")
    print(f"said {said[0]!r}, heard {heard[0]!r}")

    if arguments.folder and keras.backend.backend() == "tensorflow":
        from keras_seq.serving import export_recognizer

        options = {"separator": " ", "beam_size": 8, "examples": sounds[:3], "notice": print}
        print(export_recognizer(model, WORDS, folder / "served", **options))


if __name__ == "__main__":
    main()
