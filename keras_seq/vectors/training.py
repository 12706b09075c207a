"""From a text to the vectors of its words."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from keras_seq.settings import SettingsError
from keras_seq.text import Notice
from keras_seq.text.reading import Path
from keras_seq.vectors.cooccurrence import Cooccurrences
from keras_seq.vectors.corpus import Corpus
from keras_seq.vectors.glove import glove_steps, glove_tables
from keras_seq.vectors.huffman import huffman_paths
from keras_seq.vectors.noise import keep_chances, noise_table
from keras_seq.vectors.prediction import HIERARCHICAL, NEGATIVE, SOFTMAX, Tables, train_block
from keras_seq.vectors.settings import VectorSettings
from keras_seq.vectors.subwords import Subwords, rows_of_words
from keras_seq.vectors.word_vectors import WordVectors

_LOSSES = {"negative": NEGATIVE, "hierarchical": HIERARCHICAL, "softmax": SOFTMAX}
# The learning rate falls in a line to this share of itself.
_LAST_RATE = 1e-4
_ENTRIES = 100_000
_SECONDS = 10.0


def train_vectors(
    text: Path | Corpus,
    settings: VectorSettings | None = None,
    *,
    lowercase: bool = False,
    notice: Notice | None = None,
) -> WordVectors:
    """Trains a vector for each word of a text.

    Args:
        text: A file as `Corpus` takes it, or a `Corpus`.
        settings: `VectorSettings()` if None. With one thread the same text, settings and seed give
            the same vectors, to the bit, on one machine. Several threads change the same
            tables without waiting for each other (Recht et al., "Hogwild!", 2011): as good,
            but different each time.
        lowercase: Whether to make no difference between `Dog` and `dog`, where `text` is a file.
        notice: Called with a line about what is read and how far the training is.

    Returns:
        The vectors, of words from the most frequent on. Those of GloVe are the mean of the two
        tables that it learns.

    Raises:
        InputError: As `Corpus` does, and where Numba is not installed.
        SettingsError: The training diverged, which a lower rate prevents.

    Example:

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "text.txt"
    ...     _ = path.write_text("a dog runs\\na cat runs\\n" * 100)
    ...     vectors = train_vectors(path, VectorSettings(units=8))
    >>> vectors.words, vectors["dog"].shape
    (['a', 'runs', 'dog', 'cat'], (8,))
    """
    settings = settings or VectorSettings()
    corpus = (
        text
        if isinstance(text, Corpus)
        else Corpus(text, min_count=settings.min_count, lowercase=lowercase, notice=notice)
    )
    train = _train_glove if settings.method == "glove" else _train_predictions
    found = train(corpus, settings, notice or _silent)
    if not np.isfinite(found.matrix).all():
        raise SettingsError(f"rate: {settings.rate:g} is too high, the training diverged: lower it")
    return found


def memory_of_training(corpus: Corpus, settings: VectorSettings) -> int:
    """About how many bytes the tables of a training take, without the pairs that GloVe counts."""
    numbers = len(corpus.words) * settings.units
    if settings.method == "glove":
        return 16 * numbers
    parts = len(_rows(corpus, settings)[2]) if settings.method == "fasttext" else 0
    return 8 * numbers + 4 * parts * settings.units


def _rows(corpus: Corpus, settings: VectorSettings) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if settings.method == "fasttext":
        return rows_of_words(corpus.words, settings.min_ngram, settings.max_ngram, settings.buckets)
    words = len(corpus.words)
    return np.arange(words + 1), np.arange(words, dtype=np.int32), np.zeros(0, np.int32)


def _train_predictions(corpus: Corpus, settings: VectorSettings, notice: Notice) -> WordVectors:
    chance = np.random.default_rng(settings.seed)
    words, units = len(corpus.words), settings.units
    starts, rows, places = _rows(corpus, settings)
    nothing = np.zeros(0, np.int32)
    tree: tuple[np.ndarray, ...] = (np.zeros(0, np.int64), nothing, nothing.astype(np.float32))
    if settings.loss == "hierarchical":
        tree = tuple(huffman_paths(corpus.counts))
    noise = noise_table(corpus.counts)
    inputs = chance.random((words + len(places), units), np.float32) - np.float32(0.5)
    inputs /= np.float32(units)
    tables = Tables(
        inputs,
        np.zeros((words, units), np.float32),
        starts,
        rows,
        keep_chances(corpus.counts, settings.subsample),
        noise.chances,
        noise.aliases,
        *tree,
    )
    epochs, rate = int(settings.epochs or 0), float(settings.rate or 0)
    progress = _Progress(epochs * corpus.total, "words", notice)
    loss = _LOSSES[str(settings.loss)]
    reading = threading.Lock()

    def learn(task: tuple[int, int]) -> None:
        with reading:
            block = corpus.block(task[1])
        now = rate * max(1 - progress.share, _LAST_RATE)
        # Of the block alone, so that a thread more or less changes no draw.
        state = np.random.SeedSequence([settings.seed, *task]).generate_state(1, np.uint64) | 1
        train_block(
            block,
            tables,
            settings.method == "cbow",
            loss,
            settings.window,
            settings.negatives,
            np.float32(now),
            state.astype(np.uint64),
        )
        progress.add(int((block >= 0).sum()))

    tasks = ((epoch, block) for epoch in range(epochs) for block in range(corpus.block_count))
    _share_out(tasks, learn, settings.threads)
    progress.end()
    if settings.method != "fasttext":
        return WordVectors(corpus.words, inputs)
    lengths = np.diff(starts).astype(np.float32)
    matrix = np.add.reduceat(inputs[rows], starts[:-1], axis=0) / lengths[:, None]
    parts = Subwords(
        settings.min_ngram, settings.max_ngram, settings.buckets, places, inputs[words:]
    )
    return WordVectors(corpus.words, matrix, parts)


def _train_glove(corpus: Corpus, settings: VectorSettings, notice: Notice) -> WordVectors:
    counted = Cooccurrences(len(corpus.words), int(settings.window or 0))
    counting = _Progress(corpus.total, "words counted", notice)
    for block in corpus.blocks():
        counted.add(block)
        counting.add(int((block >= 0).sum()))
    rows, columns, counts = counted.entries()
    del counted
    tables = glove_tables(len(corpus.words), settings.units, settings.seed)
    epochs = int(settings.epochs or 0)
    progress = _Progress(epochs * len(rows), "pairs", notice)
    rate = np.float32(settings.rate)
    for epoch in range(epochs):
        order = np.random.default_rng([settings.seed, epoch]).permutation(len(rows))
        losses: list[float] = []

        def learn(start: int, order: np.ndarray = order, losses: list[float] = losses) -> None:
            part = order[start : start + _ENTRIES]
            losses.append(glove_steps(part, rows, columns, counts, tables, rate))
            progress.add(len(part))

        _share_out(iter(range(0, len(order), _ENTRIES)), learn, settings.threads)
        progress.told = f"loss {sum(losses) / max(len(order), 1):.4f}"
    progress.end()
    return WordVectors(corpus.words, (tables.vectors[0] + tables.vectors[1]) / 2)


def _share_out(tasks: Iterator[Any], work: Callable[[Any], None], threads: int) -> None:
    """Does tasks in their order, several at once."""
    if threads == 1:
        for task in tasks:
            work(task)
        return
    lock, stop = threading.Lock(), threading.Event()

    def go_on() -> None:
        while not stop.is_set():
            with lock:
                task = next(tasks, None)
            if task is None:
                return
            work(task)

    with ThreadPoolExecutor(threads) as pool:
        running = [pool.submit(go_on) for _ in range(threads)]
        try:
            # What Ctrl-C or a mistake ends, ends for all.
            wait(running, return_when="FIRST_EXCEPTION")
        finally:
            failed = any(one.done() and one.exception() for one in running)
            if failed or not all(one.done() for one in running):
                stop.set()
        for one in running:
            one.result()


class _Progress:
    """How much is done, said every ten seconds."""

    def __init__(self, total: int, what: str, notice: Notice) -> None:
        self._total, self._what, self._notice = max(total, 1), what, notice
        self._done = 0
        self._lock = threading.Lock()
        self._start = self._said = time.monotonic()
        self.told = ""

    @property
    def share(self) -> float:
        return self._done / self._total

    def add(self, count: int) -> None:
        with self._lock:
            self._done += count
            if time.monotonic() - self._said >= _SECONDS:
                self._said = time.monotonic()
                self._say()

    def end(self) -> None:
        self._say()

    def _say(self) -> None:
        speed = self._done / max(time.monotonic() - self._start, 1e-9)
        more = f", {self.told}" if self.told else ""
        self._notice(f"{self._done:,} of {self._total:,} {self._what}, {speed:,.0f} a second{more}")


def _silent(line: str) -> None:
    pass
