"""Answers that need no model: what a trained model must be better than."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from keras_seq.data import TokenCorpus
from keras_seq.inference.likelihood import Likelihood
from keras_seq.preparation.prepared_corpora import check_corpus
from keras_seq.run import Run
from keras_seq.text import EOS_ID, FIRST_LABEL, INSIDE_ID, InputError, word_tokens


class NoTrainingTextError(InputError):
    """Raised if a baseline counts the training text, but the run has none."""


# Pairs of the training text that are counted.
_MAX_PAIRS = 200_000


def most_frequent_label(run: Run) -> str:
    """Returns the most frequent label of the training text."""
    corpus = _training_text(run)
    counts = Counter(int(corpus.target(i)[0]) for i in range(min(len(corpus), _MAX_PAIRS)))
    return run.labels.names[counts.most_common(1)[0][0] - FIRST_LABEL]


def most_frequent_text(run: Run) -> str:
    """Returns the most frequent target of the training text."""
    corpus = _training_text(run)
    counts = Counter(corpus.target(i).tobytes() for i in range(min(len(corpus), _MAX_PAIRS)))
    ids = np.frombuffer(counts.most_common(1)[0][0], np.int32)
    return run.target_tokenizer.decode([ids.tolist()])[0]


def most_frequent_tags(run: Run, texts: Sequence[str]) -> list[list[str]]:
    """Returns for each word of each text its most frequent tag in the training text.

    Words that are not in the training text get the most frequent tag of all.
    """
    corpus = _training_text(run)
    by_word: dict[bytes, Counter[int]] = {}
    for index in range(min(len(corpus), _MAX_PAIRS)):
        tags = corpus.target(index)
        begins = np.flatnonzero(tags != INSIDE_ID)
        words = np.split(_tokens(corpus, index), begins[1:])
        for word, tag in zip(words, tags[begins].tolist(), strict=True):
            by_word.setdefault(word.tobytes(), Counter())[tag] += 1
    total: Counter[int] = sum(by_word.values(), Counter())
    best = {word: counts.most_common(1)[0][0] for word, counts in by_word.items()}
    default = total.most_common(1)[0][0]
    rows = []
    for line in word_tokens(
        run.source_tokenizer, texts, whole_words=run.settings.model.reads_characters
    ):
        if corpus.has_features:
            tokens = np.array(line.characters(), np.int32).reshape(-1, corpus.token_features)
        else:
            tokens = np.array(line.ids, np.int32)
        words = np.split(tokens, line.begins[1:]) if line.begins else []
        likely = [best.get(word.tobytes(), default) for word in words]
        rows.append([run.labels.names[tag - FIRST_LABEL] for tag in likely])
    return rows


def _training_text(run: Run) -> TokenCorpus:
    # Most averages of checkpoints and published runs are without it.
    if not run.train_directory.exists():
        raise NoTrainingTextError(f"{run.path} has no training text to count")
    # The run may come from anywhere.
    check_corpus(run, run.train_directory)
    return TokenCorpus.open(run.train_directory)


def _tokens(corpus: TokenCorpus, index: int) -> np.ndarray:
    """Returns the token ids of a source; or the characters of its tokens, where they have any.

    Words that are not in the vocabulary have one id.
    """
    if corpus.has_features:
        return corpus.features(index).reshape(-1, corpus.token_features)
    return corpus.source(index)


def unigram_likelihoods(run: Run, texts: Sequence[str]) -> list[Likelihood]:
    """Returns the log-probabilities of texts by the shares of tokens in the training text.

    Every token of the vocabulary counts once more than it occurs, so that none has the share 0.
    Empty texts are left out, unless the training text is packed.
    """
    corpus = _training_text(run)
    size = run.target_tokenizer.vocabulary_size
    pairs = min(len(corpus), _MAX_PAIRS)
    counts = np.ones(size)
    for index in range(pairs):
        counts += np.bincount(corpus.target(index), minlength=size)
    if not corpus.is_packed:
        counts[EOS_ID] += pairs
    log_shares = np.log(counts / counts.sum())
    rows = [
        [*ids, EOS_ID] if ids or corpus.is_packed else []
        for ids in run.target_tokenizer.encode(list(texts))
    ]
    return [Likelihood(tuple(row), tuple(log_shares[row].tolist())) for row in rows]
