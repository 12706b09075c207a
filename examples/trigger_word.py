"""Wake word detection: a detector trained on streams of digits responds only to "seven".

    python examples/trigger_word.py [--streams 800] [--epochs 8]

The baseline is a threshold on the energy, which detects speech but not the word.
"""

import argparse

import keras
import numpy as np
from spoken_digits import RATE, say

from keras_seq.layers import LogMelSpectrogram
from keras_seq.models import TriggerWordDetector
from keras_seq.scoring import DetectionCounts, count_detections, detections

TRIGGER = 7
STEP = 128
FRAMES = 4 * RATE // STEP
# Number of frames (0.4 s) after the word that have label 1 and count as a detection.
AFTER = 25


def streams(count: int, seed: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Samples `(count, 4 seconds)` of six digits, and the frames at which a seven ends."""
    generator = np.random.default_rng(seed)
    samples, ends = np.zeros((count, FRAMES * STEP), "float32"), []
    for row in samples:
        digits = np.where(generator.random(6) < 0.15, TRIGGER, generator.integers(0, 10, 6))
        sound, last = say(digits, generator)
        sound = sound[: len(row)]
        row[: len(sound)] = sound
        frames = np.array(last)[digits == TRIGGER] // STEP
        ends.append(frames[frames < FRAMES - AFTER])
    return samples, ends


def labels(ends: list[np.ndarray]) -> np.ndarray:
    """Frame labels: 1 for the first AFTER frames after each trigger word, otherwise 0."""
    marked = np.zeros((len(ends), FRAMES, 1), "float32")
    for row, frames in zip(marked, ends, strict=True):
        for frame in frames:
            row[frame : frame + AFTER] = 1
    return marked


def judge(scores: np.ndarray, ends: list[np.ndarray], threshold: float) -> DetectionCounts:
    total = DetectionCounts(0, 0, 0)
    for row, true in zip(scores, ends, strict=True):
        found = list(detections(row, threshold, refractory=AFTER))
        total += count_detections([frame for frame in found if frame < FRAMES - AFTER], true, AFTER)
    return total


def best_threshold(scores: np.ndarray, ends: list[np.ndarray]) -> float:
    candidates = np.quantile(scores, np.linspace(0.3, 0.999, 60))
    return max(candidates, key=lambda threshold: judge(scores, ends, threshold).f1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", type=int, default=800)
    parser.add_argument("--epochs", type=int, default=8)
    arguments = parser.parse_args()
    keras.utils.set_random_seed(1)
    features = LogMelSpectrogram(RATE, num_mels=32, frame_length=256, frame_step=STEP, causal=True)
    model = TriggerWordDetector(features, units=64, seed=1)
    samples, ends = streams(arguments.streams, seed=1)
    lengths = np.full(len(samples), samples.shape[1], "int32")
    steps = -(-len(samples) // 16) * arguments.epochs
    rate = keras.optimizers.schedules.CosineDecay(3e-3, steps)
    model.compile(keras.optimizers.Adam(rate), keras.losses.BinaryCrossentropy(from_logits=True))
    inputs = {"samples": samples, "lengths": lengths}
    model.fit(inputs, labels(ends), batch_size=16, epochs=arguments.epochs, verbose=2)

    def heard(samples):
        """Probabilities for streams that are read in pieces of a quarter of a second."""
        state, logits, piece = model.initial_state(len(samples)), [], 16 * STEP
        for start in range(0, samples.shape[1], piece):
            sound = keras.ops.array(samples[:, start : start + piece])
            step = model.stream_step({"samples": sound, "state": state})
            logits, state = [*logits, step["logits"]], step["state"]
        return keras.ops.convert_to_numpy(keras.ops.sigmoid(keras.ops.concatenate(logits, 1)))[
            ..., 0
        ]

    def energy(samples):
        return (samples.reshape(len(samples), FRAMES, STEP) ** 2).mean(axis=2)

    # Choose thresholds on separate streams, not on the test streams.
    (chosen_on, chosen_ends), (unheard, true) = streams(100, seed=2), streams(200, seed=3)
    for name, scores in (("energy", energy), ("detector", heard)):
        counts = judge(scores(unheard), true, best_threshold(scores(chosen_on), chosen_ends))
        print(f"{name}: precision {counts.precision:.1%}, recall {counts.recall:.1%}, {counts}")


if __name__ == "__main__":
    main()
