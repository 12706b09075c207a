"""The map of word vectors keeps clusters together, and its page works in a browser."""

import numpy as np
import pytest
from web_page import HOSTILE, browser, find, page_errors  # noqa: F401

from keras_seq.analysis.pages import make_page
from keras_seq.vectors import WordVectors, vector_map
from keras_seq.vectors.mapping import map_page


@pytest.fixture(scope="module")
def clustered():
    """Vectors in three clusters; one of the words is markup."""
    chance = np.random.default_rng(0)
    centres = np.eye(3, 6) * 5
    words = [f"{name}{number}" for name in "abc" for number in range(12)]
    words[1] = HOSTILE
    rows = np.repeat(centres, 12, axis=0) + 0.1 * chance.normal(size=(36, 6))
    return WordVectors(words, rows, name="folder/v.txt")


@pytest.fixture(scope="module")
def places(clustered):
    return vector_map(clustered, clustered.words, seed=3)


def test_vector_map_keeps_clusters_together(clustered, places):
    assert places.shape == (36, 2) and places.dtype == np.float32
    bundles = places.reshape(3, 12, 2)
    centres = bundles.mean(axis=1)
    within = np.linalg.norm(bundles - centres[:, None], axis=-1).max()
    between = min(np.linalg.norm(centres[i] - centres[j]) for i, j in ((0, 1), (0, 2), (1, 2)))
    assert between > 2 * within
    again = vector_map(clustered, clustered.words, seed=3)
    assert (again == places).all()


def test_plot_command_writes_png_and_html(tmp_path, clustered, keras_seq_command):
    clustered = WordVectors([f"w{n}" for n in range(35)] + ["$x_"], clustered.matrix)
    clustered.save(tmp_path / "v.txt")
    for name, start in (("map.png", b"\x89PNG"), ("map.html", b"<!doctype html>")):
        outcome = keras_seq_command(
            *("vectors", "plot", tmp_path / "v.txt", "-o", tmp_path / name, "--count", 20)
        )
        assert outcome.code == 0, outcome.err
        assert (tmp_path / name).read_bytes().startswith(start)


@pytest.mark.process
def test_map_page_shows_and_searches_words_in_a_browser(tmp_path, clustered, places, browser):  # noqa: F811
    path = tmp_path / "map.html"
    path.write_text(
        make_page("vectors", map_page(clustered, clustered.words, places)), encoding="utf-8"
    )
    assert "http" not in path.read_text("utf-8").replace("http://www.w3.org/2000/svg", "").replace(
        "http-equiv", ""
    )
    browser.get(path.as_uri())
    assert browser.title == "Map of v.txt"
    shown = [one.text for one in find(browser, "#map text")]
    assert shown == clustered.words
    assert find(browser, "h1")[0].text == "Map of v.txt"
    # Words appear where the map has them, up to a common scale and the direction of y.
    circles = find(browser, "#map circle")
    found = np.array([[float(one.get_attribute(name)) for name in ("cx", "cy")] for one in circles])
    scale = np.ptp(found, axis=0) / np.ptp(places, axis=0)
    assert scale[0] == pytest.approx(scale[1], rel=1e-3)
    np.testing.assert_allclose(
        found[:, 1].max() - found[:, 1], (places[:, 1] - places[:, 1].min()) * scale[1], atol=0.1
    )
    # A focused word shows its neighbors.
    browser.execute_script("document.querySelectorAll('#map g')[14].focus()")
    told = find(browser, "#told")[0].text
    assert told.startswith("b2: ")
    nearest = [word for word, _ in clustered.nearest("b2", 8)]
    assert [part.split(" ")[0] for part in told.removeprefix("b2: ").split(", ")] == nearest
    assert len(find(browser, "#map .near")) == 8
    find(browser, "#find")[0].send_keys("C1")
    assert [one.text for one in find(browser, "#map .found text")] == ["c1", "c10", "c11"]
    before = find(browser, "#map")[0].get_dom_attribute("viewBox")
    find(browser, "#closer")[0].click()
    assert float(find(browser, "#map")[0].get_dom_attribute("viewBox").split()[2]) == 500
    find(browser, "#whole")[0].click()
    assert find(browser, "#map")[0].get_dom_attribute("viewBox") == before
    assert page_errors(browser) == []
