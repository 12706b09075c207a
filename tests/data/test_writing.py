"""Writing a corpus: stored, dropped and rejected pairs, and the files left behind."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_seq.data import CorpusCounts, TokenCorpus, TokenPair, write_corpus
from keras_seq.text import InputError

IDS = st.lists(st.sampled_from([1, *range(4, 12), 65_535]), max_size=7)
LIMITS = {"max_source_length": 10, "max_target_length": 10}


@settings(max_examples=40, deadline=None)
@given(
    pairs=st.lists(st.tuples(IDS, IDS), max_size=25),
    limits=st.tuples(st.integers(1, 7), st.integers(1, 7)),
    shard_pairs=st.integers(1, 6),
    vocabulary_size=st.sampled_from([None, 65_536, 65_537]),
    as_arrays=st.booleans(),
)
def test_corpus_keeps_pairs_that_are_neither_empty_nor_too_long(
    tmp_path_factory, pairs, limits, shard_pairs, vocabulary_size, as_arrays
):
    path = tmp_path_factory.mktemp("made") / "corpus"
    given_pairs = (
        (np.array(source, np.int32), np.array(target, np.int32)) if as_arrays else (source, target)
        for source, target in pairs
    )
    counts = write_corpus(
        path,
        given_pairs,
        max_source_length=limits[0],
        max_target_length=limits[1],
        shard_pairs=shard_pairs,
        vocabulary_size=vocabulary_size,
    )
    full = [(source, target) for source, target in pairs if source and target]
    kept = [pair for pair in full if len(pair[0]) <= limits[0] and len(pair[1]) <= limits[1]]
    assert counts == CorpusCounts(
        kept=len(kept),
        dropped_empty=len(pairs) - len(full),
        dropped_long=len(full) - len(kept),
        source_tokens=sum(len(source) for source, _ in kept),
        target_tokens=sum(len(target) for _, target in kept),
    )
    corpus = TokenCorpus.open(path)
    assert corpus.counts == counts
    assert len(corpus) == len(kept)
    assert [(corpus.source(i).tolist(), corpus.target(i).tolist()) for i in range(len(kept))] == [
        (list(source), list(target)) for source, target in kept
    ]
    assert corpus.source_lengths.dtype == corpus.target_lengths.dtype == np.int32
    assert corpus.source_lengths.tolist() == [len(source) for source, _ in kept]
    assert corpus.target_lengths.tolist() == [len(target) for _, target in kept]
    assert len(list(path.glob("*.source.ids"))) == -(-len(kept) // shard_pairs)


WEIGHTS = st.sampled_from([0.0, 1e-60, 0.5, 1.0, 7.25])


@st.composite
def linked_pairs(draw) -> TokenPair:
    source, target = draw(IDS), draw(IDS)
    places = [(i, j) for i in range(len(source)) for j in range(len(target))]
    links = draw(st.lists(st.sampled_from(places), max_size=4)) if places else []
    return TokenPair(source, target, draw(WEIGHTS), links)


@settings(max_examples=40, deadline=None)
@given(
    pairs=st.lists(linked_pairs(), max_size=25),
    shard_pairs=st.integers(1, 6),
    longest=st.sampled_from([5, 70_000]),
    order=st.randoms(use_true_random=False),
)
def test_weights_and_links_are_read_back_as_written(
    tmp_path_factory, pairs, shard_pairs, longest, order
):
    path = tmp_path_factory.mktemp("made") / "corpus"
    counts = write_corpus(
        path,
        iter(pairs),
        max_source_length=longest,
        max_target_length=longest,
        shard_pairs=shard_pairs,
        weights=True,
        alignments=True,
    )
    full = [pair for pair in pairs if 0 < len(pair[0]) <= longest and 0 < len(pair[1]) <= longest]
    # 1e-60 underflows to 0 in float32.
    kept = [pair for pair in full if pair.weight > 1e-30]
    assert (counts.kept, counts.dropped_weightless) == (len(kept), len(full) - len(kept))
    corpus = TokenCorpus.open(path)
    assert corpus.has_weights and corpus.has_alignments
    assert (corpus.max_source_length, corpus.max_target_length) == (longest, longest)
    rows = list(range(len(kept))) * 2
    order.shuffle(rows)
    assert corpus.weights(rows).dtype == np.float32
    assert corpus.weights(rows).tolist() == [kept[row].weight for row in rows]
    assert corpus.links(rows).tolist() == [
        [place, *link] for place, row in enumerate(rows) for link in kept[row].links
    ]
    for read in (corpus.weights, corpus.links):
        with pytest.raises(IndexError, match="from 0 up to, not with"):
            read([len(kept)])


def test_weights_and_links_are_not_stored_without_their_flags(tmp_path):
    pair = TokenPair([5], [6], 0.0, [(0, 0)])
    write_corpus(tmp_path / "corpus", [pair], **LIMITS)
    corpus = TokenCorpus.open(tmp_path / "corpus")
    assert not corpus.has_weights and not corpus.has_alignments
    assert corpus.weights([0, 0]).tolist() == [1, 1]
    assert corpus.links([0]).shape == (0, 3)
    names = sorted(path.name.split(".", 1)[1] for path in (tmp_path / "corpus").glob("shard-*"))
    assert names == ["source.ids", "source.offsets", "target.ids", "target.offsets"]


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf"), 1e60])
def test_invalid_pair_weight_raises_value_error(tmp_path, weight):
    words = re.escape(f"A pair has the weight {weight}; expected a finite number of at least 0")
    with pytest.raises(ValueError, match=words):
        write_corpus(
            tmp_path / "corpus", [([5], [6]), TokenPair([5], [6], weight)], weights=True, **LIMITS
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("link", [(2, 0), (0, 1), (-1, 0), (0, -1)])
def test_link_to_a_missing_token_raises_value_error(tmp_path, link):
    pairs = [TokenPair([5], [6, 7], links=[(0, 1)]), TokenPair([5, 6], [7], links=[(1, 0), link])]
    with pytest.raises(ValueError, match="but its pair has 2 source and 1 target tokens"):
        write_corpus(tmp_path / "corpus", pairs, alignments=True, **LIMITS)


@pytest.mark.slow
def test_corpus_larger_than_buffer_and_shard_is_read_back(tmp_path):
    """300,000 pairs with 1.2 million tokens fill several buffers and shards."""
    random = np.random.default_rng(0)
    lengths = random.integers(1, 4, (300_000, 2))
    ids = random.integers(4, 9000, int(lengths.sum()))
    bounds = np.concatenate([[0], np.cumsum(lengths)])
    flat = ids.tolist()

    def pairs() -> Iterator[tuple[list[int], list[int]]]:
        for i in range(len(lengths)):
            start, middle, end = bounds[2 * i : 2 * i + 3]
            yield flat[start:middle], flat[middle:end]

    write_corpus(tmp_path / "corpus", pairs(), shard_pairs=110_000, vocabulary_size=9000, **LIMITS)
    corpus = TokenCorpus.open(tmp_path / "corpus")
    assert len(list((tmp_path / "corpus").glob("*.target.ids"))) == 3
    assert np.array_equal(corpus.source_lengths, lengths[:, 0])
    rows = random.integers(0, len(lengths), 1000)
    expected = np.zeros((1000, 3), np.int64)
    for place, row in enumerate(rows):
        target = flat[bounds[2 * row + 1] : bounds[2 * row + 2]]
        expected[place, : len(target)] = target
    assert np.array_equal(corpus.padded("target", rows, 3), expected)


def test_a_shard_ends_before_its_tokens_outgrow_the_offsets(tmp_path, monkeypatch):
    """Tests a limit of 10 tokens, because the real limit takes gigabytes to reach."""
    monkeypatch.setattr("keras_seq.data.writing.SHARD_TOKENS", 10)
    pairs = [([5] * (1 + i % 3), [6] * (1 + i % 4)) for i in range(30)]
    write_corpus(tmp_path / "corpus", pairs, **LIMITS)
    corpus = TokenCorpus.open(tmp_path / "corpus")
    assert [(corpus.source(i).tolist(), corpus.target(i).tolist()) for i in range(30)] == pairs
    shards = json.loads((tmp_path / "corpus" / "corpus.json").read_text())["shards"]
    assert len(shards) > 10
    assert max(shard["source_tokens"] + shard["target_tokens"] for shard in shards) <= 10


@pytest.mark.parametrize(("vocabulary_size", "width"), [(65_536, 2), (65_537, 4), (None, 4)])
def test_ids_take_the_smallest_type(tmp_path, vocabulary_size, width):
    write_corpus(tmp_path / "corpus", [([5, 6, 7], [8])], vocabulary_size=vocabulary_size, **LIMITS)
    assert (tmp_path / "corpus" / "shard-00000.source.ids").stat().st_size == 3 * width


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (([5, 100], [7]), "source has the id 100; expected ids from 0 up to, not with, 100"),
        (([5], [7, -1]), "target has the id -1"),
        (([5], [0, 7]), r"target holds the reserved id 0"),
        (([5, 2], [7]), r"source holds the reserved id 2"),
        (([5], [7, 3]), r"target holds the reserved id 3"),
    ],
)
def test_reserved_or_out_of_range_ids_raise_value_error(tmp_path, pair, message):
    with pytest.raises(ValueError, match=message):
        write_corpus(tmp_path / "corpus", [([5], [6]), pair], vocabulary_size=100, **LIMITS)
    assert list(tmp_path.iterdir()) == []


def test_float_token_arrays_raise_type_error(tmp_path):
    with pytest.raises(TypeError, match="must be integers, received an array of float64"):
        write_corpus(tmp_path / "corpus", [(np.ones(2) * 5, np.ones(2) * 5)], **LIMITS)


@pytest.mark.parametrize(
    "name", ["max_source_length", "max_target_length", "shard_pairs", "vocabulary_size"]
)
def test_non_positive_write_corpus_argument_raises_value_error(tmp_path, name):
    with pytest.raises(ValueError, match=f"{name} must be a positive integer, received 0"):
        write_corpus(tmp_path / "corpus", [], **(LIMITS | {name: 0}))


def test_failed_corpus_write_leaves_no_files(tmp_path):
    def pairs() -> Iterator[tuple[list[int], list[int]]]:
        yield [5], [6]
        raise InputError("train.en:2: not UTF-8")

    with pytest.raises(InputError, match="train.en:2"):
        write_corpus(tmp_path / "corpus", pairs(), shard_pairs=1, **LIMITS)
    assert list(tmp_path.iterdir()) == []


def test_write_corpus_never_overwrites_existing_files(tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="exists already"):
        write_corpus(tmp_path, [([5], [6])], **LIMITS)
    with pytest.raises(InputError, match="exists already"):
        write_corpus(tmp_path / "notes.txt", [([5], [6])], **LIMITS)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_write_corpus_accepts_an_empty_directory_and_creates_parents(tmp_path):
    (tmp_path / "empty").mkdir()
    for path in (tmp_path / "empty", tmp_path / "runs" / "new" / "data"):
        write_corpus(path, [([5], [6])], **LIMITS)
        assert len(TokenCorpus.open(path)) == 1
        assert [other.name for other in path.parent.glob(".tmp-*")] == []


def test_corpus_directory_appears_only_when_complete(tmp_path):
    """While pairs are being read, only a `.tmp-*` sibling exists."""
    seen: list[list[str]] = []

    def pairs() -> Iterator[tuple[list[int], list[int]]]:
        for _ in range(3):
            seen.append([path.name[:5] for path in tmp_path.iterdir()])
            yield [5], [6]

    write_corpus(tmp_path / "corpus", pairs(), shard_pairs=1, **LIMITS)
    assert seen == [[".tmp-"]] * 3
    assert [path.name for path in tmp_path.iterdir()] == ["corpus"]


def test_the_same_pairs_make_the_same_files(tmp_path):
    contents = []
    for name in ("one", "two"):
        write_corpus(tmp_path / name, [([5, 6], [7]), ([8], [9])], shard_pairs=1, **LIMITS)
        files = sorted(Path(tmp_path / name).iterdir())
        contents.append([(file.name, file.read_bytes()) for file in files])
    assert contents[0] == contents[1]
    index = json.loads(dict(contents[0])["corpus.json"])
    assert index["version"] == 1
    assert index["counts"]["kept"] == 2
