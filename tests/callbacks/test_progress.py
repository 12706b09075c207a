"""`Progress` in a user's own `fit`, mostly with a stream as its output."""

import io
import re
import time

import keras
import numpy as np
import pytest

from keras_seq.callbacks import Progress

pytestmark = pytest.mark.jax

UPDATES = 6
X = np.random.default_rng(0).normal(size=(2 * UPDATES, 2)).astype("float32")
Y = np.ones((2 * UPDATES, 1), "float32")
LINE = re.compile(
    r"step (?P<step>[\d,]+) \| loss (?P<loss>[\d.]+) \| rate (?P<rate>[\d.e+-]+)"
    r"( \| (?P<tokens>[\d,]+) tokens/s)? \| (?P<minutes>[\d.]+) min"
    r"( \| about (?P<left>[\d.]+) min left)?"
)


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Notebook(io.StringIO):
    """The output stream of a notebook's kernel is not a terminal, but knows carriage returns."""

    __module__ = "ipykernel.iostream"


class Pace(keras.callbacks.Callback):
    """Sleeps for a given time in each update, and counts 10 tokens per update."""

    def __init__(self, seconds=0.0):
        super().__init__()
        self.seconds = seconds
        self.tokens = 0

    def on_train_batch_begin(self, batch, logs=None):
        self.tokens += 10
        time.sleep(self.seconds)


class Batches(keras.utils.PyDataset):
    """The rows in batches of the given sizes."""

    def __init__(self, *sizes):
        super().__init__()
        self.ends = np.cumsum(sizes)
        self.sizes = sizes

    def __len__(self):
        return len(self.sizes)

    def __getitem__(self, index):
        rows = slice(self.ends[index] - self.sizes[index], self.ends[index])
        return X[rows], Y[rows]


def fit(*callbacks, epochs=1):
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    # With a learning rate of 0, the batch losses can be computed after training.
    model.compile(keras.optimizers.SGD(0.0), "mse")
    model.fit(
        X, Y, batch_size=2, epochs=epochs, shuffle=False, verbose=0, callbacks=list(callbacks)
    )
    predictions = model.predict(X, verbose=0)
    return ((predictions - Y) ** 2).reshape(UPDATES, 2).mean(axis=1)


def test_progress_prints_a_line_for_each_update_but_the_first():
    stream, pace = io.StringIO(), Pace(0.02)
    losses = fit(
        pace, Progress(tokens=lambda: pace.tokens, max_steps=UPDATES, seconds=1e-9, stream=stream)
    )
    lines = [LINE.fullmatch(line) for line in stream.getvalue().splitlines()]
    assert all(lines)
    assert [int(line["step"]) for line in lines] == [2, 3, 4, 5, 6]
    # The first line covers two updates, and each later line covers one.
    expected = [losses[:2].mean(), *losses[2:]]
    np.testing.assert_allclose([float(line["loss"]) for line in lines], expected, atol=2e-3)
    for line in lines:
        # 10 tokens in at least 0.02 s are at most 500 tokens per second.
        assert 0 < float(line["tokens"].replace(",", "")) <= 500
        assert float(line["rate"]) == 0
    assert float(lines[-1]["left"]) == 0


def test_progress_loss_is_right_when_batches_differ_in_size():
    stream = io.StringIO()
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.0), "mse")
    progress = Progress(seconds=1e-9, stream=stream)
    model.fit(Batches(1, 5, 2, 4), shuffle=False, verbose=0, callbacks=[progress])
    squares = ((model.predict(X, verbose=0) - Y) ** 2)[:, 0]
    lines = [LINE.fullmatch(line) for line in stream.getvalue().splitlines()]
    expected = [squares[:6].mean(), squares[6:8].mean(), squares[8:12].mean()]
    np.testing.assert_allclose([float(line["loss"]) for line in lines], expected, atol=2e-3)


def test_progress_loss_restarts_with_each_epoch():
    stream = io.StringIO()
    losses = fit(Progress(seconds=1e-9, stream=stream), epochs=2)
    lines = [LINE.fullmatch(line) for line in stream.getvalue().splitlines()]
    expected = [losses[:2].mean(), *losses[2:], *losses]
    np.testing.assert_allclose([float(line["loss"]) for line in lines], expected, atol=2e-3)


def test_progress_prints_the_learning_rate_of_a_schedule():
    stream = io.StringIO()
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay([3], [0.5, 0.25])
    model.compile(keras.optimizers.SGD(schedule), "mse")
    model.fit(X, Y, batch_size=2, verbose=0, callbacks=[Progress(seconds=1e-9, stream=stream)])
    rates = [LINE.match(line)["rate"] for line in stream.getvalue().splitlines()]
    assert rates[0] == "5.00e-01"
    assert rates[-1] == "2.50e-01"


def test_progress_report_has_the_same_numbers_as_the_printed_lines():
    stream, reports, pace = io.StringIO(), [], Pace()
    fit(
        pace,
        Progress(tokens=lambda: pace.tokens, seconds=1e-9, stream=stream, report=reports.append),
    )
    assert [report["step"] for report in reports] == [2, 3, 4, 5, 6]
    for report, line in zip(reports, stream.getvalue().splitlines(), strict=True):
        shown = LINE.fullmatch(line)
        assert float(shown["loss"]) == pytest.approx(report["loss"], abs=1e-3)
        assert report["learning_rate"] == 0
        assert report["target_tokens_per_second"] > 0
        assert report["minutes"] > 0


def test_progress_prints_nothing_before_its_interval_has_passed():
    stream = io.StringIO()
    fit(Progress(seconds=3600, stream=stream))
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("limits", "longest"),
    [({"max_minutes": 2.0}, 2.0), ({"max_minutes": 2.0, "max_steps": UPDATES}, 0.5)],
)
def test_progress_time_left_follows_the_nearer_limit(limits, longest):
    reports = []
    stream = io.StringIO()
    fit(Progress(seconds=1e-9, stream=stream, report=reports.append, **limits))
    left = [float(LINE.fullmatch(line)["left"]) for line in stream.getvalue().splitlines()]
    assert all(0 <= minutes <= longest for minutes in left)
    if "max_steps" not in limits:
        assert min(left) > 1


def test_progress_rewrites_one_line_on_a_terminal_and_ends_it_with_a_newline():
    stream = Terminal()
    fit(Progress(seconds=1e-9, stream=stream))
    text = stream.getvalue()
    assert text.count("\n") == 1 and text.endswith("\n")
    shown = text[:-1].split("\r\x1b[K")[1:]
    assert shown[0] == "compiling the training step ..."
    assert [int(LINE.fullmatch(line)["step"]) for line in shown[1:]] == [2, 3, 4, 5, 6]


def test_progress_restart_clock_excludes_a_pause_from_the_token_rate():
    reports, pace = [], Pace(0.01)
    progress = Progress(
        tokens=lambda: pace.tokens, seconds=1e-9, stream=io.StringIO(), report=reports.append
    )

    class Pause(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            if batch == 3:
                time.sleep(1.0)
                progress.restart_clock()

    fit(pace, progress, Pause())
    (after,) = (report for report in reports if report["step"] == 5)
    # With the pause included, 10 tokens per update would give less than 10 tokens per second.
    assert after["target_tokens_per_second"] > 12


def test_progress_prints_to_standard_error_by_default(capsys):
    fit(Progress(seconds=1e-9))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.splitlines()) == UPDATES - 1


def test_progress_counts_updates_from_initial_step():
    stream = io.StringIO()
    fit(Progress(seconds=1e-9, stream=stream, initial_step=1000, max_steps=1006))
    lines = [LINE.fullmatch(line) for line in stream.getvalue().splitlines()]
    assert [line["step"] for line in lines] == ["1,002", "1,003", "1,004", "1,005", "1,006"]
    assert float(lines[-1]["left"]) == 0


def test_progress_is_one_line_in_a_notebook():
    stream = Notebook()
    fit(Pace(0.02), Progress(max_steps=UPDATES, seconds=1e-9, stream=stream))
    shown = stream.getvalue()
    assert shown.count("\n") == 1 and "\x1b" not in shown
    lines = shown.rstrip("\n").split("\r")[1:]
    # A shorter line covers the longer one before it.
    assert all(len(new) >= len(old.rstrip()) for old, new in zip(lines, lines[1:], strict=False))
    assert LINE.fullmatch(lines[-1].rstrip())
