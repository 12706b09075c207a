"""Learning curves, with trainings whose losses are on a known curve."""

import contextlib
import math
import shutil

import numpy as np
import pytest
from tuning.known_training import KnownTraining

from keras_seq.data import TokenCorpus
from keras_seq.preparation import prepare_run
from keras_seq.run import Run
from keras_seq.settings import SettingsError, load_settings
from keras_seq.text import InputError
from keras_seq.tuning import fit_power_law, measure_learning_curve
from keras_seq.tuning.power_law import extrapolate, jackknife_error

COUNTS = [1000, 2000, 4000, 8000]


def pairs_of(run):
    return len(TokenCorpus.open(run.train_directory))


def law(count):
    return 0.5 + 20 * count**-0.6


@pytest.fixture
def curve(tmp_path, dates_file):
    """Measures a learning curve in a folder, with some other arguments."""

    def measure(train, name="curve", **overrides):
        given = {"data.pairs": str(dates_file), "tokenizer.kind": "unigram", "tokenizer.size": 500}
        values = given | {"training.monitor": "loss", "training.max_steps": 40} | overrides
        values = {key: value for key, value in values.items() if value is not None}
        return measure_learning_curve(
            tmp_path / name, preset="transformer-tiny", overrides=values, train=train
        )

    return measure


def test_prediction_continues_the_known_curve(curve, tmp_path):
    result = curve(KnownTraining(lambda run: law(pairs_of(run))))
    counts = [point.pairs for point in result.points]
    # 20 of the 400 pairs are held out, and a few more with the same sources.
    assert 370 < counts[-1] <= 380
    for share, count in zip((1 / 8, 1 / 4, 1 / 2), counts, strict=False):
        # Within four standard deviations of a binomial distribution.
        assert abs(count - share * counts[-1]) < 4 * math.sqrt(counts[-1] * share * (1 - share))
    assert result.prediction == pytest.approx(law(2 * counts[-1]), abs=1e-4)
    assert result.high - result.low < 1e-3
    table = (tmp_path / "curve" / "curve.tsv").read_text().split("\n")
    assert table[0] == "share\tpairs\tminutes\tupdates\tloss\tstate"
    assert table[4].split("\t")[:4] == ["1", str(counts[-1]), "0.40", "40"]
    assert table[5].split("\t")[:2] == ["2", str(2 * counts[-1])]
    assert "loss = 0.5 + 20 n^-0.60" in result.message


def test_smaller_parts_are_within_larger_ones_with_the_same_vocabulary_and_validation(
    curve, tmp_path
):
    curve(KnownTraining(lambda run: law(pairs_of(run))))
    runs = [Run.open(tmp_path / "curve" / "runs" / name) for name in ("1-8", "1-4", "1-2", "1")]
    parts = []
    for run in runs:
        corpus = TokenCorpus.open(run.train_directory)
        pairs = range(len(corpus))
        parts.append([(*corpus.source(i).tolist(), -1, *corpus.target(i).tolist()) for i in pairs])
    for small, large in zip(parts, parts[1:], strict=False):
        assert set(small) < set(large)
    # A random part, not the beginning.
    assert parts[2] != parts[3][: len(parts[2])]
    assert all(run.valid_lines() == runs[0].valid_lines() for run in runs)
    pieces = [[piece.text for piece in run.source_tokenizer.pieces] for run in runs]
    assert all(each == pieces[0] for each in pieces)


def test_runs_have_as_many_updates_as_that_on_the_whole_text(curve, tmp_path):
    """Batches of 1,000 tokens, so that an epoch of the whole text has several."""
    overrides = {"training.max_steps": None, "training.max_epochs": 3}
    curve(
        KnownTraining(lambda run: law(pairs_of(run))),
        **overrides,
        **{"training.batch_tokens": 1000},
    )
    runs = [Run.open(path) for path in (tmp_path / "curve" / "runs").iterdir()]
    (steps,) = {run.settings.training.max_steps for run in runs}
    assert {run.settings.training.max_epochs for run in runs} == {None}
    corpus = TokenCorpus.open(tmp_path / "curve" / "runs" / "1" / "data" / "train")
    # The longer side of each pair and its end or begin token count.
    tokens = (np.maximum(corpus.source_lengths, corpus.target_lengths) + 1).sum()
    assert 3 * tokens / 1000 <= steps <= 2 * 3 * tokens / 1000


def test_folder_whose_first_call_failed_can_be_used_with_other_options(curve, tmp_path):
    train = KnownTraining(lambda run: law(pairs_of(run)))
    with pytest.raises(InputError, match="a vocabulary of 300 is too small"):
        curve(train, **{"tokenizer.size": 300})
    assert len(curve(train).points) == 4


def test_score_is_extrapolated_by_its_distance_to_the_largest_value(curve):
    """The known training has exp(-loss) exact lines of 100."""

    def loss(run):
        return -math.log(1 - 3 * pairs_of(run) ** -0.5)

    result = curve(KnownTraining(loss), **{"training.monitor": "exact"})
    expected = 100 - 300 * (2 * result.points[-1].pairs) ** -0.5
    assert result.prediction == pytest.approx(expected, abs=0.01)
    assert "fitted 100 - exact = " in result.message


def test_points_that_do_not_determine_the_curve_are_reported(curve):
    result = curve(KnownTraining(lambda run: 1 + 0.001 * pairs_of(run)))
    assert result.prediction is None
    assert "do not determine loss with" in result.message and "no improvement" in result.message
    result = curve(KnownTraining(lambda run: 50.0), "unskilled", **{"training.monitor": "exact"})
    assert "training.monitor=loss" in result.message


def test_curve_that_was_interrupted_resumes(curve):
    def loss(run):
        return law(pairs_of(run))

    expected = curve(KnownTraining(loss), "whole").table
    with pytest.raises(KeyboardInterrupt):
        curve(KnownTraining(loss, stops=(3,)))
    resumed = KnownTraining(loss)
    assert curve(resumed).table == expected
    assert [name for name, _ in resumed.calls] == ["1-2", "1"]
    with pytest.raises(InputError, match=r"other options or text: training.max_steps 40 -> 50"):
        curve(resumed, **{"training.max_steps": 50})


@pytest.mark.parametrize("name", ["runs", "runs/1"])
def test_curve_of_a_stranger_writes_nothing_through_links(curve, tmp_path, name):
    with pytest.raises(KeyboardInterrupt):
        curve(KnownTraining(lambda run: 1.0, stops=(1,)))
    link, outside = tmp_path / "curve" / name, tmp_path / "outside"
    shutil.rmtree(link)
    outside.mkdir()
    link.symlink_to(outside)
    with pytest.raises(InputError, match=f"curve/{name}: a link, expected a directory"):
        curve(KnownTraining(lambda run: 1.0))
    assert not list(outside.iterdir())


def test_wrong_curves_are_one_line(curve, tmp_path):
    train = KnownTraining(lambda run: 1.0)
    unlimited = {"training.max_steps": None, "training.patience": 0}
    with pytest.raises(SettingsError, match="no limit: give --max-steps"):
        curve(train, **unlimited)
    with pytest.raises(SettingsError, match=r"data.share: received 0.5, expected none"):
        curve(train, **{"data.share": 0.5})
    few = tmp_path / "few.tsv"
    few.write_text("".join(f"a {number}\tb\n" for number in range(40)))
    with pytest.raises(InputError, match=r"38 training pairs are too few .*: an eighth has"):
        curve(train, **{"data.pairs": str(few), "tokenizer.size": None})
    assert train.calls == []


@pytest.mark.parametrize("task", ["classify", "tag", "language-model", "packed"])
def test_share_of_labels_and_lines(tmp_path, task):
    """A part of the training text, with labels or as lines; packed lines are the first ones."""
    lines = [f"w{number % 7} v{number}" for number in range(200)]
    text = {
        "classify": "".join(f"{line}\t{'ab'[i % 2]}\n" for i, line in enumerate(lines)),
        "tag": "".join(f"{line}\tA {'AB'[i % 2]}\n" for i, line in enumerate(lines)),
    }.get(task, "".join(f"{line}\n" for line in lines))
    (tmp_path / "text").write_text(text)
    key = "data.labeled" if task in ("classify", "tag") else "data.text"
    overrides = {key: str(tmp_path / "text"), "data.share": 0.25, "task": task}
    if task == "packed":
        overrides |= {"task": "language-model", "data.packed": True, "data.max_target_length": 16}
        overrides |= {"tokenizer.kind": "char"}
    run = prepare_run(load_settings(overrides=overrides), tmp_path / "run")
    valid = run.valid_lines()[1 if "data.text" in overrides else 0]
    assert len(valid) == 10
    count = pairs_of(run)
    if task == "packed":
        corpus = TokenCorpus.open(run.train_directory)
        ids = np.concatenate([corpus.target(i) for i in range(count)]).tolist()
        # A quarter of the 190 lines that are not held out, each with its end.
        assert run.target_tokenizer.decode([ids])[0].count("v") == 48
        assert valid == lines[190:]
    else:
        assert 25 <= count <= 70


def test_fit_finds_a_known_law():
    fitted = fit_power_law(COUNTS, [law(count) for count in COUNTS])
    assert (fitted.a, fitted.b, fitted.c) == pytest.approx((0.5, 20, 0.6), rel=1e-6)
    # By hand: 100/1 and 100/2 without a constant halve with the double count.
    assert fit_power_law([1, 2, 4], [100, 50, 25])(8) == pytest.approx(12.5)


def test_jackknife_error_of_a_mean_is_its_standard_error():
    """The textbook's identity: for a mean, the jackknife gives s / sqrt(n)."""
    values = np.array([3.0, 5.0, 9.0, 2.0])
    means = [np.delete(values, index).mean() for index in range(4)]
    assert jackknife_error(means) == pytest.approx(values.std(ddof=1) / 2)


@pytest.mark.slow
@pytest.mark.weekly
def test_range_of_a_prediction_mostly_contains_the_true_value():
    """The points deviate by 2 % from a known law. Some of them determine no prediction."""
    generator = np.random.default_rng(1)
    determined = contained = 0
    for _ in range(60):
        errors = [20 * n**-0.4 * (1 + 0.02 * generator.normal()) for n in COUNTS]
        with contextlib.suppress(ValueError):
            result = extrapolate(COUNTS, errors, 16000)
            determined += 1
            contained += result.low <= 20 * 16000**-0.4 <= result.high
    assert determined > 40 and contained / determined > 0.75


def test_points_off_any_law_determine_nothing():
    with pytest.raises(ValueError, match="if a point is left out"):
        extrapolate(COUNTS, [1.0, 0.5, 0.499, 0.49], 16000)
    with pytest.raises(ValueError, match="3 points, expected at least 4"):
        extrapolate(COUNTS[1:], [3.0, 2.0, 1.5], 16000)
