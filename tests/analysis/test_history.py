"""The course of a training as a figure."""

import io
import sys

import pytest

from keras_seq.analysis.history import History
from keras_seq.text import InputError

HISTORY = History(
    {"step": [10, 20], "loss": [2.0, 1.0]},
    {"step": [10, 20], "loss": [1.5, 1.2], "chrf": [3.0, 4.0]},
    "chrf",
    20,
)


def test_plot_has_the_losses_and_the_metric():
    losses, metric = HISTORY.plot().axes
    assert [list(line.get_ydata()) for line in losses.lines] == [[2.0, 1.0], [1.5, 1.2]]
    assert list(metric.lines[0].get_ydata()) == [3.0, 4.0]
    assert set(metric.lines[1].get_xdata()) == {20}


def test_notebooks_show_the_plot_as_a_picture():
    from matplotlib.image import imread

    picture = imread(io.BytesIO(HISTORY.plot()._repr_png_()), format="png")
    assert picture.shape[1] > picture.shape[0] > 100


def test_plot_without_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match=r"needs matplotlib: .* install 'keras-seq\[plot\]'$"):
        HISTORY.plot()
