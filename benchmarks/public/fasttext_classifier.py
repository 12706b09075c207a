"""fastText's classifier: KIND WORK SEED.

The learning rate, the epochs and the length of word n-grams are the best on the validation file.
"""

import itertools
import pathlib
import sys

import fasttext
import peer_files

RATES, EPOCHS, NGRAMS = (0.1, 0.5, 1.0), (5, 25), (1, 2)


def main() -> None:
    _, work, seed = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    train, dev = (peer_files.read(work, part) for part in ("train", "dev"))
    labels = sorted({row[1] for row in train})
    numbers = {f"__label__{number}": label for number, label in enumerate(labels)}
    names = {label: name for name, label in numbers.items()}
    text = "".join(f"{names[row[1]]} {row[0]}\n" for row in train)
    (work / "fasttext.txt").write_text(text, encoding="utf-8")

    def predict(model: fasttext.FastText._FastText, rows: list[list[str]]) -> list[str]:
        return [numbers[answer[0]] for answer in model.predict([row[0] for row in rows])[0]]

    best, most = None, -1
    for rate, epochs, ngrams in itertools.product(RATES, EPOCHS, NGRAMS):
        options = {"lr": rate, "epoch": epochs, "wordNgrams": ngrams, "seed": seed}
        try:
            model = fasttext.train_supervised(
                str(work / "fasttext.txt"), thread=1, verbose=0, **options
            )
        except RuntimeError:
            # A high rate may diverge.
            continue
        pairs = zip(predict(model, dev), dev, strict=True)
        right = sum(answer == row[1] for answer, row in pairs)
        if right > most:
            best, most = model, right
    peer_files.write_seconds(work)
    for part in peer_files.PREDICTED:
        peer_files.write(work, part, predict(best, peer_files.read(work, part)))


main()
