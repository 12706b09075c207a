"""The diagnosis page in a real browser, opened from disk: sorted, filtered, and only text."""

# Ruff reports each argument named like an imported fixture as a redefinition.
# ruff: noqa: F811

import json
import re

import pytest
from web_page import browser, find  # noqa: F401

from keras_seq.analysis.pages import make_page

HOSTILE = (
    "</script><img src=x onerror=\"document.title='owned'\"><script>document.title='owned'"
    "</script><!--<script> \u2028 \\u003c ${1} `"
)
VERDICTS = ["model error", "search error", "tie", None]


def target(text, objective, tokens, beam=None, verdict=None, **signs):
    found = {"text": text, "objective": objective, "tokens": tokens}
    found |= {"copies": False, "repeats": False, "empty": not text} | signs
    if beam is not None:
        found |= {"beam": beam, "chrf": 10.0 * tokens, "truncated": False, "verdict": verdict}
    return found


def line(number, verdict, gap, source, reference, output, wider=None):
    objective = -0.1 * number
    return {
        "number": number,
        "verdict": verdict,
        "margin": -gap,
        "same": verdict == "tie",
        "wider_is_better": wider is not None,
        "source_truncated": False,
        "out_of_reach": "longer than the limit" if number == 2 else None,
        "source": source,
        "reference": target(reference, objective - gap, 4),
        "outputs": [
            target(output, objective, 3 + number % 5, 5, verdict, repeats=number == 3),
            target(wider or output, objective, 4, 10, verdict),
        ],
    }


def diagnosis(count=500):
    """Lines that alternate between four verdicts; the first has hostile text in every field."""
    lines = [line(1, "model error", 0.5, HOSTILE, HOSTILE + " x", HOSTILE, wider=HOSTILE)]
    for i in range(2, count + 1):
        verdict = VERDICTS[i % 4]
        gap = {"model error": 1, "search error": -1, "tie": 0, None: 0}[verdict] * i / count
        lines.append(line(i, verdict, gap, f"source {i % 7}", f"a b{i} c", f"a c d{i}"))

    def counted(verdict):
        return sum(one["verdict"] == verdict for one in lines)

    verdicts = {
        "search_errors": counted("search error"),
        "model_errors": counted("model error"),
        "ties": counted("tie"),
    }
    summary = {
        "bleu": {"value": 31.234, "signature": "nrefs:1|test"},
        "objective": -0.5,
        "length_ratio": 0.987,
        "copies": 0,
        "repetitions": 1,
        "empty": 0,
    }
    return {
        "run": HOSTILE,
        "checkpoint": "best",
        "search": {"length_normalization": "average", "alpha": 0.6},
        "totals": {
            "lines": count, **verdicts, "not_judged": counted(None), "same": 3, "out_of_reach": 1,
            "wider_is_better": 1, "truncated_sources": 0,
        },
        "beams": [{"beam": beam, **summary, "truncated": 0, **verdicts} for beam in (5, 10)],
        "references": {name: value for name, value in summary.items() if name != "bleu"},
        "oracle_bleu": {"value": 33.0, "signature": "nrefs:1|test"},
        "lines": lines,
    }  # fmt: skip


def test_page_data_is_not_markup_and_the_policy_allows_only_its_script():
    made = make_page("diagnosis", diagnosis(3))
    assert made.count("<script>") == made.count("</script>") == 1
    assert "<img" not in made and "<!--" not in made and "\u2028" not in made
    (policy,) = re.findall(r'content="(default-src[^"]*)"', made)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy and "{" not in policy
    # A namespace URL is not a link.
    others = made.replace("src=x", "").replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"https?:|@import|url\(|src=[\"']", others)
    with pytest.raises(ValueError, match="not JSON compliant"):
        make_page("diagnosis", {"objective": float("nan")})


def test_lone_surrogate_in_page_data_is_replaced():
    made = make_page("diagnosis", {"run": "a\ud800b"})
    assert '"run": "a?b"' in made
    assert made.encode("utf-8")


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "diagnosis.html"
    path.write_text(make_page("diagnosis", diagnosis()), encoding="utf-8")
    return path


@pytest.fixture
def page(browser, written):
    browser.get_log("browser")
    browser.get(written.as_uri())
    return browser


def cells(page, column):
    """The texts of a table column, read with a single call because the table is long."""
    return page.execute_script(
        "return [...document.querySelectorAll('#lines tr.row')].map("
        "(row) => row.cells[arguments[0]].textContent)",
        column,
    )


def heads(page):
    return [head.text.rstrip(" \u25b2\u25bc") for head in find(page, "#lines th")]


@pytest.mark.process
def test_hostile_text_is_shown_as_plain_text(page):
    assert page.title.split() == f"Diagnosis of {HOSTILE}".split()
    assert find(page, "img") == []
    find(page, "#words")[0].send_keys("owned")
    (row,) = find(page, "#lines tr.row")
    row.click()
    (detail,) = find(page, "#lines tr.detail")
    shown = page.execute_script(
        "return [...arguments[0].querySelectorAll('dd.words')].map((one) => one.textContent)",
        detail,
    )
    assert shown == [HOSTILE, f"{HOSTILE} x", HOSTILE, HOSTILE]
    assert find(page, "img") == [] and "owned'" in page.title
    assert len(find(page, "script")) == 1


@pytest.mark.process
def test_page_makes_no_network_requests_and_logs_no_errors(page):
    assert [one for one in page.get_log("browser") if one["level"] != "INFO"] == []
    names = page.execute_script("return performance.getEntriesByType('resource').length")
    assert names == 0
    # The policy holds: only the page's own script runs.
    page.execute_script(
        "const one = document.createElement('script');"
        "one.textContent = 'document.title = \"owned\"'; document.body.append(one)"
    )
    assert page.title != "owned"
    assert "Content Security Policy" in page.get_log("browser")[0]["message"]


@pytest.mark.process
def test_page_shows_the_totals_and_a_histogram(page):
    totals = diagnosis()["totals"]
    shown = [card.text for card in find(page, ".card")]
    for name, kind in (("search errors", "search_errors"), ("model errors", "model_errors")):
        assert any(text.startswith(f"{totals[kind]}\n{name}") for text in shown)
    assert any("31.23" in text and "33.00" in text for text in shown)
    rows = [row.text for row in find(page, "#beams tbody tr")]
    assert [row.split()[0] for row in rows] == ["5", "10", "reference"]
    assert "nrefs:1|test" in find(page, "#signature")[0].text
    # Every judged line is in the histogram.
    titles = [one.get_attribute("title") for one in find(page, "#plot div")]
    counted = sum(int(n) for title in titles for n in re.findall(r": (\d+)$", title, re.MULTILINE))
    assert counted == totals["lines"] - totals["not_judged"]


@pytest.mark.process
def test_every_column_sorts_both_ways(page):
    lines = diagnosis()["lines"]
    order = ["search error", "model error", "tie", None]
    signs = {1: "wider is better", 2: "reference out of reach", 3: "repetition"}
    keys = {
        "line": lambda one: one["number"],
        "verdict": lambda one: order.index(one["verdict"]),
        "output \u2212 reference": lambda one: -one["margin"],
        "output": lambda one: one["outputs"][0]["objective"],
        "reference": lambda one: one["reference"]["objective"],
        "chrF": lambda one: one["outputs"][0]["chrf"],
        "length": lambda one: one["outputs"][0]["tokens"] / one["reference"]["tokens"],
        "signs": lambda one: signs.get(one["number"], ""),
        "source": None,
        "translation": None,
    }
    assert heads(page) == list(keys)
    # Initially, the lines that a better search would improve most come first.
    first = sorted(lines, key=lambda one: (-one["margin"], one["number"]))
    assert cells(page, 0) == [str(one["number"]) for one in first[:200]]
    for column, (name, key) in enumerate(keys.items()):
        for direction in ("ascending", "descending"):
            find(page, "#lines th button")[column].click()
            if name == heads(page)[2] and direction == "ascending":
                # The page was sorted by this column before the first click.
                direction = "descending"
            head = find(page, "#lines th")[column]
            down = head.get_attribute("aria-sort") == "descending"
            assert find(page, "#lines th[aria-sort]") == [head]
            shown = cells(page, 0)
            if key is None:
                texts = cells(page, column)
                again = page.execute_script(
                    "return arguments[0].slice().sort((a, b) => a.localeCompare(b))", texts
                )
                assert texts == (again[::-1] if down else again)
                continue
            sign = -1 if down else 1

            def in_order(one, key=key, sign=sign):
                value = key(one)
                return (sign * value if not isinstance(value, str) else 0, one["number"])

            if name == "signs":
                values = [signs.get(int(number), "") for number in shown]
                assert values == sorted(values, reverse=down)
            else:
                expected = sorted(lines, key=in_order)
                assert shown == [str(one["number"]) for one in expected[:200]], (name, down)


@pytest.mark.process
def test_filters_select_lines_and_more_shows_further_lines(page):
    from selenium.webdriver.support.ui import Select

    lines, (status,) = diagnosis()["lines"], find(page, "#count")
    assert status.text == "500 of 500 lines"
    for verdict in ("search error", "model error", "tie", "not judged"):
        Select(find(page, "#verdict")[0]).select_by_value(verdict)
        count = sum((one["verdict"] or "not judged") == verdict for one in lines)
        assert status.text == f"{count} of 500 lines"
        assert set(cells(page, 1)) == {verdict}
    Select(find(page, "#verdict")[0]).select_by_value("")
    Select(find(page, "#sign")[0]).select_by_value("reference out of reach")
    assert cells(page, 0) == ["2"]
    find(page, "#lines .open")[0].click()
    assert "The reference is longer than the limit" in find(page, ".detail")[0].text
    Select(find(page, "#sign")[0]).select_by_value("")
    find(page, "#words")[0].send_keys("D499")
    assert cells(page, 0) == ["499"]
    find(page, "#words")[0].clear()
    find(page, "#words")[0].send_keys("o")
    for count in (200, 400, 500):
        assert len(cells(page, 0)) == count
        (more,) = find(page, "#more")
        assert more.is_displayed() == (count < 500)
        if count < 500:
            more.click()


@pytest.mark.process
def test_line_opens_by_keyboard_and_marks_the_differences(page):
    from selenium.webdriver.common.keys import Keys

    find(page, "#words")[0].send_keys("b77")
    (button,) = find(page, "#lines .open")
    assert button.get_attribute("aria-expanded") == "false"
    button.send_keys(Keys.ENTER)
    assert button.get_attribute("aria-expanded") == "true"
    (detail,) = find(page, ".detail")
    # Words shared by "a b77 c" and "a c d77" are not marked.
    marks = [(one.text, one.get_attribute("class")) for one in find(page, ".detail mark")]
    assert marks == [("b77", "missed"), ("d77", ""), ("d77", "")]
    assert "beam 10" in detail.text
    button.send_keys(Keys.ENTER)
    assert find(page, ".detail") == []


@pytest.mark.process
def test_page_fits_a_phone_and_follows_the_color_scheme(page):
    grounds = []
    for scheme in ("light", "dark"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
        style = "return getComputedStyle(document.body).backgroundColor"
        grounds.append(sum(map(int, re.findall(r"\d+", page.execute_script(style)))))
    assert grounds[0] > 600 > 150 > grounds[1]
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    size = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    find(page, "#lines .open")[0].click()
    assert page.execute_script("return document.documentElement.scrollWidth") <= 360
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.process
@pytest.mark.weekly
def test_page_of_a_real_diagnosis_shows_its_verdicts(browser, tmp_path):
    from known_model import SOURCES, KnownModel, known_tokenizer

    from keras_seq.analysis.diagnosis.verdicts import judge
    from keras_seq.inference.likelihood import LikelihoodScorer
    from keras_seq.inference.translator import Translator
    from keras_seq.settings import SearchSettings

    tokenizer = known_tokenizer()
    model, search = KnownModel(tokenizer, SOURCES), SearchSettings(beam_size=1, max_length=4)
    sources, references = ["garden", "fault", "right"], ["b c", "b", "c"]
    found = {1: Translator(model, tokenizer, tokenizer, search).translate(sources)}
    made = judge(
        sources, references, found, LikelihoodScorer(model, tokenizer, tokenizer), search
    ).to_dict()
    path = tmp_path / "page.html"
    path.write_text(make_page("diagnosis", {"run": "ende", "checkpoint": "best"} | made), "utf-8")
    browser.get(path.as_uri())
    assert cells(browser, 1) == ["search error", "tie", "model error"]
    assert cells(browser, 8) == ["garden", "right", "fault"]
    assert json.dumps(made["totals"]["search_errors"]) in find(browser, ".card.search")[0].text
    assert [one for one in browser.get_log("browser") if one["level"] == "SEVERE"] == []
