"""Beam search trees, and the HTML pages of beam search and attention in a real browser."""

import json
import math
import re

import numpy as np
import pytest
from keras import ops
from web_page import HOSTILE, browser, find, page_errors  # noqa: F401

from keras_seq.analysis.beam_tree import BeamView
from keras_seq.analysis.pages import make_page
from keras_seq.inference.translator import Translator
from keras_seq.models import RecurrentSeq2Seq, Transformer
from keras_seq.settings import SettingsError, load_settings
from keras_seq.text import BOS_ID, EOS_ID, Tokenizer

LINE = "a dog sees a cat"


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train([LINE, "two dogs run far away"] * 9, size=300)


def search_settings(**search):
    options = {"beam_size": 3, "n_best": 2, "max_length": 7, **search}
    return load_settings(
        overrides={f"search.{key}": value for key, value in options.items()}
    ).search


MODELS = {
    "transformer": lambda size: Transformer(
        size, size, 1, 1, units=8, feedforward_units=8, num_heads=2, seed=4
    ),
    "recurrent": lambda size: RecurrentSeq2Seq(
        size, size, embedding_units=8, encoder_units=8, decoder_units=8, attention_units=8, seed=4
    ),
}


@pytest.fixture(scope="module", params=MODELS)
def made(request, tokenizer):
    """A model, its beam search tree, and the results of a search that records no tree."""
    model = MODELS[request.param](tokenizer.vocabulary_size)
    search = search_settings()
    tree = BeamView(Translator(model, tokenizer, tokenizer, search))(LINE)
    return model, tree, Translator(model, tokenizer, tokenizer, search).translate([LINE])[0]


def way(steps, step, place):
    """Returns the candidates on the path from the first step to the given candidate."""
    found = []
    while place is not None:
        found.append(steps[step][place])
        place, step = found[-1]["parent"], step - 1
    return found[::-1]


@pytest.mark.slow
def test_beam_tree_contains_the_found_hypotheses(made):
    _, tree, found = made
    assert len(tree["results"]) == len(found) == 2
    for result, one in zip(tree["results"], found, strict=True):
        assert (result["text"], result["truncated"]) == (one.text, one.truncated)
        assert result["score"] == pytest.approx(one.score, abs=1e-4)
        path = [tree["steps"][step][place] for step, place in enumerate(result["path"])]
        assert path == way(tree["steps"], len(path) - 1, result["path"][-1])
        ids = [candidate["id"] for candidate in path]
        assert ids == [*one.tokens, *([EOS_ID] if one.ended else [])]
        assert path[-1].get("score", result["score"]) == pytest.approx(one.score, abs=1e-4)


def test_beam_tree_scores_equal_forced_decoding(made, tokenizer):
    """The teacher-forced model gives the same scores for all nodes, kept or dropped."""
    model, tree, _ = made
    ways = [
        way(tree["steps"], step, place)
        for step, candidates in enumerate(tree["steps"])
        for place in range(len(candidates))
    ]
    assert len({tuple(one["id"] for one in nodes) for nodes in ways}) == len(ways)
    (source,) = tokenizer.encode([LINE])
    target = np.zeros((len(ways), len(tree["steps"])), "int32")
    for row, nodes in enumerate(ways):
        target[row, : len(nodes)] = [BOS_ID, *(one["id"] for one in nodes[:-1])]
    sources = np.tile(np.array([*source, EOS_ID], "int32"), (len(ways), 1))
    logits = np.float64(ops.convert_to_numpy(model({"source": sources, "target": target})))
    known = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    for nodes, of_way in zip(ways, known, strict=True):
        log_probabilities = [of_way[step, one["id"]] for step, one in enumerate(nodes)]
        for node, value in zip(nodes, log_probabilities, strict=True):
            assert node["log_probability"] == pytest.approx(value, abs=1e-3)
        assert nodes[-1]["total"] == pytest.approx(math.fsum(log_probabilities), abs=1e-3)
        if nodes[-1]["state"] == "ended":
            average = math.fsum(log_probabilities) / len(nodes)
            assert nodes[-1]["score"] == pytest.approx(average, abs=1e-3)


def test_beam_tree_steps_hold_sorted_continuations_of_live_hypotheses(made):
    _, tree, _ = made
    for step, candidates in enumerate(tree["steps"]):
        totals = [one["total"] for one in candidates]
        assert totals == sorted(totals, reverse=True) and len(candidates) <= 3
        for one in candidates:
            assert (one["parent"] is None) == (step == 0)
            if step:
                assert tree["steps"][step - 1][one["parent"]]["state"] == "live"


def that_likes_to_end(tokenizer):
    """A model that gives the end token about half of the probability at each step."""
    model = MODELS["recurrent"](tokenizer.vocabulary_size)
    (bias,) = (w for w in model.weights if w.shape == (tokenizer.vocabulary_size,))
    values = np.zeros(tokenizer.vocabulary_size, "float32")
    values[EOS_ID] = math.log(tokenizer.vocabulary_size)
    bias.assign(values)
    return model


@pytest.mark.slow
def test_beam_tree_with_patience_shows_who_replaces_finished_hypotheses(tokenizer):
    search = search_settings(beam_size=3, n_best=3, patience=2.0)
    tree = BeamView(Translator(that_likes_to_end(tokenizer), tokenizer, tokenizer, search))(LINE)
    *steps, last = tree["steps"]
    ended = 0
    for step, candidates in enumerate(steps):
        states = [one["state"] for one in candidates]
        ended += states.count("ended")
        # The first 3 finished hypotheses are replaced; each later one keeps its beam slot.
        assert states.count("live") == 3 - max(ended - 3, 0)
        # A candidate below the beam is recorded only if it replaces a finished hypothesis.
        assert len(states) <= 3 or states[-1] == "live"
        for one in candidates if step else ():
            assert tree["steps"][step - 1][one["parent"]]["state"] == "live"
    assert any(len(candidates) > 3 for candidates in steps)
    assert ended + [one["state"] for one in last].count("ended") == 6
    for result in tree["results"]:
        place = tree["steps"][len(result["path"]) - 1][result["path"][-1]]
        assert place["score"] == pytest.approx(result["score"], abs=1e-4)


def test_early_finished_hypotheses_prune_others_from_the_beam_tree(tokenizer):
    """Each finished hypothesis keeps its beam slot, which leaves fewer slots for live ones."""
    model = that_likes_to_end(tokenizer)
    search = search_settings(beam_size=4, n_best=4, length_normalization="none")
    tree = BeamView(Translator(model, tokenizer, tokenizer, search))(LINE)
    states = [one["state"] for candidates in tree["steps"] for one in candidates]
    assert states.count("ended") == 4
    assert "pruned" in states
    assert len(tree["results"]) == 4
    for result in tree["results"]:
        last = tree["steps"][len(result["path"]) - 1][result["path"][-1]]
        assert last["score"] == last["total"] == pytest.approx(result["score"], abs=1e-4)


def test_beam_view_rejects_sampling_and_blank_lines(tokenizer):
    model = MODELS["recurrent"](tokenizer.vocabulary_size)
    with pytest.raises(SettingsError, match="sampling has no beam"):
        BeamView(Translator(model, tokenizer, tokenizer, search_settings(method="sampling")))
    with pytest.raises(ValueError, match="blank"):
        BeamView(Translator(model, tokenizer, tokenizer, search_settings()))(" ")


# ---------------------------------------------------------------- in a browser


def beam_data(tree, **more):
    hostile = json.loads(json.dumps(tree))
    hostile["source"] = HOSTILE
    hostile["results"][0]["text"] = HOSTILE
    hostile["steps"][0][0]["token"] = HOSTILE
    return {
        "run": HOSTILE, "beam_size": 3, "normalization": "average", "alpha": 1.0,
        "coverage": False, "left": 2,
        "lines": [{"number": 1, **hostile}, {"number": 4, **tree}], **more,
    }  # fmt: skip


@pytest.mark.process
def test_beam_page_shows_the_tree_in_a_browser(made, browser, tmp_path):  # noqa: F811
    _, tree, _ = made
    page = tmp_path / "beam.html"
    page.write_text(make_page("beam", beam_data(tree)), encoding="utf-8")
    assert not re.search(r"https?:|@import|url\(|src=", make_page("beam", None).replace(
        "http://www.w3.org/2000/svg", ""))  # fmt: skip
    browser.get(page.as_uri())
    assert browser.title == f"Beam of {HOSTILE}"
    assert "2 more lines are not shown" in find(browser, "#what")[0].text
    steps = tree["steps"]
    assert len(find(browser, "#tree [role=img]")) == sum(map(len, steps))
    assert len(find(browser, "#tree path")) == sum(map(len, steps))
    assert HOSTILE in find(browser, "#found tbody tr")[0].text

    # Select the second line, whose numbers are checked below.
    browser.execute_script(
        "const line = document.querySelector('#line'); line.value = 1;"
        "line.dispatchEvent(new Event('change'))"
    )
    result = tree["results"][0]
    rows = find(browser, "#found tbody tr")
    assert (
        rows[0]
        .text.split("\n")[0]
        .endswith(result["text"] + (" (cut at the maximum length)" if result["truncated"] else ""))
    )
    last = len(result["path"]) - 1
    cards = browser.execute_script(
        "return nodes.map((step) => step.map((node) => node.card.textContent))"
    )
    node = steps[last][result["path"][last]]
    shown = re.search(r"([\d.e-]+) % ", cards[last][result["path"][last]].replace("\u2009", " "))
    # The page rounds to a whole percent, and small values to one digit.
    assert float(shown[1]) == pytest.approx(
        100 * math.exp(node["log_probability"]), rel=0.5, abs=0.05 if float(shown[1]) >= 0.1 else 0
    )

    # Focusing a hypothesis highlights its path and shows its total and score.
    browser.execute_script(
        f"nodes[{last}][{result['path'][last]}].card.dispatchEvent(new Event('focus'))"
    )
    assert len(find(browser, "#tree .node.on")) == len(result["path"])
    told = find(browser, "#told")[0].text
    assert f"{node['total']:.4f}".replace("-", "\u2212") in told
    assert ("score" in told) == (node["state"] == "ended")

    # The slider limits the tree to the first steps.
    browser.execute_script(
        "const step = document.querySelector('#step'); step.value = 1;"
        "step.dispatchEvent(new Event('input'))"
    )
    shown = [card for card in find(browser, "#tree [role=img]") if card.is_displayed()]
    assert len(shown) == len(steps[0])
    assert page_errors(browser) == []


@pytest.mark.process
def test_beam_page_is_drawn_within_a_notebook(made, browser, tmp_path):  # noqa: F811
    """A notebook puts the page into its own document."""
    _, tree, _ = made
    notebook = tmp_path / "notebook.html"
    cell = make_page("beam", beam_data(tree))._repr_html_()
    notebook.write_text(f"<!DOCTYPE html><title>mine</title><p>cell</p>{cell}", encoding="utf-8")
    browser.get(notebook.as_uri())
    browser.switch_to.frame(find(browser, "iframe")[0])
    nodes = sum(map(len, tree["steps"]))
    assert len(find(browser, "#tree [role=img]")) == nodes
    browser.switch_to.default_content()
    assert browser.title == "mine"
    assert page_errors(browser) == []


@pytest.mark.process
def test_attention_page_shows_the_weights_in_a_browser(browser, tmp_path):  # noqa: F811
    """Each cell's shade and tooltip match its weight; the default is the mean of the heads."""
    weights = [[[[900, 100], [0, 1000]], [[500, 500], [200, 800]]]]
    lines = [
        {"number": 1, "source": HOSTILE, "text": HOSTILE, "source_tokens": [HOSTILE, "</s>"],
         "tokens": ["\u2581x", "</s>"],
         "weights": [[sum(head, []) for head in layer] for layer in weights]},
        {"number": 7, "source": "s", "text": "t", "source_tokens": ["s", "</s>"],
         "tokens": ["t"], "weights": [[[250, 750], [750, 250]]]},
    ]  # fmt: skip
    data = {"run": "r", "layers": 1, "heads": 2, "layer": 0, "head": None, "left": 0}
    page = tmp_path / "attention.html"
    page.write_text(make_page("attention", {**data, "lines": lines}), encoding="utf-8")
    browser.get(page.as_uri())

    def shades():
        return [float(cell.get_attribute("fill-opacity")) for cell in find(browser, ".cell")]

    def choose(name, value):
        browser.execute_script(
            f"const one = document.querySelector('#{name}'); one.value = '{value}';"
            "one.dispatchEvent(new Event('change'))"
        )

    def shade(*values):
        return pytest.approx([0.03 + 0.97 * value for value in values], abs=1e-3)

    assert shades() == shade(0.7, 0.3, 0.1, 0.9)
    assert f"Source: {HOSTILE}" in find(browser, "#texts")[0].text
    choose("head", 0)
    assert shades() == shade(0.9, 0.1, 0, 1)
    browser.execute_script("document.querySelector('.cell').dispatchEvent(new Event('mouseenter'))")
    assert find(browser, "#told")[0].text == f"\u2581x attends to {HOSTILE}: 0.900"
    # The page offers thumbnails of the mean and of both heads.
    small = find(browser, "#heads button")
    assert [one.get_attribute("aria-label") for one in small] == [
        "layer 0, mean of the heads", "layer 0, head 0", "layer 0, head 1",
    ]  # fmt: skip
    small[2].click()
    assert shades() == shade(0.5, 0.5, 0.2, 0.8)
    choose("line", 1)
    assert shades() == shade(0.75, 0.25)
    find(browser, "#numbers")[0].click()
    assert [one.text for one in find(browser, ".value")] == [".75", ".25"]
    assert browser.title == "Attention of r"
    assert page_errors(browser) == []
