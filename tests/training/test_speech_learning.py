"""Speech recognizers and the trigger word detector learn words that differ only in order.

A word is two sounds of a few frames each: "up" is low and then high, "down" is high and then low.
The two words have the same frames in a different order.
"""

import keras
import numpy as np
import pytest

from keras_seq import Recognizer, search
from keras_seq.losses import CTCLoss, SequenceCrossEntropy
from keras_seq.models import AttentionRecognizer, CTCRecognizer, TriggerWordDetector
from keras_seq.scoring import word_errors

pytestmark = pytest.mark.slow

NAMES = ("up", "down")
FRAMES = 40
QUIET = {"batch_size": 32, "verbose": 0}


def spoken(count, seed):
    """Returns features `(N, S, 3)`, lengths `(N,)`, the words of each row and the word ends."""
    generator = np.random.default_rng(seed)
    features = np.zeros((count, FRAMES, 3), "float32")
    lengths, words, ends = [], [], []
    for row in features:
        said = generator.integers(0, 2, generator.integers(1, 4))
        place, stops = generator.integers(1, 4), []
        for word in said:
            for sound in ((0, 1), (1, 0))[word]:
                duration = generator.integers(2, 5)
                row[place : place + duration, sound] = 1
                place += duration
            stops.append(place)
            place += generator.integers(2, 5)
        row[:, 2] = row.sum(axis=1) == 0
        lengths.append(place)
        words.append(said)
        ends.append(stops)
    features += generator.normal(scale=0.2, size=features.shape)
    return features.astype("float32"), np.array(lengths, "int32"), words, ends


def errors(heard, words):
    said = [" ".join(NAMES[word] for word in each) for each in words]
    return word_errors(heard, said).rate


@pytest.fixture(autouse=True)
def seeded():
    keras.utils.set_random_seed(1)


@pytest.mark.weekly
def test_ctc_recognizer_learns_spoken_words():
    features, lengths, words, _ = spoken(600, 1)
    labels = np.zeros((len(words), 3), "int32")
    for row, each in zip(labels, words, strict=True):
        row[: len(each)] = each + 1
    model = CTCRecognizer(3, 3, strides=(1,), convolution_units=16, num_layers=1, units=16)
    model.compile(keras.optimizers.Adam(0.01), CTCLoss(), jit_compile=False)
    model.fit({"features": features, "lengths": lengths}, labels, epochs=8, **QUIET)
    features, lengths, words, _ = spoken(100, 2)
    heard = Recognizer(model, NAMES, separator=" ")(
        [row[:length] for row, length in zip(features, lengths, strict=True)]
    )
    # A model that ignores the order of the two sounds gets about half of the words wrong.
    assert errors(heard, words) < 0.1


@pytest.mark.weekly
def test_attention_recognizer_learns_spoken_words():
    features, lengths, words, _ = spoken(600, 1)
    ids = np.zeros((len(words), 5), "int32")
    for row, each in zip(ids, words, strict=True):
        row[: len(each) + 2] = 2, *(each + 4), 3
    target, output = np.where(ids == 3, 0, ids)[:, :-1], ids[:, 1:]
    model = AttentionRecognizer(
        6,
        3,
        num_encoder_layers=1,
        embedding_units=8,
        encoder_units=16,
        decoder_units=32,
        attention_units=16,
        dropout=0.0,
    )
    model.compile(keras.optimizers.Adam(0.01), SequenceCrossEntropy(), jit_compile=False)
    source = {"features": features, "lengths": lengths}
    model.fit({"source": source, "target": target}, output, epochs=8, **QUIET)
    features, lengths, words, _ = spoken(100, 2)
    source = {"features": features, "lengths": lengths}
    best = search.beam_search(model, source, beam_size=2, max_length=5).tokens[:, 0]
    heard = [" ".join(NAMES[id - 4] for id in row if id >= 4) for row in np.asarray(best)]
    assert errors(heard, words) < 0.1


@pytest.mark.weekly
def test_trigger_word_detector_learns_one_of_two_words():
    def labels(count, words, ends):
        marks = np.zeros((count, FRAMES, 1), "float32")
        for row, said, stops in zip(marks, words, ends, strict=True):
            for word, stop in zip(said, stops, strict=True):
                # Mark the frames until the next word may begin.
                row[stop : stop + 2] = word == 0
        return marks

    features, lengths, words, ends = spoken(600, 1)
    model = TriggerWordDetector(3, kernel_size=3, units=16, dropout=0.0)
    loss = keras.losses.BinaryCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), loss, jit_compile=False)
    inputs = {"features": features, "lengths": lengths}
    model.fit(inputs, labels(600, words, ends), epochs=8, **QUIET)
    features, lengths, words, ends = spoken(100, 2)
    logits = model.predict_on_batch({"features": features, "lengths": lengths})
    right = [
        (logits[row, stop : stop + 2, 0].max() > 0) == (word == 0)
        for row, (said, stops) in enumerate(zip(words, ends, strict=True))
        for word, stop in zip(said, stops, strict=True)
    ]
    assert np.mean(right) > 0.95
