"""Files of vectors that would fill the memory are refused before they are read."""

import gzip
import json
import os

import numpy as np
import pytest

from keras_seq.process.memory import VARIABLE
from keras_seq.text import InputError
from keras_seq.vectors import VectorSettings, WordVectors, train_vectors
from keras_seq.vectors.subwords import Subwords
from keras_seq.vectors.training import memory_of_training


def saved(folder, parts=0):
    """Saves 3 vectors of 4 numbers, and vectors of `parts` n-grams."""
    table = np.ones((parts, 4), np.float32)
    subwords = Subwords(3, 6, 2_000_000, np.arange(parts, dtype=np.int32), table)
    matrix = np.ones((3, 4), np.float32)
    WordVectors(["dog", "cat", "car"], matrix, subwords if parts else None).save(folder / "v.txt")
    return folder / "v.txt"


def test_sparse_file_of_ngrams_is_refused(tmp_path):
    """Its header promises 8 GB, all of which are holes."""
    path = saved(tmp_path, parts=1)
    count = 2**33 // 20
    header = json.dumps(
        {
            name: {"dtype": kind, "shape": shape, "data_offsets": [start, end]}
            for name, kind, shape, start, end in (
                ("places", "I32", [count], 0, 4 * count),
                ("sizes", "I32", [3], 4 * count, 4 * count + 12),
                ("vectors", "F32", [count, 4], 4 * count + 12, 20 * count + 12),
            )
        }
    ).encode()
    parts = tmp_path / "v.txt.ngrams"
    parts.write_bytes(len(header).to_bytes(8, "little") + header)
    os.truncate(parts, 8 + len(header) + 20 * count + 12)
    with pytest.raises(InputError, match=r"v.txt.ngrams: not the n-gram vectors of .*: a sparse"):
        WordVectors.load(path)


def test_ngrams_beyond_the_memory_are_refused(tmp_path, monkeypatch):
    path = saved(tmp_path, parts=60_000)
    assert len(WordVectors.load(path).subwords.vectors) == 60_000
    monkeypatch.setenv(VARIABLE, "1M")
    with pytest.raises(InputError, match=r"v.txt.ngrams needs more than 1.1 MB of memory, 1.0 MB"):
        WordVectors.load(path)


@pytest.mark.parametrize("command", ["nearest", "analogy", "plot"])
@pytest.mark.parametrize("has_header", [True, False])
def test_vectors_beyond_the_memory_are_refused(
    tmp_path, monkeypatch, keras_seq_command, command, has_header
):
    """Whether the first line or the size of the file says how many numbers it has at least."""
    lines = ["dog 1 2", *(f"word{number} 1 2" for number in range(500_000))]
    path = tmp_path / "v.txt"
    path.write_text("\n".join(["500001 2"] * has_header + lines))
    monkeypatch.setenv(VARIABLE, "1M")
    rest = {"nearest": ["dog"], "analogy": ["dog"] * 3, "plot": ["-o", tmp_path / "map.html"]}
    found = keras_seq_command("vectors", command, path, *rest[command])
    assert found.code == 2, found.err
    assert found.error.startswith(f"{path}: reading its vectors needs more than ")
    assert found.error.endswith("such as the first lines of this one")


@pytest.mark.parametrize("header", ["9" * 15 + " 999999999", "9" * 15 + " 5", "999999999 2"])
def test_first_line_that_promises_more_than_memory_is_refused(tmp_path, header):
    path = tmp_path / "v.txt"
    path.write_text(f"{header}\ndog 1 2\n")
    with pytest.raises(InputError, match="v.txt(: reading its vectors needs more|:1:|: 1 vectors)"):
        WordVectors.load(path)


@pytest.mark.parametrize("algorithm", ["skipgram", "cbow", "fasttext", "glove"])
def test_training_beyond_the_memory_is_refused(tmp_path, monkeypatch, keras_seq_command, algorithm):
    path = tmp_path / "text.txt"
    path.write_text("a dog runs\na cat runs\n" * 100)
    options = ["--algorithm", algorithm, "--units", 10_000, "--epochs", 1]
    monkeypatch.setenv(VARIABLE, "200K")
    found = keras_seq_command("vectors", "train", path, "-o", tmp_path / "v.txt", *options)
    assert found.code == 2, found.err
    assert "numbers needs more than" in found.error
    assert found.error.endswith("lower units or buckets, or raise min_count")
    assert not (tmp_path / "v.txt").exists()


def test_vectors_of_ngrams_count_before_they_are_trained(tmp_path, monkeypatch):
    from keras_seq.vectors.corpus import Corpus

    path = tmp_path / "text.txt"
    path.write_text("internationalization dogs\n" * 100)
    settings = VectorSettings(algorithm="fasttext", units=10_000)
    # The words take 160 kB, and their n-grams more.
    size = memory_of_training(Corpus(path, min_count=5), settings)
    assert size > 2**21
    monkeypatch.setenv(VARIABLE, "1M")
    with pytest.raises(InputError, match=r"training \d\d vectors of 10,000 numbers needs more"):
        train_vectors(path, settings)


@pytest.mark.parametrize(("letters", "width"), [(0, 90_000), (300_000, 1)])
def test_compressed_vectors_count_while_they_are_read(
    tmp_path, monkeypatch, keras_seq_command, letters, width
):
    """A small file holds 30 MB of vectors or of words, in few lines."""
    row = b"w" * letters + b" 0" * width
    with gzip.open(tmp_path / "v.txt.gz", "wb", compresslevel=9) as file:
        file.writelines(b"w%d%s\n" % (number, row) for number in range(100))
    assert (tmp_path / "v.txt.gz").stat().st_size < 300_000
    monkeypatch.setenv(VARIABLE, "10M")
    outcome = keras_seq_command("vectors", "nearest", tmp_path / "v.txt.gz", "w1")
    assert outcome.code == 2
    assert "reading its vectors needs more than 1" in outcome.error


def test_file_without_any_vector_is_refused(tmp_path, keras_seq_command):
    (tmp_path / "v.txt").write_text("0 5\n")
    outcome = keras_seq_command("vectors", "nearest", tmp_path / "v.txt", "w1")
    assert (outcome.code, outcome.error) == (2, f"{tmp_path / 'v.txt'}: no word with a vector")
