"""Training pairs made by joining two pairs of the corpus."""

import itertools

import numpy as np

from keras_seq.data import TokenCorpus, TokenPair
from keras_seq.preparation import prepare_run
from keras_seq.preparation.concatenation import Concatenation
from keras_seq.settings import load_settings


def unknown(generator):
    """What text has between two pairs, on both sides."""
    return (1,), (1,)


PAIRS = [TokenPair([10 + n, 20 + n], [30 + n], 1.0 + n, [(1, 0)]) for n in range(5)]


def test_added_pairs_are_two_pairs_one_after_the_other():
    found = list(Concatenation(2.0, (10, 10), unknown, seed=1)(PAIRS))
    assert found[:5] == PAIRS and len(found) == 15
    possible = {
        (
            # The unknown token (id 1) separates the two pairs.
            (*first.source, 1, *second.source),
            (*first.target, 1, *second.target),
            (first.weight + second.weight) / 2,
            ((1, 0), (4, 2)),
        )
        for first, second in itertools.product(PAIRS, PAIRS)
    }
    assert {
        (tuple(pair.source), tuple(pair.target), pair.weight, tuple(pair.links))
        for pair in found[5:]
    } <= possible


def test_the_same_seed_adds_the_same_pairs():
    runs = [list(Concatenation(1.0, (10, 10), unknown, seed=seed)(PAIRS)) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]


def test_no_pair_is_added_that_is_too_long_or_counts_nothing():
    joining = Concatenation(3.0, (3, 10), unknown, seed=1)
    assert list(joining(PAIRS)) == PAIRS and joining.added == 0
    empty = [TokenPair([], [1]), TokenPair([1], [2], 0.0)]
    assert list(Concatenation(3.0, (9, 9), unknown, seed=1)(empty)) == empty


def test_a_run_is_prepared_with_them(tmp_path):
    (tmp_path / "pairs.tsv").write_text("".join(f"w{n}a\tx y\n" for n in range(40)))
    (tmp_path / "valid.tsv").write_text("w1a\tx y\n")
    notices: list[str] = []
    settings = load_settings(
        overrides={
            "data.pairs": str(tmp_path / "pairs.tsv"),
            "data.valid_pairs": str(tmp_path / "valid.tsv"),
            "data.concatenation": 0.5,
        }
    )
    run = prepare_run(settings, tmp_path / "run", notice=notices.append)
    corpus = TokenCorpus.open(run.train_directory)
    texts = run.target_tokenizer.decode(corpus.target(row) for row in range(len(corpus)))
    assert sorted(set(texts)) == ["x y", "x y x y"]
    assert len(texts) == 60
    assert "training: 40 of 40 pairs kept" in notices
    assert any(line.startswith("20 training pairs added") for line in notices)
    assert len(TokenCorpus.open(run.valid_directory)) == 1


def test_only_some_pairs_are_kept_in_memory():
    """Recordings are long, so their samples count, and joined ones stay arrays."""
    joining = Concatenation(1.0, (10, 10), unknown, seed=1)
    joining.max_ids = 6
    # Two pairs of three ids each reach the limit.
    found = list(joining(PAIRS))
    assert len({tuple(pair.source[:2]) for pair in found[5:]}) <= 2 and joining.added == 5
    arrays = [TokenPair(np.array([4, 5], np.uint16), [6])] * 2
    (_, _, *joined) = Concatenation(1.0, (10, 10), lambda _: ((), (1,)), seed=1)(arrays)
    assert joined[0].source.dtype == np.uint16 and joined[0].source.tolist() == [4, 5, 4, 5]
    assert joined[0].target == [6, 1, 6]
