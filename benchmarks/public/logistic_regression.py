"""TF-IDF of words and pairs of words with logistic regression: KIND WORK SEED.

The strength of the regularization is the best of five on the validation file.
"""

import pathlib
import sys

import peer_files
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

STRENGTHS = (0.3, 1, 3, 10, 30)


def main() -> None:
    _, work, seed = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3])
    train, dev = (peer_files.read(work, part) for part in ("train", "dev"))
    vectorizer = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, token_pattern=r"\S+")
    vectors = vectorizer.fit_transform(row[0] for row in train)
    held_out = vectorizer.transform(row[0] for row in dev)
    models = [
        LogisticRegression(C=strength, max_iter=1000, random_state=seed).fit(
            vectors, [row[1] for row in train]
        )
        for strength in STRENGTHS
    ]
    best = max(models, key=lambda model: model.score(held_out, [row[1] for row in dev]))
    peer_files.write_seconds(work)
    for part in peer_files.PREDICTED:
        rows = vectorizer.transform(row[0] for row in peer_files.read(work, part))
        peer_files.write(work, part, list(best.predict(rows)))


main()
