"""Listen, attend and spell: transcribes one to four spoken digits.

    python examples/digits_attention.py [--utterances 960] [--epochs 4]

`spoken_digits.py`, next to this file, synthesizes the digits.
"""

import argparse

import keras
import numpy as np
from spoken_digits import RATE, WORDS, say

from keras_seq.layers import LogMelSpectrogram
from keras_seq.losses import SequenceCrossEntropy
from keras_seq.models import AttentionRecognizer
from keras_seq.scoring import character_errors, word_errors
from keras_seq.search import beam_search

# Ids 0 to 3 are padding, unknown, start and end.
START, END, FIRST = 2, 3, 4


def speak(count: int, seed: int) -> tuple[dict[str, np.ndarray], list[np.ndarray]]:
    """Sounds of one to four digits as model inputs, and the digits."""
    generator = np.random.default_rng(seed)
    digits = [generator.integers(0, 10, generator.integers(1, 5)) for _ in range(count)]
    sounds = [say(each, generator)[0] for each in digits]
    lengths = np.array([len(sound) for sound in sounds], "int32")
    # All sounds are padded to one length, so that JAX compiles once.
    samples = np.zeros((count, 3 * RATE), "float32")
    for row, sound in enumerate(sounds):
        samples[row, : len(sound)] = sound[: 3 * RATE]
    return {"samples": samples, "lengths": np.minimum(lengths, 3 * RATE)}, digits


def ids_of(digits: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Decoder inputs, beginning with the start token, and targets."""
    ids = np.zeros((len(digits), 6), "int32")
    for row, each in enumerate(digits):
        ids[row, : len(each) + 2] = START, *(each + FIRST), END
    return np.where(ids == END, 0, ids)[:, :-1], ids[:, 1:]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--utterances", type=int, default=960)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--units", type=int, default=64)
    arguments = parser.parse_args()
    keras.utils.set_random_seed(1)

    source, digits = speak(arguments.utterances, seed=1)
    target, output = ids_of(digits)
    units = arguments.units
    model = AttentionRecognizer(
        FIRST + 10,
        LogMelSpectrogram(RATE, num_mels=32, frame_length=0.032, frame_step=0.016),
        embedding_units=32,
        encoder_units=units,
        decoder_units=2 * units,
        attention_units=units,
        seed=1,
    )
    steps = -(-arguments.utterances // 32) * arguments.epochs
    rate = keras.optimizers.schedules.CosineDecay(2e-3, steps)
    model.compile(keras.optimizers.Adam(rate, clipnorm=1.0), SequenceCrossEntropy())
    inputs = {"source": source, "target": target}
    model.fit(inputs, output, batch_size=32, epochs=arguments.epochs, verbose=2)

    unheard, digits = speak(200, seed=2)
    best = beam_search(model, unheard, beam_size=4, max_length=8).tokens[:, 0]
    hypotheses = [
        " ".join(WORDS[token - FIRST] for token in row if token >= FIRST)
        for row in keras.ops.convert_to_numpy(best)
    ]
    references = [" ".join(WORDS[digit] for digit in each) for each in digits]
    for hypothesis, reference in list(zip(hypotheses, references, strict=True))[:5]:
        print(f"{reference}  ->  {hypothesis}")
    words = word_errors(hypotheses, references).rate
    characters = character_errors(hypotheses, references).rate
    print(f"word error rate {words:.1%}, character error rate {characters:.1%} of 200 utterances")


if __name__ == "__main__":
    main()
