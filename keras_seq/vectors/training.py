"""Training of word vectors on a text."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import numpy as np

from keras_seq.process.memory import require_memory
from keras_seq.settings import SettingsError
from keras_seq.text import Notice
from keras_seq.text.reading import Path
from keras_seq.vectors.cooccurrence import Cooccurrences
from keras_seq.vectors.corpus import Corpus
from keras_seq.vectors.glove import glove_steps, glove_tables
from keras_seq.vectors.prediction import HIERARCHICAL, NEGATIVE, SOFTMAX, Tables, train_block
from keras_seq.vectors.settings import VectorSettings
from keras_seq.vectors.subwords import Subwords, rows_of_words
from keras_seq.vectors.word_tables import huffman_paths, keep_chances, noise_table
from keras_seq.vectors.word_vectors import WordVectors

_LOSSES = {"negative": NEGATIVE, "hierarchical": HIERARCHICAL, "softmax": SOFTMAX}
# The learning rate decays linearly to this fraction of its initial value.
_LAST_RATE = 1e-4
# Number of co-occurrence entries in one unit of work of a GloVe thread.
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
        text: A file for `Corpus`, or a `Corpus`.
        settings: `VectorSettings()` if None. On one machine, one thread gives bit-identical
            vectors for the same text, settings and seed. Several threads update the same tables
            without locks (Recht et al., "Hogwild!", 2011): the quality is the same, but the
            vectors differ between runs.
        lowercase: If True and `text` is a file, lowercase the text.
        notice: Receives lines that report progress.

    Returns:
        The vectors of the words, by descending frequency. Those of GloVe are the mean of its two
        tables.

    Raises:
        InputError: As `Corpus`; or if Numba is not installed or the vectors do not fit into memory.
        SettingsError: If the training diverges; a lower rate prevents that.

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
    if not isinstance(text, Corpus):
        text = Corpus(text, min_count=settings.min_count, lowercase=lowercase, notice=notice)
    train = _train_glove if settings.algorithm == "glove" else _train_predictions
    vectors = train(text, settings, notice or (lambda line: None))
    if not np.isfinite(vectors.matrix).all():
        rate = f"{settings.learning_rate:g}"
        raise SettingsError(f"learning_rate: {rate} is too high, the training diverged: lower it")
    return vectors


def memory_of_training(corpus: Corpus, settings: VectorSettings) -> int:
    """Estimates the bytes of the trained tables, without the co-occurrence counts of GloVe."""
    parts = len(_rows(corpus, settings)[2]) if settings.algorithm == "fasttext" else 0
    return _table_bytes(corpus, settings, parts)


def _table_bytes(corpus: Corpus, settings: VectorSettings, parts: int) -> int:
    numbers = len(corpus.words) * settings.units
    if settings.algorithm == "glove":
        return 16 * numbers
    return 8 * numbers + 4 * parts * settings.units


def _require_memory(corpus: Corpus, settings: VectorSettings, parts: int = 0) -> None:
    words, units = len(corpus.words), settings.units
    require_memory(
        _table_bytes(corpus, settings, parts),
        f"training {words + parts:,} vectors of {units:,} numbers",
        "lower units or buckets, or raise min_count",
    )


def _rows(corpus: Corpus, settings: VectorSettings) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if settings.algorithm == "fasttext":
        return rows_of_words(corpus.words, settings.min_ngram, settings.max_ngram, settings.buckets)
    words = len(corpus.words)
    return np.arange(words + 1), np.arange(words, dtype=np.int32), np.zeros(0, np.int32)


def _train_predictions(corpus: Corpus, settings: VectorSettings, notice: Notice) -> WordVectors:
    generator = np.random.default_rng(settings.seed)
    words, units = len(corpus.words), settings.units
    _require_memory(corpus, settings)
    starts, rows, places = _rows(corpus, settings)
    _require_memory(corpus, settings, len(places))
    # Without hierarchical softmax, the compiled functions still expect arrays of these types.
    empty = (np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
    tree = huffman_paths(corpus.counts) if settings.loss == "hierarchical" else empty
    noise = noise_table(corpus.counts)
    inputs = generator.random((words + len(places), units), np.float32) - np.float32(0.5)
    inputs /= np.float32(units)
    tables = Tables(
        inputs,
        np.zeros((words, units), np.float32),
        starts,
        rows,
        keep_chances(corpus.counts, settings.subsample),
        *noise,
        *tree,
    )
    epochs, rate = int(settings.epochs or 0), float(settings.learning_rate or 0)
    progress = _Progress(epochs * corpus.total, "words", notice)
    loss = _LOSSES[str(settings.loss)]
    reading = threading.Lock()

    def learn(task: tuple[int, int]) -> None:
        with reading:
            block = corpus.block(task[1])
        now = rate * max(1 - progress.share, _LAST_RATE)
        # A seed per block makes the random numbers independent of the number of threads.
        state = np.random.SeedSequence([settings.seed, *task]).generate_state(1, np.uint64) | 1
        train_block(
            block,
            tables,
            settings.algorithm == "cbow",
            loss,
            settings.window,
            settings.negatives,
            np.float32(now),
            state.astype(np.uint64),
        )
        progress.add(int((block >= 0).sum()))

    tasks = ((epoch, block) for epoch in range(epochs) for block in range(corpus.block_count))
    _run_tasks(tasks, learn, settings.threads)
    progress.report()
    if settings.algorithm != "fasttext":
        return WordVectors(corpus.words, inputs)
    lengths = np.diff(starts).astype(np.float32)
    matrix = np.add.reduceat(inputs[rows], starts[:-1], axis=0) / lengths[:, None]
    sizes = (settings.min_ngram, settings.max_ngram, settings.buckets)
    parts = Subwords(*sizes, places, inputs[words:])
    return WordVectors(corpus.words, matrix, parts)


def _train_glove(corpus: Corpus, settings: VectorSettings, notice: Notice) -> WordVectors:
    _require_memory(corpus, settings)
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
    rate = np.float32(settings.learning_rate)
    for epoch in range(epochs):
        order = np.random.default_rng([settings.seed, epoch]).permutation(len(rows))
        losses: list[float] = []

        def learn(start: int, order: np.ndarray = order, losses: list[float] = losses) -> None:
            part = order[start : start + _ENTRIES]
            losses.append(glove_steps(part, rows, columns, counts, tables, rate))
            progress.add(len(part))

        _run_tasks(iter(range(0, len(order), _ENTRIES)), learn, settings.threads)
        progress.details = f"loss {sum(losses) / max(len(order), 1):.4f}"
    progress.report()
    return WordVectors(corpus.words, (tables.vectors[0] + tables.vectors[1]) / 2)


def _run_tasks(tasks: Iterator[Any], work: Callable[[Any], None], threads: int) -> None:
    """Runs tasks in their order on several threads."""
    if threads == 1:
        for task in tasks:
            work(task)
        return
    lock, stop = threading.Lock(), threading.Event()

    def worker() -> None:
        while not stop.is_set():
            with lock:
                task = next(tasks, None)
            if task is None:
                return
            work(task)

    with ThreadPoolExecutor(threads) as pool:
        running = [pool.submit(worker) for _ in range(threads)]
        try:
            # Ctrl-C or an exception in one thread stops all threads.
            wait(running, return_when="FIRST_EXCEPTION")
        finally:
            stop.set()
        for future in running:
            future.result()


class _Progress:
    """Reports progress every ten seconds."""

    def __init__(self, total: int, unit: str, notice: Notice) -> None:
        self._total, self._unit, self._notice = max(total, 1), unit, notice
        self._done = 0
        self._lock = threading.Lock()
        self._start = self._last_report = time.monotonic()
        self.details = ""

    @property
    def share(self) -> float:
        return self._done / self._total

    def add(self, count: int) -> None:
        with self._lock:
            self._done += count
            if time.monotonic() - self._last_report >= _SECONDS:
                self._last_report = time.monotonic()
                self.report()

    def report(self) -> None:
        speed = self._done / max(time.monotonic() - self._start, 1e-9)
        details = f", {self.details}" if self.details else ""
        done = f"{self._done:,} of {self._total:,} {self._unit}"
        self._notice(f"{done}, {speed:,.0f} a second{details}")
