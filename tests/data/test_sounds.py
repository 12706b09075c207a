"""Recordings read from files, compared with the module `wave` of Python."""

import tracemalloc

import numpy as np
import pytest
from sound_files import flac_that_declares, write_flac, write_wave

from keras_seq.data import find_sound, read_sound, sample_ids, samples_of, sound_info
from keras_seq.data.sounds import read_sounds
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
    with pytest.raises(InputError, match=r"a\.raw: samples without a header; convert them"):
        read_sound(text.rename(tmp_path / "a.raw"))
    infinite = tmp_path / "infinite.wav"
    import soundfile

    soundfile.write(infinite, np.full(10, np.inf), 8000, subtype="FLOAT")
    with pytest.raises(InputError, match="has samples that are not numbers"):
        read_sound(infinite)


def test_compressed_files_are_decoded_in_blocks(tmp_path):
    # A second of silence: 21 MB of float32 samples in all channels.
    path = write_flac(tmp_path / "a.flac", np.zeros((655_350, 8)), 655_350)
    assert path.stat().st_size < 10_000
    assert len(read_sound(path, 8000)) == 8000
    tracemalloc.start()
    try:
        assert len(read_sound(path, 8000)) == 8000
        assert tracemalloc.get_traced_memory()[1] < 12e6
    finally:
        tracemalloc.stop()


def test_few_recordings_are_in_memory_together(tmp_path, monkeypatch):
    lengths = [300, 300, 400, 1, 2000, 5]
    paths = [write_wave(tmp_path / f"{i}.wav", noise(size)) for i, size in enumerate(lengths)]
    monkeypatch.setattr("keras_seq.data.sounds._GROUP_SAMPLES", 1000)
    groups = [[len(samples) for samples in group] for group in read_sounds(paths)]
    # A recording longer than the limit stands alone.
    assert groups == [[300, 300, 400], [1], [2000], [5]]
    assert [len(group) for group in read_sounds(paths[3:4] * 300)] == [256, 44]
    assert list(read_sounds([])) == []
    np.testing.assert_array_equal(next(read_sounds(paths[4:], 4000))[0], read_sound(paths[4], 4000))


def test_blocks_join_without_a_seam(tmp_path):
    import soundfile
    import soxr

    noisy = np.random.default_rng(1).uniform(-1, 1, (400_000, 3)).astype("float32")
    path = tmp_path / "a.wav"
    soundfile.write(path, noisy, 44_100, subtype="FLOAT")
    mean = noisy.mean(1)
    np.testing.assert_array_equal(read_sound(path), mean)
    resampled = soxr.resample(mean, 44_100, 16_000)
    np.testing.assert_array_equal(read_sound(path, 16_000), np.clip(resampled, -1, 1))


def test_files_that_declare_far_too_many_samples_are_refused_before_they_are_decoded(tmp_path):
    path = tmp_path / "a.flac"
    path.write_bytes(flac_that_declares(2**36 - 1, 655_350, 8))
    with pytest.raises(InputError) as error:
        read_sound(path, 16_000)
    assert str(error.value) == (
        f"{path}: 68,719,476,735 samples per channel and 549,755,813,880 in all at 655,350 Hz, "
        "expected at most 4,294,967,296 in all and 1,073,741,824 per channel at 16,000 Hz; split "
        "the recording"
    )
    # Longer than the longest recording of a training: dropped, like any other.
    assert len(read_sound(path, 16_000, max_seconds=30)) == 0
    # A file from a pipe, whose header has 0 samples.
    path.write_bytes(flac_that_declares(0, 16_000, 2))
    with pytest.raises(InputError, match=r"a\.flac: its header does not say how long it is"):
        read_sound(path)
    # 70 GB at the rate of the model.
    slow = write_wave(tmp_path / "slow.wav", np.zeros((1_100_000, 1)), rate=1)
    with pytest.raises(InputError, match="1,100,000 samples per channel and 1,100,000 in all"):
        read_sound(slow, 16_000)


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
