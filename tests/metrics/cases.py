"""Batches and expected values for the tests of metrics, from plain loops and sacreBLEU."""

import functools

import keras
import numpy as np
import sacrebleu

from keras_seq import metrics, scoring

# A small vocabulary, so that n-grams repeat. 0 is padding, 3 the end token.
VOCABULARY, END = 8, 3
TAGS = ["O", "B-place", "I-place", "B-name", "I-name", "E-name", "S-place"]
LENGTHS = [9, 8, 7, 5, 6, 2, 1, 0]


def make_batch(seed=0):
    """Target ids `(8, 9)` with an end token and padding, and logits that often predict them."""
    random = np.random.default_rng(seed)
    true = np.zeros((len(LENGTHS), 9), "int32")
    for row, length in enumerate(LENGTHS):
        # Neither padding nor the end token.
        true[row, :length] = random.choice([1, 2, 4, 5, 6, 7], length)
        true[row, max(length - 1, 0) : length] = END
    logits = random.normal(size=(*true.shape, VOCABULARY)).astype("float32")
    logits += 3 * (random.random(true.shape) < 0.8)[..., None] * np.eye(VOCABULARY)[true]
    # One row is completely correct; another ends early.
    logits[2] += 20 * np.eye(VOCABULARY)[true[2]]
    logits[3, 2, END] += 20
    return true, logits.astype("float32")


def make_tags(seed=0):
    """Target tags, -1 where no word begins, and logits."""
    random = np.random.default_rng(seed)
    true = random.integers(0, len(TAGS), (8, 9)).astype("int32")
    logits = random.normal(size=(*true.shape, len(TAGS)))
    logits += 3 * (random.random(true.shape) < 0.9)[..., None] * np.eye(len(TAGS))[true]
    true[random.random(true.shape) < 0.2] = -1
    true[6:, 3:] = -1
    return true, logits.astype("float32")


@keras.saving.register_keras_serializable(package="tests")
def spell(ids):
    """Converts lists of ids to lines of one-letter words."""
    return [" ".join("abcdefgh"[id] for id in row) for row in ids]


def cut(tokens, keep_end):
    if END in tokens:
        tokens = tokens[: tokens.index(END) + keep_end]
    return tokens


def rows_of(true, prediction, keep_end):
    """Token lists of target and prediction for each row, None for rows of padding."""
    pairs = []
    for row, predicted in zip(true, prediction, strict=True):
        real = row != 0
        ids = predicted.argmax(-1)[real] if predicted.ndim == 2 else predicted[predicted != 0]
        pair = cut(row[real].tolist(), keep_end), cut(ids.tolist(), keep_end)
        pairs.append(pair if real.any() else None)
    return pairs


def repeated(pairs, weights):
    """Repeats each row as often as its weight says."""
    weights = np.ones(len(pairs), int) if weights is None else weights.astype(int)
    pairs = zip(pairs, weights, strict=True)
    return [pair for pair, many in pairs if pair is not None for _ in range(many)]


def accuracy(true, logits, weights):
    right = total = 0.0
    for row, step in np.argwhere(true):
        weight = 1.0 if weights is None else weights[row]
        right += weight * (logits[row, step].argmax() == true[row, step])
        total += weight
    return right / total


def perplexity(true, logits, weights):
    cross_entropy = total = 0.0
    for row, step in np.argwhere(true):
        weight = 1.0 if weights is None else weights[row]
        powers = np.exp(logits[row, step].astype("float64"))
        if weight:
            cross_entropy -= weight * np.log(powers[true[row, step]] / powers.sum())
        total += weight
    return np.exp(cross_entropy / total)


def exact_match(true, prediction, weights):
    pairs = repeated(rows_of(true, prediction, True), weights)
    return np.mean([expected == found for expected, found in pairs])


def levenshtein(expected, found):
    @functools.cache
    def distance(i, j):
        if not i or not j:
            return i + j
        replaced = distance(i - 1, j - 1) + (expected[i - 1] != found[j - 1])
        return min(replaced, distance(i - 1, j) + 1, distance(i, j - 1) + 1)

    return distance(len(expected), len(found))


def edit_distance(true, prediction, weights):
    pairs = repeated(rows_of(true, prediction, True), weights)
    return sum(levenshtein(*pair) for pair in pairs) / sum(len(expected) for expected, _ in pairs)


def bleu(true, prediction, weights):
    pairs = repeated(rows_of(true, prediction, False), weights)
    expected, found = (
        [" ".join(map(str, side)) for side in sides] for sides in zip(*pairs, strict=True)
    )
    return sacrebleu.BLEU(tokenize="none").corpus_score(found, [expected]).score


def spelled(true, prediction, weights):
    pairs = repeated(rows_of(true, prediction, False), weights)
    return (spell(side) for side in zip(*pairs, strict=True))


def bleu_of_texts(true, prediction, weights):
    expected, found = spelled(true, prediction, weights)
    return sacrebleu.BLEU().corpus_score(found, [expected]).score


def chrf(true, prediction, weights):
    expected, found = spelled(true, prediction, weights)
    return sacrebleu.CHRF().corpus_score(found, [expected]).score


def entity_f1(true, prediction, weights):
    pairs = []
    for row, predicted in zip(true, prediction, strict=True):
        ids = predicted.argmax(-1) if predicted.ndim == 2 else predicted
        words = row != -1
        pairs.append(([TAGS[id] for id in row[words]], [TAGS[id] for id in ids[words]]))
    expected, found = zip(*repeated(pairs, weights), strict=True)
    return scoring.entity_scores(expected, found).f1


# Constructor, expected value, batch, and whether predictions may be ids.
CASES = {
    "accuracy": (metrics.MaskedTokenAccuracy, accuracy, make_batch, False),
    "perplexity": (metrics.Perplexity, perplexity, make_batch, False),
    "exact_match": (metrics.ExactMatch, exact_match, make_batch, True),
    "edit_distance": (metrics.EditDistance, edit_distance, make_batch, True),
    "bleu": (metrics.BLEU, bleu, make_batch, True),
    "bleu_of_texts": (functools.partial(metrics.BLEU, spell), bleu_of_texts, make_batch, True),
    "chrf": (functools.partial(metrics.ChrF, spell), chrf, make_batch, True),
    "entity_f1": (functools.partial(metrics.EntityF1, TAGS), entity_f1, make_tags, True),
}
# On TensorFlow, XLA cannot compile metrics that run on the host.
ON_HOST = ("bleu_of_texts", "chrf")
