"""A conditional random field over words, affixes, shapes and two neighbors: KIND WORK SEED."""

import pathlib
import sys
from typing import Any

import peer_files
import sklearn_crfsuite


def shape(word: str) -> str:
    kinds = (
        "X" if char.isupper() else "x" if char.isalpha() else "d" if char.isdigit() else char
        for char in word
    )
    return "".join(kinds)


def features(words: list[str], place: int) -> dict[str, Any]:
    word = words[place]
    found: dict[str, Any] = {
        "bias": 1.0,
        "word": word.lower(),
        "shape": shape(word),
        "title": word.istitle(),
        "upper": word.isupper(),
        "digit": word.isdigit(),
    }
    for length in (1, 2, 3, 4):
        found[f"prefix{length}"] = word[:length].lower()
        found[f"suffix{length}"] = word[-length:].lower()
    for distance in (-2, -1, 1, 2):
        if not 0 <= place + distance < len(words):
            found[f"{distance} edge"] = True
            continue
        neighbor = words[place + distance]
        found[f"{distance} word"] = neighbor.lower()
        found[f"{distance} shape"] = shape(neighbor)
        found[f"{distance} title"] = neighbor.istitle()
    return found


def sentences(rows: list[list[str]]) -> list[list[dict[str, Any]]]:
    texts = [row[0].split() for row in rows]
    return [[features(words, place) for place in range(len(words))] for words in texts]


def main() -> None:
    work = pathlib.Path(sys.argv[2])
    train = peer_files.read(work, "train")
    model = sklearn_crfsuite.CRF(
        algorithm="lbfgs", c1=0.1, c2=0.1, max_iterations=100, all_possible_transitions=True
    )
    model.fit(sentences(train), [row[1].split() for row in train])
    peer_files.write_seconds(work)
    for part in peer_files.PREDICTED:
        answers = model.predict(sentences(peer_files.read(work, part)))
        peer_files.write(work, part, [" ".join(tags) for tags in answers])


main()
