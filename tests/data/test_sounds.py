"""Recordings read from files, compared with the module `wave` of Python."""

import numpy as np
import pytest
from sound_files import write_wave

from keras_seq.data import find_sound, read_sound, sample_ids, samples_of, sound_info
from keras_seq.text import InputError


def noise(count, channels=1):
    return np.random.default_rng(1).integers(-(2**15), 2**15, (count, channels))


def test_samples_are_those_of_the_file_and_channels_are_averaged(tmp_path):
    mono = noise(500)
    path = write_wave(tmp_path / "mono.wav", mono)
    np.testing.assert_array_equal(read_sound(path), mono[:, 0].astype("float32") / 2**15)
    assert sound_info(path) == (8000, 500) and sound_info(path).seconds == 0.0625
    stereo = noise(500, 2)
    link = tmp_path / "link.wav"
    link.symlink_to(write_wave(tmp_path / "stereo.wav", stereo))
    np.testing.assert_allclose(read_sound(link), stereo.mean(1) / 2**15, atol=1e-6)


def test_another_rate_keeps_the_frequency(tmp_path):
    times = np.arange(8000) / 8000
    tone = np.round(2**14 * np.sin(2 * np.pi * 440 * times))[:, None]
    samples = read_sound(write_wave(tmp_path / "tone.wav", tone), rate=16_000)
    assert len(samples) == 16_000
    assert np.argmax(np.abs(np.fft.rfft(samples))) == 440


def test_stored_samples_come_back(tmp_path):
    numbers = np.arange(-(2**15), 2**15)
    ids = sample_ids(numbers / 2**15)
    # 0 is padding, and batches add 2 and 3.
    assert ids.min() == 4 and ids.dtype == np.uint16
    samples = samples_of(ids[None].astype("int32"), np.array([len(ids)]))[0]
    np.testing.assert_array_equal(samples[4:], numbers[4:].astype("float32") / 2**15)
    np.testing.assert_array_equal(samples[:4], samples[4])


def test_unreadable_files_are_refused_in_one_line(tmp_path):
    text = tmp_path / "text.wav"
    text.write_text("no sound")
    with pytest.raises(InputError, match=r"text.wav: not a recording that can be read \(format"):
        read_sound(text)
    with pytest.raises(InputError, match="missing.wav: no such file or directory"):
        read_sound(tmp_path / "missing.wav")
    with pytest.raises(InputError, match="a directory, expected a regular file"):
        read_sound(tmp_path)
    infinite = tmp_path / "infinite.wav"
    import soundfile

    soundfile.write(infinite, np.full(10, np.inf), 8000, subtype="FLOAT")
    with pytest.raises(InputError, match="has samples that are not numbers"):
        read_sound(infinite)


def test_long_and_empty_recordings_have_no_samples(tmp_path):
    path = write_wave(tmp_path / "a.wav", noise(800))
    assert len(read_sound(path, max_seconds=0.1)) == 800
    assert len(read_sound(path, max_seconds=0.09)) == 0
    assert len(read_sound(write_wave(tmp_path / "empty.wav", noise(0)), rate=16_000)) == 0


def test_names_are_looked_up_in_the_folders(tmp_path):
    (tmp_path / "b").mkdir()
    sound = write_wave(tmp_path / "b" / "x.wav", noise(10))
    assert find_sound("x.wav", [tmp_path / "a", tmp_path / "b"]) == sound
    assert find_sound(str(sound), [tmp_path / "a"]) == sound
    assert find_sound("y.wav", [tmp_path / "a"]) == tmp_path / "a" / "y.wav"
