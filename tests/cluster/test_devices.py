"""What is asked for must be possible, and is refused in a sentence before anything is read."""

import subprocess
import sys

import pytest

from keras_seq import Devices, InputError


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": "gpus"}, "cpu, gpu or tpu"),
        ({"count": 0}, "1 or more"),
        ({"kind": "cpu", "count": 65}, "at most 64"),
        ({"model_devices": 0}, "1 or more"),
        ({"count": 3, "model_devices": 2}, "does not divide"),
        ({"hosts": ("here",)}, "NAME:PORT"),
        ({"hosts": ("here:99999",)}, "NAME:PORT"),
        ({"hosts": ("a:1", "a:1")}, "twice"),
        ({"hosts": ("a:1", "b:1"), "host": 2}, "from 0 to 1"),
        ({"host": 1}, "not given"),
    ],
)
def test_what_cannot_be_is_refused(options, words):
    with pytest.raises(InputError, match=words):
        Devices(**options)


def test_one_host_is_no_cluster():
    assert not Devices(hosts=("a:1",)).together
    assert Devices(hosts=("a:1", "b:1"), host=1).together


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--backend tensorflow --device tpu", "through JAX"),
        ("--backend tensorflow --model-devices 2", "--backend jax"),
        ("--backend tensorflow --device gpu", "finds no GPU"),
        ("--backend jax --device tpu", "cannot use it here"),
        ("--backend tensorflow --devices 2", "this host has 1"),
        (
            "--backend tensorflow --device cpu --devices 2 --hosts a:1,b:1 --host 1",
            "has one CPU",
        ),
    ],
)
def test_what_is_not_there_is_refused(tmp_path, options, words):
    """In a process of its own, for what a backend computes on is settled once in each."""
    (tmp_path / "pairs.tsv").write_text("a b c\tc b a\nb c a\ta c b\n" * 40)
    arguments = ["--pairs", "pairs.tsv", "--valid-pairs", "pairs.tsv", *options.split()]
    result = subprocess.run(
        [sys.executable, "-m", "keras_seq", "train", "run", *arguments],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 2, result.stderr
    assert words in result.stderr
    assert "Traceback" not in result.stderr
