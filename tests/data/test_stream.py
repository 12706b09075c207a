"""Properties of the batch stream on random small corpora."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_seq.data import BatchStream, TokenCorpus, TokenPair, sequential_batches, write_corpus

Pair = tuple[list[int], list[int]]

STREAMS = st.fixed_dictionaries(
    {
        "batch_tokens": st.integers(1, 90),
        "seed": st.integers(0, 2**40),
        "bucket_width": st.integers(1, 9),
        "shapes": st.sampled_from(["exact", "buckets"]),
        "max_shapes": st.integers(1, 5),
    }
)


def random_lengths(count: int, longest: int, seed: int) -> list[tuple[int, int]]:
    """Hundreds of random lengths; Hypothesis seldom generates such long lists."""
    lengths = np.random.default_rng(seed).integers(1, longest, (count, 2), endpoint=True)
    return [(source, target) for source, target in lengths.tolist()]


LENGTHS = st.lists(
    st.tuples(st.integers(1, 40), st.integers(1, 40)), min_size=1, max_size=40
) | st.builds(random_lengths, st.integers(1, 150), st.integers(1, 60), st.integers(0, 2**20))
LAW = settings(max_examples=25, deadline=None)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("corpora")


def random_pairs(lengths: list[tuple[int, int]]) -> list[Pair]:
    """Random pairs of the given lengths, all different."""
    random = np.random.default_rng(len(lengths))
    return [
        (random.integers(4, 60_000, source).tolist(), random.integers(4, 60_000, target).tolist())
        for source, target in lengths
    ]


def corpus_of(pairs: list[Pair], place: Path, shard_pairs: int = 50) -> TokenCorpus:
    path = place / f"corpus-{len(list(place.iterdir()))}"
    write_corpus(
        path, pairs, max_source_length=1000, max_target_length=1000, shard_pairs=shard_pairs
    )
    return TokenCorpus.open(path)


def same(one: dict, other: dict) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[key], other[key]) for key in one)


def pairs_in(batch: dict) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """The pairs of a batch as plain tuples, after checking begin, end and padding of each row."""
    found = []
    rows = (batch[key].tolist() for key in ("source", "target_input", "target_output"))
    for source, target_input, target_output in zip(*rows, strict=True):
        if not any(source):
            assert not any(target_input) and not any(target_output)
            continue
        source_end, target_end = source.index(3), target_output.index(3)
        assert not any(source[source_end + 1 :]) and not any(target_output[target_end + 1 :])
        target = target_output[:target_end]
        assert target_input == [2, *target, *[0] * (len(target_output) - target_end - 1)]
        found.append((tuple(source[:source_end]), tuple(target)))
    return found


def as_tuples(pairs: list[Pair]) -> Counter:
    return Counter((tuple(source), tuple(target)) for source, target in pairs)


@LAW
@given(lengths=LENGTHS, stream=STREAMS, epoch=st.integers(0, 3))
def test_every_epoch_contains_every_pair_once(place, lengths, stream, epoch):
    pairs = random_pairs(lengths)
    made = BatchStream(corpus_of(pairs, place), **stream)
    size = made.batches_per_epoch
    found = Counter()
    for k in range(epoch * size, (epoch + 1) * size):
        found.update(pairs_in(made.batch(k)))
    assert found == as_tuples(pairs)


@LAW
@given(lengths=LENGTHS, stream=STREAMS)
def test_batch_by_number_equals_the_batch_in_sequence(place, lengths, stream):
    corpus = corpus_of(random_pairs(lengths), place)
    made = BatchStream(corpus, **stream)
    length = 2 * made.batches_per_epoch + 1
    on_the_way = [made.batch(k) for k in range(length)]
    for k in (0, length // 2, length - 1):
        assert same(BatchStream(corpus, **stream).batch(k), on_the_way[k])


@LAW
@given(lengths=LENGTHS, stream=STREAMS)
def test_batches_stay_within_the_token_budget(place, lengths, stream):
    made = BatchStream(corpus_of(random_pairs(lengths), place), **stream)
    for batch in map(made.batch, range(made.batches_per_epoch)):
        rows, source_steps = batch["source"].shape
        assert batch["target_input"].shape == batch["target_output"].shape
        assert all(array.dtype == np.int32 for array in batch.values())
        longer = max(source_steps, batch["target_input"].shape[1])
        assert rows == 1 or rows * longer <= stream["batch_tokens"]


@LAW
@given(lengths=LENGTHS, stream=STREAMS, hosts=st.integers(1, 5))
def test_host_batches_join_to_the_full_batch(place, lengths, stream, hosts):
    corpus = corpus_of(random_pairs(lengths), place)
    whole = BatchStream(corpus, **stream)
    parts = [BatchStream(corpus, **stream, host=host, hosts=hosts) for host in range(hosts)]
    assert {part.batches_per_epoch for part in parts} == {whole.batches_per_epoch}
    for k in range(whole.batches_per_epoch):
        batch, shares = whole.batch(k), [part.batch(k) for part in parts]
        rows = len(batch["source"])
        for key, expected in batch.items():
            assert len({share[key].shape for share in shares}) == 1
            joined = np.concatenate([share[key] for share in shares])
            assert np.array_equal(joined[:rows], expected)
            assert not joined[rows:].any() and len(joined) - rows < hosts


@LAW
@given(
    lengths=LENGTHS,
    stream=STREAMS,
    hosts=st.integers(1, 4),
    row_multiple=st.sampled_from([2, 3, 8]),
)
def test_batch_rows_are_padded_to_a_multiple(place, lengths, stream, hosts, row_multiple):
    """Rows of zeros follow the pairs of all hosts, so that each pair keeps its position."""
    corpus = corpus_of(random_pairs(lengths), place)
    whole = BatchStream(corpus, **stream)
    parts = [
        BatchStream(corpus, **stream, host=host, hosts=hosts, row_multiple=row_multiple)
        for host in range(hosts)
    ]
    shapes = set()
    for k in range(whole.batches_per_epoch):
        expected, shares = whole.batch(k), [part.batch(k) for part in parts]
        rows = len(expected["source"])
        for key in expected:
            (size,) = {len(share[key]) for share in shares}
            joined = np.concatenate([share[key] for share in shares])
            assert size % row_multiple == 0 and len(joined) - rows < hosts * row_multiple
            assert np.array_equal(joined[:rows], expected[key]) and not joined[rows:].any()
        shapes |= {(*s["source"].shape, s["target_input"].shape[1]) for s in shares}
    for part in parts:
        bounds = part.bounds
        assert all((np.array(shape) <= bounds).all(axis=1).any() for shape in shapes)
        if stream["shapes"] == "buckets":
            assert set(map(tuple, bounds.tolist())) == shapes


@LAW
@given(lengths=LENGTHS, stream=STREAMS, hosts=st.integers(1, 4), start=st.integers(0, 9))
def test_total_weight_counts_the_tokens_of_all_hosts(place, lengths, stream, hosts, start):
    corpus = corpus_of(random_pairs(lengths), place)
    parts = [
        BatchStream(corpus, **stream, host=host, hosts=hosts, row_multiple=2)
        for host in range(hosts)
    ]
    for k in range(start, start + 3):
        tokens = sum(np.count_nonzero(part.batch(k)["target_output"]) for part in parts)
        assert {part.total_weight(k) for part in parts} == {float(tokens)}


@LAW
@given(lengths=LENGTHS, stream=STREAMS, hosts=st.integers(1, 3))
def test_bucket_batches_have_exactly_the_announced_shapes(place, lengths, stream, hosts):
    stream = stream | {"shapes": "buckets"}
    made = BatchStream(corpus_of(random_pairs(lengths), place), **stream, hosts=hosts)
    shapes = set(map(tuple, made.bounds.tolist()))
    assert len(shapes) <= stream["max_shapes"]
    assert all(source % 8 == target % 8 == 0 for _, source, target in shapes)
    seen = {
        (*batch["source"].shape, batch["target_input"].shape[1])
        for batch in map(made.batch, range(made.batches_per_epoch))
    }
    assert seen == shapes


@LAW
@given(lengths=LENGTHS, stream=STREAMS)
def test_exact_shapes_are_no_larger_than_their_pairs(place, lengths, stream):
    made = BatchStream(corpus_of(random_pairs(lengths), place), **(stream | {"shapes": "exact"}))
    for batch in map(made.batch, range(made.batches_per_epoch)):
        assert batch["source"].any(axis=1).all()
        for array in batch.values():
            assert array.any(axis=0).all()


def expected_stream(
    pairs: list[Pair], batch_tokens: int, seed: int, width: int, epoch: int
) -> list[dict[str, list[list[int]]]]:
    """An epoch of exact batches in plain Python, from the same random bits as the stream."""
    bits = np.random.PCG64(np.random.SeedSequence([seed, epoch]))
    steps = [(len(source) + 1, len(target) + 1) for source, target in pairs]

    def group(i: int) -> tuple[int, int]:
        source, target = steps[i][0] // width, steps[i][1] // width
        return target, -source if target % 2 else source

    chance = [int(number) >> 16 for number in bits.random_raw(len(pairs))]
    order = sorted(range(len(pairs)), key=lambda i: (group(i), chance[i]))
    longest = {
        group(i): max(max(steps[j]) for j in range(len(pairs)) if group(j) == group(i))
        for i in range(len(pairs))
    }
    cut: list[list[int]] = [[]]
    for i in order:
        bound = max(longest[group(j)] for j in [*cut[-1], i])
        if cut[-1] and (len(cut[-1]) + 1) * bound > batch_tokens:
            cut.append([])
        cut[-1].append(i)
    turns = bits.random_raw(len(cut)).tolist()

    batches = []
    for number in sorted(range(len(cut)), key=lambda number: turns[number]):
        members = [pairs[i] for i in cut[number]]
        wide = max(len(source) for source, _ in members) + 1
        high = max(len(target) for _, target in members) + 1
        batches.append(
            {
                "source": [(source + [3] + [0] * wide)[:wide] for source, _ in members],
                "target_input": [([2] + target + [0] * high)[:high] for _, target in members],
                "target_output": [(target + [3] + [0] * high)[:high] for _, target in members],
            }
        )
    return batches


@LAW
@given(
    lengths=LENGTHS,
    batch_tokens=st.integers(1, 200),
    seed=st.integers(0, 2**40),
    width=st.integers(1, 9),
    epoch=st.integers(0, 5),
)
def test_batch_stream_equals_the_plain_python_reference(
    place, lengths, batch_tokens, seed, width, epoch
):
    pairs = random_pairs(lengths)
    made = BatchStream(
        corpus_of(pairs, place), batch_tokens=batch_tokens, seed=seed, bucket_width=width
    )
    expected = expected_stream(pairs, batch_tokens, seed, width, epoch)
    assert made.batches_per_epoch == len(expected)
    for k, batch in enumerate(expected):
        found = made.batch(epoch * len(expected) + k)
        assert {key: array.tolist() for key, array in found.items()} == batch


def extra_corpus(pairs: list[Pair], place: Path) -> tuple[TokenCorpus, dict]:
    """A corpus with random weights and links, and a dict of both by the tokens of a pair."""
    random = np.random.default_rng(len(pairs))
    extras = {}
    for source, target in pairs:
        links = {
            (int(random.integers(len(source))), int(random.integers(len(target))))
            for _ in range(random.integers(5))
        }
        weight = float(np.float32(random.uniform(0.1, 3)))
        extras[tuple(source), tuple(target)] = (weight, sorted(links))
    path = place / f"corpus-{len(list(place.iterdir()))}"
    full = [TokenPair(*pair, *extras[tuple(pair[0]), tuple(pair[1])]) for pair in pairs]
    limits = {"max_source_length": 1000, "max_target_length": 1000, "shard_pairs": 13}
    write_corpus(path, full, weights=True, alignments=True, **limits)
    return TokenCorpus.open(path), extras


def expected_alignment(source: tuple, target: tuple, links: list, shape: tuple) -> np.ndarray:
    """Each row spreads a weight of 1 over its linked source tokens; the end tokens are linked."""
    result = np.zeros(shape)
    linked: dict[int, list[int]] = {len(target): [len(source)]}
    for source_token, target_token in links:
        linked.setdefault(target_token, []).append(source_token)
    for target_token, source_tokens in linked.items():
        for source_token in source_tokens:
            result[target_token, source_token] = 1 / len(source_tokens)
    return result


@LAW
@given(lengths=LENGTHS, stream=STREAMS, hosts=st.integers(1, 3))
def test_weights_and_alignments_stay_with_their_pairs(place, lengths, stream, hosts):
    corpus, extras = extra_corpus(random_pairs(lengths), place)
    parts = [
        BatchStream(corpus, **stream, host=h, hosts=hosts, row_multiple=2) for h in range(hosts)
    ]
    for k in range(min(parts[0].batches_per_epoch, 6)):
        batches = [part.batch(k) for part in parts]
        total = 0.0
        for batch in batches:
            found = pairs_in(batch)
            alignment = batch["alignment"]
            shape = (batch["target_output"].shape[1], batch["source"].shape[1])
            assert batch["weight"].dtype == alignment.dtype == np.float32
            assert alignment.shape == (len(batch["weight"]), *shape)
            for row, pair in enumerate(found):
                weight, links = extras[pair]
                assert batch["weight"][row] == weight
                np.testing.assert_allclose(
                    alignment[row], expected_alignment(*pair, links, shape), rtol=1e-6
                )
                total += weight * (len(pair[1]) + 1)
            assert not batch["weight"][len(found) :].any() and not alignment[len(found) :].any()
        assert parts[0].total_weight(k) == pytest.approx(total, rel=1e-12)


def test_shard_size_does_not_change_the_batches(place):
    pairs = random_pairs([(1 + i % 13, 1 + i % 7) for i in range(200)])
    streams = [
        BatchStream(corpus_of(pairs, place, shard_pairs), batch_tokens=100, seed=3)
        for shard_pairs in (1, 13, 1000)
    ]
    for k in range(streams[0].batches_per_epoch):
        one, two, three = (stream.batch(k) for stream in streams)
        assert same(one, two) and same(one, three)


@pytest.mark.parametrize("shapes", ["exact", "buckets"])
def test_epochs_and_seeds_differ_and_the_same_seed_repeats(place, shapes):
    corpus = corpus_of(random_pairs([(5 + i % 3, 6) for i in range(300)]), place)

    def epoch(seed: int, number: int) -> list[dict]:
        stream = BatchStream(corpus, batch_tokens=64, seed=seed, shapes=shapes)
        size = stream.batches_per_epoch
        return [stream.batch(number * size + k) for k in range(size)]

    first = epoch(1, 0)
    assert all(same(one, other) for one, other in zip(first, epoch(1, 0), strict=True))
    for other in (epoch(1, 1), epoch(2, 0)):
        assert not any(same(one, two) for one, two in zip(first, other, strict=True))
        members = [{frozenset(pairs_in(batch)) for batch in batches} for batches in (first, other)]
        assert members[0] != members[1]


def test_batches_are_not_ordered_by_length(place):
    """Fewer than 4 in 5 shuffled batches are longer than the batch before."""
    corpus = corpus_of(random_pairs([(1 + i // 4, 1 + i // 4) for i in range(256)]), place)
    made = BatchStream(corpus, batch_tokens=260, seed=5)
    lengths = [batch["source"].shape[1] for batch in map(made.batch, range(30))]
    rising = sum(one < two for one, two in zip(lengths, lengths[1:], strict=False))
    assert 6 < rising < 23


def test_stream_handles_more_length_groups_than_16_bits_hold(place):
    """900 x 900 length groups of one step do not fit 16 bits, so the stream uses wider numbers."""
    random = np.random.default_rng(0)
    pairs = random_pairs([tuple(pair) for pair in random.integers(1, 900, (300, 2)).tolist()])
    made = BatchStream(corpus_of(pairs, place, 100), batch_tokens=5000, seed=1)
    found = Counter()
    for batch in map(made.batch, range(made.batches_per_epoch)):
        found.update(pairs_in(batch))
    assert found == as_tuples(pairs)


@LAW
@given(lengths=LENGTHS, stream=STREAMS)
def test_sequential_batches_hold_every_pair_once_in_a_fixed_order(place, lengths, stream):
    pairs = random_pairs(lengths)
    corpus = corpus_of(pairs, place)
    options = {name: stream[name] for name in ("batch_tokens", "shapes", "max_shapes")}
    batches = list(sequential_batches(corpus, **options))
    again = sequential_batches(corpus, **options)
    assert all(same(one, other) for one, other in zip(batches, again, strict=True))
    found = Counter()
    for batch in batches:
        found.update(pairs_in(batch))
    assert found == as_tuples(pairs)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_tokens": 0}, "batch_tokens must be a positive integer, received 0"),
        ({"bucket_width": 0}, "bucket_width must be a positive integer, received 0"),
        ({"max_shapes": -1}, "max_shapes must be a positive integer, received -1"),
        ({"seed": -1}, "seed must not be negative, received -1"),
        ({"host": 2, "hosts": 2}, "host must be from 0 up to, not with, hosts; received 2 of 2"),
        ({"host": -1}, "received -1 of 1"),
        ({"row_multiple": 0}, "row_multiple must be a positive integer, received 0"),
        ({"shapes": "static"}, 'shapes must be "exact" or "buckets", received \'static\''),
    ],
)
def test_batch_stream_argument_out_of_range_raises_value_error(place, change, message):
    corpus = corpus_of([([5], [6])], place)
    with pytest.raises(ValueError, match=message):
        BatchStream(corpus, **({"batch_tokens": 10, "seed": 1} | change))


def test_batch_stream_refuses_an_empty_corpus_and_negative_batch_numbers(place):
    with pytest.raises(ValueError, match="The corpus has no pairs; write one with at least one"):
        BatchStream(corpus_of([], place), batch_tokens=10, seed=1)
    stream = BatchStream(corpus_of([([5], [6])], place), batch_tokens=10, seed=1)
    with pytest.raises(ValueError, match="k must not be negative, received -1"):
        stream.batch(-1)
    with pytest.raises(ValueError, match="k must not be negative, received -1"):
        stream.total_weight(-1)
