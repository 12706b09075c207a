"""Draws the pictures of the documentation from a run: RUN SENTENCE [FOLDER].

    python docs/make_pictures.py runs/dates "Dienstag, 19. Juli 2033"

`attention.png` shows the attention weights of the translation of SENTENCE, and `history.png` the
losses and the metric of the training.
"""

from __future__ import annotations

import pathlib
import sys

import keras_seq
from keras_seq.analysis.attention_image import save_attention_image
from keras_seq.analysis.explanation import Explainer


def main(run: str, sentence: str, folder: str = "docs/pictures") -> None:
    pictures = pathlib.Path(folder)
    translator = keras_seq.Translator.load(run)
    explain = Explainer(translator.run, translator.model)
    translations = translator.translate([sentence])
    [attention] = explain.best_attention([sentence], translations)
    if attention is None:
        raise SystemExit("SENTENCE has no translation")
    title = f"{sentence}\n{translations[0][0].text}"
    columns, rows = explain.pieces(attention)
    save_attention_image(pictures / "attention.png", title, columns, rows, attention.weights)
    translator.plot_history().savefig(pictures / "history.png", dpi=100)


if __name__ == "__main__":
    main(*sys.argv[1:])
