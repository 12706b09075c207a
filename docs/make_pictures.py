"""Draws the pictures of the documentation from a run and lines that it was not trained on.

    python docs/make_pictures.py runs/dates unseen.tsv "Dienstag, 19. Juli 2033" [FOLDER]

`attention.png` and `history.png` are drawn by matplotlib. The others show pages: `report.png`,
`beam.png` and `diagnosis.png` those of the commands of these names, and `serve.png` that of
`keras-seq serve` with one request. They need Chromium with its driver, and selenium.
"""

from __future__ import annotations

import io
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from PIL import Image

import keras_seq
from keras_seq.analysis.attention_image import save_attention_image
from keras_seq.analysis.explanation import Explainer
from keras_seq.text import read_table

WIDTH = 1100
HEIGHTS = {"report": 1330, "beam": 640, "diagnosis": 900, "serve": 760}
COLORS = 64
# Seconds until an answer is on the page.
PATIENCE = 60


def main(run: str, unseen: str, sentence: str, folder: str = "docs/pictures") -> None:
    pictures = pathlib.Path(folder)
    translator = keras_seq.Translator.load(run)
    draw_attention(translator, sentence, pictures / "attention.png")
    translator.plot_history().savefig(pictures / "history.png", dpi=100)
    with tempfile.TemporaryDirectory() as work, opened_browser() as browser:
        pages = pathlib.Path(work)
        sources, references = zip(*read_table(unseen), strict=True)
        keras_seq.report(run, sources, references).save(pages / "report.html")
        translator.show_beam([sentence]).save(pages / "beam.html")
        found = keras_seq.diagnose(run, sources[:100], references[:100], beam_sizes=(1, 5))
        found.page(run=translator.run.path.name, checkpoint="best").save(pages / "diagnosis.html")
        for page in sorted(pages.glob("*.html")):
            browser.get(page.as_uri())
            photograph(browser, page.stem, pictures)
        translator.export(pages / "dates")
        with served(pages / "dates") as address:
            browser.get(address)
            ask(browser, sentence)
            photograph(browser, "serve", pictures)


def draw_attention(translator: Any, sentence: str, path: pathlib.Path) -> None:
    explain = Explainer(translator.run, translator.model)
    translations = translator.translate([sentence])
    [attention] = explain.best_attention([sentence], translations)
    if attention is None:
        raise SystemExit("SENTENCE has no translation")
    title = f"{sentence}\n{translations[0][0].text}"
    columns, rows = explain.pieces(attention)
    save_attention_image(path, title, columns, rows, attention.weights)


@contextmanager
def opened_browser() -> Iterator[Any]:
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("chromium-browser") or ""
    for flag in ("headless", "no-sandbox", "disable-gpu", "hide-scrollbars"):
        options.add_argument(f"--{flag}")
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


def photograph(browser: Any, name: str, pictures: pathlib.Path) -> None:
    browser.set_window_size(WIDTH, HEIGHTS[name])
    picture = Image.open(io.BytesIO(browser.get_screenshot_as_png()))
    # Few colors suffice, and the pictures stay small.
    picture.convert("RGB").quantize(COLORS).save(pictures / f"{name}.png", optimize=True)


@contextmanager
def served(directory: pathlib.Path) -> Iterator[str]:
    """Serves an export on a free port; yields the address."""
    command = [sys.executable, "-m", "keras_seq", "serve", str(directory), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        # The server prints its address once it is ready.
        for line in process.stderr:
            if match := re.search(r"http://\S+", line):
                yield match[0]
                return
        raise SystemExit("keras-seq serve has ended")
    finally:
        process.terminate()
        process.wait()


def ask(browser: Any, text: str) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    browser.find_element("css selector", "#text").send_keys(text)
    browser.find_element("css selector", "#send").click()
    answered = WebDriverWait(browser, PATIENCE)
    answered.until(lambda page: page.find_elements("css selector", "article"))


if __name__ == "__main__":
    main(*sys.argv[1:])
