"""Successive halving, with trainings whose results are known."""

import itertools
import shutil

import pytest
from tuning.known_training import KnownTraining, distance

from keras_seq.preparation import resolve_settings
from keras_seq.run import Run
from keras_seq.settings import SettingsError
from keras_seq.text import InputError
from keras_seq.tuning import Ending, Tuning
from keras_seq.tuning.shared_text import SharedText

RATES = "training.learning_rate=1e-6,3e-6,1e-5,3e-5,1e-4,3e-4,1e-3,3e-3,1e-2"
SMALL = {"tokenizer.size": 500, "tokenizer.kind": "unigram", "training.validate_every": 10}


@pytest.fixture
def search(tmp_path, dates_file):
    """Makes a search in a folder, with some other arguments."""

    def make(train=None, name="search", **arguments):
        overrides = {"data.pairs": str(dates_file), **SMALL, **arguments.pop("overrides", {})}
        arguments = {"minutes": 27, "preset": "transformer-tiny", "search": [RATES]} | arguments
        train = train or KnownTraining(distance)
        return Tuning(tmp_path / name, overrides=overrides, train=train, **arguments)

    return make


def test_third_with_the_best_validation_continues_for_an_equal_share_of_the_time(search):
    """Three rounds of 9 minutes: 9 trials of 1 minute, 3 of 3 more, and 1 of 9 more."""
    train = KnownTraining(distance)
    result = search(train).run()
    first = [(f"{number:02}", 1.0) for number in range(1, 10)]
    # The learning rate rises with the number, and the best one is the last.
    assert train.calls == [*first, ("09", 4.0), ("08", 4.0), ("07", 4.0), ("09", 13.0)]
    assert [trial.name for trial in result.trials[:3]] == ["09", "08", "07"]
    assert [len(trial.outcomes) for trial in result.trials] == [3, 2, 2, 1, 1, 1, 1, 1, 1]


def test_table_and_settings_file_have_the_best_trial(search, tmp_path, dates_file):
    result = search().run()
    lines = (tmp_path / "search" / "trials.tsv").read_text().split("\n")
    assert lines[0].split("\t") == [
        *("trial", "training.learning_rate", "minutes", "updates", "exact", "loss", "round"),
        "state",
    ]
    # 100 updates a minute; exp(-0.1) of the lines are exact.
    assert lines[1].split("\t") == "09 1e-2 13.00 1300 90.48 0.1000 3 best,trained".replace(
        ",", ", "
    ).split(" ", 7)
    assert [line.split("\t") for line in lines[:-1]] == result.table
    settings, _ = resolve_settings(preset="transformer-tiny", file=result.settings_file)
    assert settings.training.learning_rate == 0.01
    assert settings.training.max_minutes is None
    assert settings.data.pairs == str(dates_file) and settings.data.prepared is None
    assert settings.tokenizer.size == 500 and settings.training.validate_every == 10


@pytest.mark.parametrize(
    ("space", "stop"),
    [
        *((["training.learning_rate=1e-6..1"], stop) for stop in (1, 11)),
        # The learning rate, batch size, dropout and width.
        ([], 11),
        # All trials of one vocabulary, and then those of the other.
        *((["tokenizer.size=500,600", "model.dropout=0.1,0.2,0.4"], stop) for stop in (2, 5)),
    ],
)
def test_search_that_was_interrupted_resumes_to_the_same_table(search, stop, space):
    whole = search(name="whole", search=space)
    expected = whole.run().table
    calls = sum(whole.sizes)
    interrupted = KnownTraining(distance, stops=(stop,))
    arguments = {"name": "interrupted", "search": space}
    with pytest.raises(KeyboardInterrupt):
        search(interrupted, **arguments).run()
    resumed = KnownTraining(distance)
    assert search(resumed, **arguments).run().table == expected
    assert len(resumed.calls) == calls - (stop - 1)
    # A search that is complete trains nothing.
    complete = KnownTraining(distance)
    assert search(complete, **arguments).run().table == expected
    assert complete.calls == []


@pytest.mark.parametrize("name", ["trials", "text", "trials/02", "text/1"])
def test_search_of_a_stranger_writes_nothing_through_links(search, tmp_path, name):
    with pytest.raises(KeyboardInterrupt):
        search(KnownTraining(distance, stops=(2,))).run()
    link, outside = tmp_path / "search" / name, tmp_path / "outside"
    if link.exists():
        shutil.rmtree(link)
    outside.mkdir()
    link.symlink_to(outside)
    with pytest.raises(InputError, match=f"search/{name}: a link, expected a directory"):
        search(KnownTraining(distance)).run()
    assert not list(outside.iterdir())


def test_search_with_other_options_or_text_is_refused(search, tmp_path, dates_file):
    search().run()
    with pytest.raises(InputError, match=r"started with other options or text: minutes 27 -> 30: "):
        search(minutes=30).run()
    with pytest.raises(InputError, match=r"text: training.ema 0.998 -> 0.5: give the original"):
        search(overrides={"training.ema": 0.5}).run()
    other = tmp_path / "other.tsv"
    shutil.copy(dates_file, other)
    other.write_text(other.read_text() + "May 1, 1999\t1999-05-01\n")
    with pytest.raises(InputError, match=r"data.pairs .*dates.tsv -> .*; data.pairs has other"):
        search(overrides={"data.pairs": str(other)}).run()
    train = KnownTraining(distance)
    search(train, minutes=30, overwrite=True).run()
    assert len(train.calls) == 13
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("")
    with pytest.raises(InputError, match="mine: has other files: name a new folder"):
        search(name="mine")


def test_larger_or_smaller_values_win_as_the_monitor_says(search):
    for monitor in ("loss", "exact"):
        overrides = {"training.monitor": monitor}
        result = search(name=monitor, overrides=overrides).run()
        assert result.trials[0].values == {"training.learning_rate": "1e-2"}
        assert result.table[0][4] == monitor


def test_loss_decides_while_the_score_shows_no_skill(search):
    """All trials have an exact match of 0.00, as at the start of a training."""
    train = KnownTraining(distance, exact=lambda loss: 1e-4 * loss)
    result = search(train).run()
    assert [trial.name for trial in result.trials[:2]] == ["09", "08"]
    assert {row[4] for row in result.table[1:]} == {"0.00"}


def test_trial_that_fails_is_a_row_and_leaves_its_time_to_the_others(search):
    known = KnownTraining(distance)
    codes = {"01": 3, "05": 4, "06": -9, "07": 1}

    def train(path, notice):
        if code := codes.get(path.name):
            return Ending(code, "why")
        return known(path, notice)

    result = search(train).run()
    states = {row[0]: row[-1] for row in result.table[1:]}
    assert [states[name] for name in ("01", "05", "06", "07")] == [
        *("diverged", "out of memory", "out of memory", "failed")
    ]
    # 22 of 27 minutes are left after the first round: 11 for each of two rounds.
    assert known.calls[-1] == ("09", pytest.approx(1 + 11 / 3 + 11, abs=1e-3))
    # Failed trials do not continue, even if places are left in the next round.
    codes.update({f"{number:02}": 4 for number in range(1, 9)})
    known.calls.clear()
    search(train, name="one").run()
    assert known.calls == [("09", 1.0), ("09", 14.0), ("09", 27.0)]
    codes["09"] = 4
    with pytest.raises(InputError, match="all 9 trials failed; the first: why"):
        search(train, name="failing").run()


def test_trial_that_reaches_its_own_limit_is_not_trained_again(search):
    train = KnownTraining(distance)
    result = search(train, overrides={"training.max_steps": 50}).run()
    assert len(train.calls) == 9
    assert result.trials[0].name == "09" and result.table[1][-1] == "best, finished"


def test_too_few_minutes_for_a_validation_is_one_line_with_a_budget_that_does(search):
    """100 updates a minute: 9 trials need 10 minutes each for the first validation, in 3 rounds."""
    overrides = {"training.validate_every": 1000}
    train = KnownTraining(distance)
    with pytest.raises(InputError, match=r"--minutes 27: too few: .* give --minutes 324, fewer"):
        search(train, overrides=overrides).run()
    assert len(train.calls) == 1
    # The line's advice can be followed at once.
    train = KnownTraining(distance)
    search(train, minutes=324, overrides=overrides).run()
    assert len(train.calls) == 13


def test_trials_share_the_text_of_an_equal_vocabulary(search, tmp_path):
    result = search(
        search=["tokenizer.size=500,600", "training.learning_rate=1e-3,1e-2"], minutes=8
    ).run()
    assert len(result.trials) == 4
    texts = {path.name for path in (tmp_path / "search" / "text").iterdir() if path.is_dir()}
    assert texts == {"1", "2"}
    runs = [Run.open(tmp_path / "search" / "trials" / trial.name) for trial in result.trials]
    sizes = {run.settings.data.prepared[-1]: run.settings.tokenizer.size for run in runs}
    assert sizes == {"1": 500, "2": 600}


@pytest.mark.parametrize("content", ['{"keys": [1]}', '{"keys"', "[]"])
def test_damaged_record_of_the_shared_texts_is_one_line(tmp_path, content):
    (tmp_path / "settings.json").write_text(content)
    with pytest.raises(InputError, match="settings.json: ") as caught:
        SharedText(tmp_path, print)
    assert "\n" not in str(caught.value)


def test_first_trial_has_the_values_of_the_settings(search):
    overrides = {"training.learning_rate": 0.002}
    result = search(search=(), overrides=overrides, trials=3, minutes=9).run()
    first = min(result.trials, key=lambda trial: trial.number)
    # The preset transformer-tiny.
    assert first.values == {
        "training.learning_rate": 0.002,
        "training.batch_tokens": "4096",
        "model.dropout": 0.3,
        "model.units": "128",
    }


def test_default_choices_fit_the_other_settings(search):
    """Four heads divide neither a width of 6 nor one of 2."""
    overrides = {"model.units": 12, "model.num_heads": 4}
    plan = "\n".join(search(search=(), overrides=overrides).plan())
    assert "model.units 12,24" in plan
    overrides = {"model.units": 4, "model.num_heads": 4, "training.batch_tokens": 1}
    plan = "\n".join(search(search=(), overrides=overrides).plan())
    assert "model.units 4,8" in plan and "training.batch_tokens 1,2" in plan


def test_suggestions_learn_from_the_first_round(search):
    """The sampler tries more values near the best learning rate than chance would."""
    result = search(
        search=["training.learning_rate=1e-9..1"], trials=24, minutes=100, name="learned"
    ).run()
    rates = [trial.values["training.learning_rate"] for trial in result.trials]
    # A ninth of the nine decades is within half a decade of 0.01: 2.7 of 24 by chance.
    assert sum(3e-3 < rate < 3e-2 for rate in rates) >= 6
    assert result.trials[0].values["training.learning_rate"] == pytest.approx(0.01, rel=0.5)


def test_no_values_are_tried_twice(search):
    layers = ["model.num_encoder_layers=1..3", "model.num_decoder_layers=1..4"]
    result = search(search=layers, trials=11, minutes=33).run()
    tried = {tuple(trial.values.values()) for trial in result.trials}
    assert len(tried) == 11
    # All 12 combinations are tried, if there are enough trials.
    result = search(search=layers, trials=20, minutes=36, name="all").run()
    tried = {tuple(trial.values.values()) for trial in result.trials}
    assert tried == set(itertools.product((1, 2, 3), (1, 2, 3, 4)))


def test_presets_can_be_searched(search):
    result = search(
        search=["preset=transformer-tiny,rnn-small"], preset=None, minutes=2,
        overrides={"training.validate_every": 1},
    ).run()  # fmt: skip
    families = {Run.open(result.run).settings.model.family}
    assert families < {"transformer", "rnn"} and len(result.trials) == 2


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("training.lerning_rate=1..2", "unknown setting .* did you mean training.learning_rate?"),
        ("model.units", "expected NAME=LOW..HIGH or NAME=A,B,C"),
        ("model.units=", "expected NAME=LOW..HIGH or NAME=A,B,C"),
        ("model.units=a..b", "model.units: received 'a..b', expected two numbers"),
        ("model.units=64..32", "expected a smaller and a larger number"),
        ("model.units=64..64.5", "expected integers"),
        ("model.units=64", "expected two or more values"),
        ("model.units=64,65", "expected a divisor of model.units"),
        ("model.dropout=0..1", "received 1.0, expected a number, at least 0 and below 1"),
        ("model.cell=gru,lstm", "not a setting of model.family 'transformer', only of 'rnn'"),
        ("model.norm=pre..post", "expected two numbers"),
        ("model.norm=1..2", "is not a number: give choices"),
        ("model.family=rnn,transformer", "search presets, as in --search preset=A,B"),
        ("training.max_steps=1,2", "cannot be searched, because it decides on what is compared"),
        ("data.pairs=a,b", "cannot be searched"),
        ("preset=demo,nope", "unknown preset 'nope'"),
    ],
)
def test_wrong_search_is_one_line_before_any_training(search, wrong, message):
    train = KnownTraining(distance)
    with pytest.raises(SettingsError, match=message) as caught:
        search(train, search=[wrong])
    assert train.calls == [] and "\n" not in str(caught.value)


def test_losses_of_different_vocabularies_are_not_compared(search):
    with pytest.raises(SettingsError, match="tokens of different vocabularies cannot be compared"):
        search(search=["tokenizer.size=500,600"], overrides={"training.monitor": "loss"})


# Each value of the search with these settings is possible by itself, but no combination is.
ODD = {"model.units": 24, "model.num_heads": 1}


def test_wrong_limits_are_one_line(search):
    for arguments, message in (
        ({"minutes": 0}, "--minutes: received 0, expected a number above 0"),
        ({"minutes": float("nan")}, "--minutes: received nan, expected a number above 0"),
        ({"trials": 1}, "--trials: received 1, expected 2 to 1000"),
        ({"overrides": {"training.max_minutes": 3}}, "training.max_minutes: received 3, expected"),
        (
            {"search": ["model.num_heads=8,12", "model.units=10,22"], "overrides": ODD},
            "fewer than two",
        ),
        ({"search": [RATES, RATES]}, "--search training.learning_rate: received twice"),
    ):
        with pytest.raises(SettingsError, match=message):
            search(**arguments)
