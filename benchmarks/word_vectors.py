"""Compares `keras_seq.vectors` with gensim: speed, planted structure, agreement on real text.

    python benchmarks/word_vectors.py [--text FILE] [--threads 2] [--smoke]

Both tools build a vocabulary and vectors from a text file, with the same settings and in
alternating turns, so other load affects both equally. Figures are medians. gensim reads the file in
C (`corpus_file`), its fastest way. "processor" is the time of all threads. The default text is
Multi30k's English, lowercased and tokenized, repeated --copies times.

`planted_words.py` generates the text with planted structure. Agreement is Spearman's correlation
between the cosines of both tools, for 20,000 pairs of frequent words. The upper limit is the
correlation between two trainings of gensim with different seeds.
"""

import argparse
import gzip
import re
import statistics
import tempfile
import time
from pathlib import Path

import machine
import numpy as np
from planted_words import analogies_found, clusters_found, planted_lines

from keras_seq.vectors import VectorSettings, train_vectors

CASES = [
    ("skipgram", "negative"),
    ("skipgram", "hierarchical"),
    ("cbow", "negative"),
    ("cbow", "hierarchical"),
    ("fasttext", "negative"),
    ("glove", None),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--text", type=Path, help="a text, words parted by spaces")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--units", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--copies", type=int, default=5, help="of Multi30k")
    parser.add_argument("--smoke", action="store_true", help="a moment only")
    arguments = parser.parse_args()
    if arguments.smoke:
        arguments.units, arguments.turns, arguments.epochs = 16, 1, 1
        arguments.copies = 1
    print(machine.describe())
    with tempfile.TemporaryDirectory() as folder:
        compare(arguments, Path(folder))


def compare(arguments, folder):
    small = folder / "small.txt"
    lines = list(multi30k_lines()) if not arguments.smoke else list(planted_lines(2_000))
    small.write_text("\n".join(lines) + "\n", encoding="utf-8")
    text = arguments.text
    if text is None:
        text = folder / "text.txt"
        text.write_text("\n".join(lines * arguments.copies) + "\n", encoding="utf-8")
    words = sum(len(line.split()) for line in open(text, encoding="utf-8"))
    planted = folder / "planted.txt"
    planted.write_text(
        "\n".join(planted_lines(2_000 if arguments.smoke else 20_000)) + "\n", encoding="utf-8"
    )
    print(
        f"{words:,} words, {arguments.epochs} times, {arguments.units} units, "
        f"{arguments.threads} threads, {arguments.turns} turns"
    )
    print("| method | words/s | gensim | processor: words/s | gensim | ratio |")
    print("|---|---|---|---|---|---|")
    for method, loss in CASES:
        speed(method, loss, text, words * arguments.epochs, arguments)
    print("\n| method | topics found | gensim | analogies found | gensim | agreement | gensim's |")
    print("|---|---|---|---|---|---|---|")
    for method, loss in CASES:
        quality(method, loss, planted, small, arguments)


def speed(method, loss, text, words, arguments):
    ours = lambda: train_ours(method, loss, text, arguments)  # noqa: E731
    theirs = lambda: train_gensim(method, loss, text, arguments)  # noqa: E731
    # Compiles all functions before the first turn.
    train_ours(method, loss, text, arguments, epochs=1)
    found = {ours: [], theirs: []}
    for _ in range(arguments.turns):
        for one, times in found.items():
            if one is theirs and method == "glove":
                continue
            start = time.perf_counter(), time.process_time()
            one()
            times.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    rates = [
        [words / statistics.median(turn[kind] for turn in times) if times else None
         for times in found.values()]
        for kind in (0, 1)
    ]  # fmt: skip
    row = [f"{rate:,.0f}" if rate else "" for kind in rates for rate in kind]
    ratio = f"{rates[1][0] / rates[1][1]:.2f}" if rates[1][1] else ""
    print(f"| {method} {loss or ''} | {' | '.join(row)} | {ratio} |", flush=True)


def quality(method, loss, planted, text, arguments):
    ours = train_ours(method, loss, planted, arguments, method_epochs=True)
    row = [
        clusters_found(lambda word, count: [near for near, _ in ours.nearest(word, count)]),
        None,
        analogies_found(lambda *words: ours.analogy(*words)[0][0]),
        None,
    ]
    agreement = [None, None]
    if method != "glove":
        theirs = train_gensim(method, loss, planted, arguments)
        row[1] = clusters_found(
            lambda word, count: [near for near, _ in theirs.most_similar(word, topn=count)]
        )
        row[3] = analogies_found(
            lambda a, b, c: theirs.most_similar(positive=[b, c], negative=[a])[0][0]
        )
        models = [
            train_gensim(method, loss, text, arguments),
            train_ours(method, loss, text, arguments),
            train_gensim(method, loss, text, arguments, seed=2),
        ]
        words = models[0].index_to_key[:1000]
        chance = np.random.default_rng(0)
        pairs = [
            pair for pair in chance.integers(len(words), size=(20_000, 2)) if pair[0] != pair[1]
        ]
        cosines = [pair_cosines(model, words, np.array(pairs)) for model in models]
        agreement = [rank_correlation(cosines[0], other) for other in cosines[1:]]
    cells = [f"{value:.3f}" if value is not None else "" for value in (*row, *agreement)]
    print(f"| {method} {loss or ''} | {' | '.join(cells)} |", flush=True)


def train_ours(method, loss, text, arguments, epochs=None, method_epochs=False):
    settings = VectorSettings(
        algorithm=method,
        loss=loss,
        units=arguments.units,
        epochs=epochs or (None if method_epochs and method == "glove" else arguments.epochs),
        threads=arguments.threads,
    )
    return train_vectors(text, settings)


def train_gensim(method, loss, text, arguments, seed=1):
    from gensim.models import FastText, Word2Vec

    used = VectorSettings(algorithm=method)
    options = dict(
        vector_size=arguments.units,
        window=used.window,
        min_count=used.min_count,
        sample=used.subsample,
        alpha=used.learning_rate,
        epochs=arguments.epochs,
        sg=int(method != "cbow"),
        hs=int(loss == "hierarchical"),
        negative=used.negatives if loss == "negative" else 0,
        workers=arguments.threads,
        seed=seed,
        corpus_file=str(text),
    )
    if method == "fasttext":
        return FastText(min_n=3, max_n=6, **options).wv
    return Word2Vec(**options).wv


def pair_cosines(vectors, words, pairs):
    rows = np.array([vectors[word] for word in words], np.float64)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return (rows[pairs[:, 0]] * rows[pairs[:, 1]]).sum(axis=1)


def rank_correlation(one, other):
    ranks = [values.argsort().argsort() for values in (one, other)]
    return float(np.corrcoef(*ranks)[0, 1])


def multi30k_lines():
    path = machine.multi30k() / "train.en.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            yield " ".join(re.findall(r"[\w'-]+|[^\w\s]", line.lower()))


if __name__ == "__main__":
    main()
