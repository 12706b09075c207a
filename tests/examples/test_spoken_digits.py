"""The speech synthesizer that the speech examples share."""

import stat
import subprocess
import sys
import wave
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
# Imitates espeak-ng: all options are required, and the sound has 22,050 samples per second.
SPEAKER = """#!{python}
import math, sys, wave
options = dict(zip(sys.argv[1:-1:2], sys.argv[2:-1:2]))
assert set(options) == {{"-v", "-s", "-p", "-w"}}, sys.argv
with wave.open(options["-w"], "wb") as file:
    file.setparams((1, 2, 22050, 0, "NONE", ""))
    tone = [int(9000 * math.sin(2 * math.pi * 440 * n / 22050)) for n in range(22050 // 2)]
    file.writeframes(b"".join(sample.to_bytes(2, "little", signed=True) for sample in tone))
print(sys.argv[-1])
"""


@pytest.fixture
def digits(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLES))
    import spoken_digits

    return spoken_digits


def test_same_seed_gives_equal_speech_and_another_seed_does_not(digits):
    said = [digits.say([3, 7], np.random.default_rng(seed), "tones") for seed in (1, 1, 2)]
    (first, ends), (again, _), (other, _) = said
    assert first.dtype == np.float32 and np.abs(first).max() <= 1
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    assert len(ends) == 2 and 0 < ends[0] < ends[1] < len(first)


def test_spoken_digits_have_distinct_spectra(digits):
    """The mean spectrum of a digit is nearest to that of other recordings of the digit."""

    def spectrum(digit, seeds):
        sounds = [digits.tones(digit, np.random.default_rng([seed, digit])) for seed in seeds]
        powers = [np.abs(np.fft.rfft(sound, 4096)) ** 2 for sound in sounds]
        bands = np.array(powers).mean(axis=0)[:2048].reshape(64, -1).sum(axis=1)
        return np.log(bands / bands.sum())

    known = [spectrum(digit, range(30)) for digit in range(10)]
    heard = [spectrum(digit, range(30, 60)) for digit in range(10)]
    nearest = [int(np.argmin([np.sum((h - k) ** 2) for k in known])) for h in heard]
    assert nearest == list(range(10))


def test_espeak_is_used_where_it_is_installed(digits, tmp_path, monkeypatch):
    program = tmp_path / "espeak-ng"
    program.write_text(SPEAKER.format(python=sys.executable))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    digits.espeak.cache_clear()
    samples, ends = digits.say([4], np.random.default_rng(0), noise=0.0)
    # Half a second of a 440 Hz tone at the target rate, whatever the original rate.
    spoken = samples[ends[0] - 4000 : ends[0]]
    assert len(spoken) == 4000
    assert np.argmax(np.abs(np.fft.rfft(spoken))) == 220
    digits.espeak.cache_clear()


def test_spoken_digits_script_writes_wave_files(tmp_path):
    done = subprocess.run(
        [sys.executable, EXAMPLES / "spoken_digits.py", tmp_path / "digits"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("10 digits in")
    with wave.open(str(tmp_path / "digits" / "7-seven.wav")) as file:
        assert (file.getframerate(), file.getnchannels(), file.getsampwidth()) == (8000, 1, 2)
        assert file.getnframes() > 2000
