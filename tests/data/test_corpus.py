"""Opening a corpus: damaged files are reported, and sequences come back padded."""

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from keras_seq.data import TokenCorpus, TokenPair, write_corpus
from keras_seq.data.batch import make_batch
from keras_seq.data.checked_shards import check_characters
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


@pytest.mark.parametrize("side", ["source", "target"])
def test_sequence_that_is_longer_than_the_index_says_raises_input_error(directory, side):
    """One row of 200 million tokens would fill the memory with its first batch."""
    index = json.loads((directory / "corpus.json").read_text())
    index[f"max_{side}_length"] = 2
    (directory / "corpus.json").write_text(json.dumps(index))
    message = f"{side}.offsets: a sequence of 3 tokens, expected at most 2 as corpus.json says"
    with pytest.raises(InputError, match=message):
        TokenCorpus.open(directory)


@pytest.mark.parametrize(
    ("key", "value"),
    [("kept", 3.0), ("kept", [3]), ("dropped_long", "x" * 5000), ("source_tokens", -1)],
)
def test_invalid_counts_in_the_index_raise_input_error(directory, key, value):
    index = json.loads((directory / "corpus.json").read_text())
    index["counts"][key] = value
    (directory / "corpus.json").write_text(json.dumps(index))
    with pytest.raises(InputError, match="corpus.json: not the index of a corpus"):
        TokenCorpus.open(directory)


@pytest.mark.parametrize(
    "value",
    ["\x1b[2J" * 1_000_000, 9 * 10**4290, [[0] * 9999], json.loads("[" * 700 + "]" * 700)],
    ids=["text", "number", "list", "deep"],
)
def test_invalid_version_in_the_index_is_shown_briefly(directory, value):
    index = json.loads((directory / "corpus.json").read_text())
    (directory / "corpus.json").write_text(json.dumps(index | {"version": value}))
    with pytest.raises(InputError, match="corpus.json: format version") as error:
        TokenCorpus.open(directory)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 200 + len(str(directory))


def test_number_beyond_every_corpus_in_the_index_raises_input_error(directory):
    """Python refuses to format an integer of more than 4,300 digits."""
    index = json.loads((directory / "corpus.json").read_text())
    index["shards"][0]["source_tokens"] = 9 * 10**4299
    (directory / "corpus.json").write_text(json.dumps(index))
    with pytest.raises(InputError, match="corpus.json: not the index of a corpus"):
        TokenCorpus.open(directory)


def written(folder, pairs=PAIRS, **options):
    """Writes a corpus of ids below 16 and of at most 9 tokens."""
    write_corpus(folder, pairs, max_source_length=9, max_target_length=9, **options)
    return folder


def changed(path, dtype, place, value):
    """Changes one number of a file."""
    numbers = np.fromfile(path, dtype)
    numbers[place] = value
    path.write_bytes(numbers.tobytes())


SIZES, LENGTHS = (16, 16), (9, 9)


def test_corpus_of_a_run_passes_its_check(tmp_path):
    pairs = [TokenPair(*pair, 2.0, [(0, 0)]) for pair in PAIRS]
    folder = written(tmp_path / "c", pairs, weights=True, alignments=True, shard_pairs=2)
    TokenCorpus.open(folder).check(SIZES, LENGTHS)


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("wrong", [0, 16, 2**32 - 1])
def test_token_id_outside_the_vocabulary_raises_input_error(tmp_path, side, wrong):
    folder = written(tmp_path / "c", shard_pairs=2)
    changed(folder / f"shard-00001.{side}.ids", "<u4", -1, wrong)
    corpus = TokenCorpus.open(folder)
    message = f"shard-00001.{side}.ids: the token id {wrong:,}, expected ids from 1 to "
    with pytest.raises(InputError, match=message):
        corpus.check(SIZES, LENGTHS)


def test_number_that_is_no_character_raises_input_error(tmp_path):
    path = str(tmp_path / "features.ids")
    check_characters(path, np.array([0, sys.maxunicode], "uint32"))
    with pytest.raises(InputError, match="features.ids: the code point 2,147,483,648, expected"):
        check_characters(path, np.array([0, 2**31], "uint32"))


def test_wrong_token_id_is_found_in_every_block_of_a_shard(tmp_path):
    """A shard is read in blocks of 262,144 ids."""
    folder = written(tmp_path / "c", [([5] * 8, [7])] * 70_000, vocabulary_size=16)
    TokenCorpus.open(folder).check(SIZES, LENGTHS)
    for place in (0, 262_143, 262_144, 524_287, 524_288, 559_999):
        changed(folder / "shard-00000.source.ids", "<u2", place, 16)
        with pytest.raises(InputError, match="source.ids: the token id 16, expected"):
            TokenCorpus.open(folder).check(SIZES, LENGTHS)
        changed(folder / "shard-00000.source.ids", "<u2", place, 5)
    TokenCorpus.open(folder).check(SIZES, LENGTHS)


def test_sparse_shard_is_refused_at_its_first_block(tmp_path):
    """The holes are padding, which no pair has; 16 GB would take half a minute to read."""
    folder = written(tmp_path / "c", [([5] * 9, [7])] * 1000)
    index = json.loads((folder / "corpus.json").read_text())
    index["shards"][0]["source_tokens"] = 2**31
    index["max_source_length"] = 2**31
    (folder / "corpus.json").write_text(json.dumps(index))
    os.truncate(folder / "shard-00000.source.ids", 2**33)
    changed(folder / "shard-00000.source.offsets", "<u4", -1, 2**31)
    corpus = TokenCorpus.open(folder)
    with pytest.raises(InputError, match=r"a source of 2,147,474,657 tokens, expected at most 9"):
        corpus.check(SIZES, LENGTHS)
    with pytest.raises(InputError, match=r"source.ids: the token id 0, expected"):
        corpus.check(SIZES, (2**31, 9))


@pytest.mark.parametrize("wrong", [-1.0, float("nan"), float("inf")])
def test_wrong_weight_of_a_pair_raises_input_error(tmp_path, wrong):
    pairs = [TokenPair(*pair, 2.0) for pair in PAIRS]
    folder = written(tmp_path / "c", pairs, weights=True)
    changed(folder / "shard-00000.weights", "<f4", 1, wrong)
    with pytest.raises(InputError, match="shard-00000.weights: a weight that is not a finite"):
        TokenCorpus.open(folder).check(SIZES, LENGTHS)


@pytest.mark.parametrize(("place", "wrong"), [(2, 1), (3, 3), (4, 3), (5, 1)])
def test_link_to_a_token_that_the_pair_lacks_raises_input_error(tmp_path, place, wrong):
    """The pairs have 2 and 1, 1 and 3, and 3 and 1 tokens; the first has no link."""
    links = [[], [(0, 0), (0, 2)], [(2, 0)]]
    pairs = [TokenPair(*pair, links=each) for pair, each in zip(PAIRS, links, strict=True)]
    folder = written(tmp_path / "c", pairs, alignments=True)
    TokenCorpus.open(folder).check(SIZES, LENGTHS)
    changed(folder / "shard-00000.links", "<u2", place, wrong)
    with pytest.raises(InputError, match="shard-00000.links: a link to a token that its pair lac"):
        TokenCorpus.open(folder).check(SIZES, LENGTHS)


def test_links_are_compared_with_the_pairs_of_their_own_shard(tmp_path):
    """The shards begin with pairs of 2 and of 3 source tokens."""
    pairs = [TokenPair(*pair, links=[(len(pair[0]) - 1, 0)]) for pair in PAIRS]
    folder = written(tmp_path / "c", pairs, alignments=True, shard_pairs=2)
    TokenCorpus.open(folder).check(SIZES, LENGTHS)
    changed(folder / "shard-00001.links", "<u2", 0, 3)
    with pytest.raises(InputError, match="shard-00001.links: a link to a token that its pair lac"):
        TokenCorpus.open(folder).check(SIZES, LENGTHS)


def test_check_refuses_missing_surplus_and_incomplete_features(tmp_path):
    corpus = described_corpus(tmp_path, [(1, [0, 120_000]), (2, [1, 2, 3, 4])], token_features=2)
    corpus.check(SIZES, LENGTHS, 2)
    for expected, message in (
        (None, "2 features of a token, the settings of the run expect no features"),
        (16, "2 features of a token, the settings of the run expect 16 features of a token"),
    ):
        with pytest.raises(InputError, match=message):
            corpus.check(SIZES, LENGTHS, expected)
    changed(tmp_path / "corpus" / "shard-00000.features.offsets", "<u4", 1, 3)
    with pytest.raises(InputError, match="a pair without 2 features for each source token"):
        TokenCorpus.open(tmp_path / "corpus").check(SIZES, LENGTHS, 2)
    with pytest.raises(InputError, match="no features, the settings of the run expect 2 features"):
        TokenCorpus.open(written(tmp_path / "c")).check(SIZES, LENGTHS, 2)


def test_check_refuses_a_corpus_without_pairs(tmp_path):
    corpus = TokenCorpus.open(written(tmp_path / "c", []))
    with pytest.raises(InputError, match="c: no pairs, expected at least one"):
        corpus.check(SIZES, LENGTHS)
