"""The demo page in a real browser translates text and never interprets it as markup."""

# Ruff reports an argument with the name of an imported fixture as a redefinition.
# ruff: noqa: F811

import re
import time

import numpy as np
import pytest
import tensorflow as tf
from http_serving import save_text_model, serving
from serving.test_http_sounds import save_sound_model
from sound_files import write_wave
from web_page import HOSTILE, browser, find  # noqa: F401

from keras_seq.serving.http.page import PAGE_HEADERS, page

pytestmark = pytest.mark.process


def test_model_name_is_escaped_in_the_page():
    made = page('"><script>1</script>')
    assert "<script>1" not in made and "&quot;&gt;&lt;script&gt;1" in made
    assert made.count("<script>") == 1


def test_page_refers_to_no_external_resources():
    made = page("ende")
    assert not re.search(r"https?:|@import|url\(|src=", made)
    assert re.findall(r'href="([^"]*)"', made) == ["data:,"]
    policy = PAGE_HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    base = tmp_path_factory.mktemp("base") / "ende"
    base.mkdir()
    save_text_model(base, 3, "→ ")
    with serving(base) as served:
        yield served


def wait(look, seconds=30):
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, "the page did not come to it"
        time.sleep(0.05)
    return found


def translated(browser, text, keys=None):
    """Enters and sends a text; returns the result cards on the page."""
    (field,) = find(browser, "#text")
    field.clear()
    field.send_keys(text)
    browser.execute_script("document.querySelector('#results').replaceChildren()")
    if keys:
        field.send_keys(*keys)
    else:
        find(browser, "#send")[0].click()
    return wait(lambda: find(browser, "article"))


def scheme(browser, value):
    feature = {"name": "prefers-color-scheme", "value": value}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})


def screenshot(browser):
    """Returns a screenshot of the window as an array (height, width, 3)."""
    return np.asarray(tf.io.decode_png(browser.get_screenshot_as_png(), channels=3)).astype(int)


def region(image, element):
    """Crops a screenshot to an element."""
    place = element.rect
    top, left = int(place["y"]), int(place["x"])
    return image[top : top + int(place["height"]), left : left + int(place["width"])]


def test_page_shows_the_same_translations_as_the_api(browser, served):
    from selenium.webdriver.common.keys import Keys

    browser.get(served.url)
    assert browser.title == "ende"
    wait(lambda: find(browser, "#version")[0].text == "version 3")
    for keys in ((Keys.CONTROL, Keys.ENTER), None):
        (card,) = translated(browser, "A dog runs.", keys)
        (expected,) = served.predict(["A dog runs."], "n_best")
        assert card.find_element("css selector", ".best").text == expected["translation"][0]
        rows = [
            [cell.text for cell in row.find_elements("css selector", "td")]
            for row in card.find_elements("css selector", "tbody tr")
        ]
        # The third result is only filler (score -1e30), so the page does not show it.
        assert rows == [
            [str(place + 1), expected["translation"][place], f"{expected['score'][place]:.4f}"]
            for place in range(2)
        ]
        assert re.fullmatch(r"\d+ ms", find(browser, "#status")[0].text)
    (best,) = served.predict(["A dog runs."])
    assert best["translation"] == expected["translation"][0]


def test_page_translates_each_line_separately(browser, served):
    browser.get(served.url)
    cards = translated(browser, "one\n\n  two\nthree")
    texts = [card.find_element("css selector", ".best").text for card in cards]
    assert texts == ["→ ONE", "→ TWO", "→ THREE"]
    sources = [card.find_element("css selector", ".source").text for card in cards]
    assert sources == ["one", "two", "three"]


def test_markup_in_a_text_is_inert(browser, served):
    browser.get(served.url)
    (card,) = translated(browser, HOSTILE)
    assert card.find_element("css selector", ".source").text == HOSTILE
    assert card.find_element("css selector", ".best").text == f"→ {HOSTILE.upper()}"
    time.sleep(0.3)
    assert browser.title == "ende"
    assert find(browser, "#results img, #results script") == []


def test_page_is_readable_in_light_and_dark_mode(browser, served):
    grounds = []
    for value in ("light", "dark"):
        scheme(browser, value)
        browser.get(served.url)
        (card,) = translated(browser, "A dog runs.")
        image = screenshot(browser)
        assert image.shape[0] > 500 and image.shape[1] > 900
        grounds.append(image[-5, 5].mean())
        assert len(np.unique(image.reshape(-1, 3), axis=0)) > 50
        for selector in ("h1", "textarea", "#send", ".best", "table"):
            shown = region(image, find(browser, selector)[0])
            # Text contrasts strongly with its background and covers only part of it.
            light = shown.mean(axis=2)
            minimum = 30 if selector == "textarea" else 120
            assert light.max() - light.min() > minimum, (value, selector)
            assert 0.002 < (abs(light - np.median(light)) > 40).mean() < 0.6, (value, selector)
    scheme(browser, "")
    assert grounds[0] > 200 and grounds[1] < 60


def test_page_works_by_keyboard_screen_reader_and_on_a_phone(browser, served):
    from selenium.webdriver.common.keys import Keys

    browser.get(served.url)
    (field,), (send,) = find(browser, "#text"), find(browser, "#send")
    assert browser.switch_to.active_element == field
    assert field.accessible_name == "Text, one sentence per line"
    assert (send.aria_role, send.accessible_name) == ("button", "Translate")
    assert find(browser, "#status")[0].aria_role == "status"
    assert find(browser, "html")[0].get_attribute("lang") == "en"
    field.send_keys("by keys", Keys.TAB)
    assert browser.switch_to.active_element == send
    send.send_keys(Keys.ENTER)
    (card,) = wait(lambda: find(browser, "article"))
    assert card.find_element("css selector", "th").get_attribute("scope") == "col"
    # On a phone screen, nothing is wider than the window.
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True},
    )
    translated(browser, "word" * 100)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= 360
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_page_sends_files_to_a_model_of_recordings(browser, tmp_path):
    base = tmp_path / "words"
    base.mkdir()
    save_sound_model(base)
    paths = [
        write_wave(tmp_path / f"{samples}.wav", np.full((samples, 1), 2**13))
        for samples in (900, 1600)
    ]
    with serving(base) as served:
        browser.get(served.url)
        (files,) = wait(lambda: [one for one in find(browser, "#files") if one.is_displayed()])
        (send,) = find(browser, "#send")
        assert not find(browser, "#text")[0].is_displayed()
        assert files.accessible_name == "Recordings: WAV, FLAC, OGG or MP3 files"
        assert send.accessible_name == "Send"
        files.send_keys("\n".join(map(str, paths)))
        send.click()
        cards = wait(lambda: find(browser, "article"))
        # The model answers with the number of samples.
        texts = [card.find_element("css selector", ".best").text for card in cards]
        assert texts == ["900", "1600"]
        sources = [card.find_element("css selector", ".source").text for card in cards]
        assert sources == ["900.wav", "1600.wav"]


def test_page_causes_no_browser_warnings_or_external_requests(browser, served):
    browser.get_log("browser")
    browser.get(served.url)
    translated(browser, "A dog runs.")
    assert [entry for entry in browser.get_log("browser") if entry["level"] != "INFO"] == []
    names = browser.execute_script(
        "return performance.getEntriesByType('resource').map((entry) => entry.name)"
    )
    assert len(names) >= 2 and all(name.startswith(f"{served.url}/v1/") for name in names)


def test_page_reports_request_errors_and_an_unreachable_server(browser, served):
    browser.get(served.url)
    translated(browser, "first")
    (field,), (status,) = find(browser, "#text"), find(browser, "#status")
    browser.execute_script("arguments[0].value = 'a\\n'.repeat(300)", field)
    find(browser, "#send")[0].click()
    wait(lambda: "300 rows in one request" in status.text)
    assert status.get_attribute("class") == "wrong"
    # This must be the last test because it stops the server.
    assert served.stop() == 0
    field.clear()
    field.send_keys("anybody?")
    find(browser, "#send")[0].click()
    wait(lambda: status.text == "The server does not answer.")
    assert find(browser, "#send")[0].is_enabled()
