"""Opening a corpus: damaged files are reported, and sequences come back padded."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from keras_seq.data import TokenCorpus, TokenPair, write_corpus
from keras_seq.data.batch import make_batch
from keras_seq.text import InputError

PAIRS = [([5, 6], [7]), ([8], [9, 10, 11]), ([12, 13, 14], [15])]


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    write_corpus(
        tmp_path / "corpus", PAIRS, max_source_length=9, max_target_length=9, shard_pairs=2
    )
    return tmp_path / "corpus"


def data_files() -> list[str]:
    return [
        f"shard-0000{shard}.{side}.{kind}"
        for shard in (0, 1)
        for side in ("source", "target")
        for kind in ("ids", "offsets")
    ]


@pytest.mark.parametrize("name", data_files())
@pytest.mark.parametrize("change", [-1, 1, 4])
def test_corpus_file_of_the_wrong_size_raises_input_error(directory, name, change):
    path = directory / name
    os.truncate(path, path.stat().st_size + change)
    with pytest.raises(InputError, match=rf"{name}: \d+ bytes, expected \d+; the corpus is dam"):
        TokenCorpus.open(directory)


@pytest.mark.parametrize("name", ["corpus.json", *data_files()])
def test_missing_corpus_file_raises_input_error(directory, name):
    (directory / name).unlink()
    with pytest.raises(InputError, match=f"{name}: (cannot be read|no such file)"):
        TokenCorpus.open(directory)


@pytest.mark.parametrize("offsets", [[0, 3, 3], [1, 2, 3], [0, 9, 3], [0, 1, 2], [0, 0, 3]])
def test_invalid_offsets_raise_input_error(directory, offsets):
    """The file has the right size, but its numbers cannot delimit two non-empty sequences."""
    path = directory / "shard-00000.source.offsets"
    path.write_bytes(np.array(offsets, "<u4").tobytes())
    with pytest.raises(InputError, match="shard-00000.source.offsets: not the offsets of 2"):
        TokenCorpus.open(directory)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not valid JSON"),
        (b"\xff\xfe\x00", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"[]", "expected a JSON object"),
        (b"{}", "format version None, expected 1"),
        (b'{"version": 2}', "format version 2, expected 1"),
        (b'{"version": 1}', "not the index of a corpus"),
        (b'{"version": 1, "dtype": "object", "shards": []}', "not the index of a corpus"),
        (b'{"version": 1, "dtype": ["uint16"], "shards": []}', "not the index of a corpus"),
        (b'{"version": 1, "dtype": "uint16", "shards": 3}', "not the index of a corpus"),
    ],
)
def test_invalid_corpus_index_raises_input_error(directory, content, message):
    (directory / "corpus.json").write_bytes(content)
    with pytest.raises(InputError, match=rf"corpus\.json: {message}"):
        TokenCorpus.open(directory)


@pytest.mark.parametrize("value", [-1, 0, 1.5, "2", None, True])
def test_invalid_pair_count_in_the_index_raises_input_error(directory, value):
    index = json.loads((directory / "corpus.json").read_text())
    index["shards"][0]["pairs"] = value
    (directory / "corpus.json").write_text(json.dumps(index))
    with pytest.raises(InputError, match="corpus.json: not the index of a corpus"):
        TokenCorpus.open(directory)


def test_shards_that_do_not_add_up_raise_input_error(directory):
    index = json.loads((directory / "corpus.json").read_text())
    index["shards"].pop()
    (directory / "corpus.json").write_text(json.dumps(index))
    with pytest.raises(InputError, match="corpus.json: the shards do not add up to 3 pairs"):
        TokenCorpus.open(directory)


def test_directory_without_a_corpus_raises_input_error(tmp_path):
    with pytest.raises(InputError, match="corpus.json: no such file"):
        TokenCorpus.open(tmp_path)


@pytest.mark.parametrize("name", ["weights", "links", "links.offsets"])
def test_damaged_or_missing_weights_and_links_raise_input_error(tmp_path, name):
    pairs = [TokenPair(*pair, 2.0, [(0, 0)]) for pair in PAIRS]
    limits = {"max_source_length": 9, "max_target_length": 9}
    write_corpus(tmp_path / "corpus", pairs, weights=True, alignments=True, **limits)
    path = tmp_path / "corpus" / f"shard-00000.{name}"
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(InputError, match=rf"shard-00000.{name}: \d+ bytes, expected \d+"):
        TokenCorpus.open(tmp_path / "corpus")
    path.unlink()
    with pytest.raises(InputError, match=f"shard-00000.{name}: cannot be read"):
        TokenCorpus.open(tmp_path / "corpus")


@pytest.mark.parametrize(("key", "value"), [("weights", 3), ("links", "int8"), ("links", True)])
def test_invalid_weights_or_links_entry_in_the_index_raises_input_error(directory, key, value):
    index = json.loads((directory / "corpus.json").read_text())
    (directory / "corpus.json").write_text(json.dumps(index | {key: value}))
    with pytest.raises(InputError, match="corpus.json: not the index of a corpus"):
        TokenCorpus.open(directory)


def test_padded_accepts_any_order_across_shards(directory):
    corpus = TokenCorpus.open(directory)
    padded = corpus.padded("source", np.array([2, 0, 1, 2]), 4)
    assert padded.dtype == np.int32
    assert padded.tolist() == [[12, 13, 14, 0], [5, 6, 0, 0], [8, 0, 0, 0], [12, 13, 14, 0]]
    assert corpus.padded("target", [], 4).shape == (0, 4)


def test_padded_refuses_a_short_length_and_indices_out_of_range(directory):
    corpus = TokenCorpus.open(directory)
    with pytest.raises(ValueError, match="length is 2, but the longest requested source has 3"):
        corpus.padded("source", [0, 2], 2)
    for indices in ([-1], [0, 3]):
        with pytest.raises(IndexError, match="from 0 up to, not with, 3"):
            corpus.padded("source", indices, 9)


@pytest.mark.parametrize("index", [-1, 3])
def test_pair_index_out_of_range_raises_index_error(directory, index):
    with pytest.raises(IndexError, match=f"from 0 up to, not with, 3; it is {index}"):
        TokenCorpus.open(directory).target(index)


def test_corpus_without_pairs_opens_as_empty(tmp_path):
    write_corpus(tmp_path / "corpus", [], max_source_length=9, max_target_length=9)
    corpus = TokenCorpus.open(tmp_path / "corpus")
    assert len(corpus) == 0
    assert corpus.source_lengths.shape == (0,)


def described_corpus(folder, rows, **options):
    pairs = [TokenPair([5] * tokens, [7], features=features) for tokens, features in rows]
    lengths = {"max_source_length": 9, "max_target_length": 9}
    write_corpus(folder / "corpus", pairs, **lengths, features=True, shard_pairs=2, **options)
    return TokenCorpus.open(folder / "corpus")


def test_features_of_pairs_are_padded_to_the_largest_number(tmp_path):
    corpus = described_corpus(tmp_path, [(1, [8, 9]), (2, []), (3, [4, 5, 6])], vocabulary_size=10)
    assert corpus.max_features == 3
    batch = make_batch(corpus, np.array([2, 1, 0]), 4, 4, 2)
    assert batch["features"].tolist() == [[4, 5, 6], [0, 0, 0], [8, 9, 0], [0, 0, 0]]


def test_features_of_tokens_have_a_row_for_each_source_step(tmp_path):
    rows = [(1, [0, 120_000]), (2, [1, 2, 3, 4])]
    corpus = described_corpus(tmp_path, rows, vocabulary_size=10, token_features=2)
    batch = make_batch(corpus, np.array([1, 0]), 2, 3, 2)
    assert batch["features"].tolist() == [[[1, 2], [3, 4], [0, 0]], [[0, 120_000], [0, 0], [0, 0]]]


def test_features_that_do_not_fit_the_corpus_raise_value_error(tmp_path):
    with pytest.raises(ValueError, match="of 2 source tokens has 3 features; expected 2 for each"):
        described_corpus(tmp_path, [(2, [1, 2, 3])], token_features=2)
    with pytest.raises(ValueError, match="A feature has the id 10"):
        described_corpus(tmp_path, [(2, [10])], vocabulary_size=10)


@pytest.mark.parametrize("kind", ["ids", "offsets"])
def test_damaged_features_raise_input_error(tmp_path, kind):
    described_corpus(tmp_path, [(1, [8, 9])])
    path = tmp_path / "corpus" / f"shard-00000.features.{kind}"
    os.truncate(path, path.stat().st_size + 1)
    with pytest.raises(InputError, match="the corpus is damaged"):
        TokenCorpus.open(tmp_path / "corpus")
