"""Word vector losses against finite differences, Huffman trees, training against a loop."""

import heapq

import numpy as np
import pytest

from keras_seq.vectors.compiling import compiled
from keras_seq.vectors.prediction import (
    HIERARCHICAL,
    NEGATIVE,
    SOFTMAX,
    Tables,
    draw_noise,
    hierarchical_step,
    negative_step,
    softmax_step,
    train_block,
)
from keras_seq.vectors.word_tables import huffman_paths, keep_chances, noise_table

WORDS, UNITS = 7, 5
COUNTS = np.array([40, 20, 11, 6, 3, 2, 1])
RATE = np.float32(1e-3)


def state(seed=9):
    return np.array([seed], np.uint64)


def sigmoid(values):
    return 1 / (1 + np.exp(-values))


def random(*shape):
    return np.random.default_rng(sum(shape)).normal(size=shape).astype(np.float32)


def differences(loss, values):
    """Gradient of `loss` at `values`, by central differences in float64."""
    values = values.astype(np.float64)
    found = np.zeros_like(values)
    for place in np.ndindex(values.shape):
        sides = []
        for step in (1e-5, -1e-5):
            moved = values.copy()
            moved[place] += step
            sides.append(loss(moved))
        found[place] = (sides[0] - sides[1]) / 2e-5
    return found


def noise_drawn(target, count):
    """Noise words that a step with the same random state draws, without the target."""
    noise, drawn = noise_table(COUNTS), state()
    words = [draw_noise(drawn, noise.chances, noise.aliases) for _ in range(count)]
    return [word for word in words if word != target]


def negative_loss(hidden, outputs, target):
    scores = outputs @ hidden
    # A word that is sampled twice counts twice.
    return -np.log(sigmoid(scores[target])) - sum(
        np.log(sigmoid(-scores[word])) for word in noise_drawn(target, 3)
    )


def softmax_loss(hidden, outputs, target):
    scores = outputs @ hidden
    return -scores[target] + np.log(np.exp(scores).sum())


def hierarchical_loss(hidden, outputs, target):
    paths = huffman_paths(COUNTS)
    span = slice(paths.starts[target], paths.starts[target + 1])
    signs = 2 * paths.labels[span].astype(np.float64) - 1
    return -np.log(sigmoid(signs * (outputs[paths.nodes[span]] @ hidden))).sum()


def take_step(loss, hidden, gradient, outputs, target):
    if loss is negative_loss:
        noise = noise_table(COUNTS)
        negative_step(
            hidden, gradient, outputs, target, 3, noise.chances, noise.aliases, RATE, state()
        )
    elif loss is hierarchical_loss:
        hierarchical_step(hidden, gradient, outputs, target, *huffman_paths(COUNTS), RATE)
    else:
        softmax_step(hidden, gradient, outputs, target, RATE, np.zeros(WORDS, np.float32))


@pytest.mark.parametrize("target", [0, 3, 6])
@pytest.mark.parametrize("loss", [negative_loss, hierarchical_loss, softmax_loss])
def test_a_step_follows_the_gradient(loss, target):
    hidden, outputs = random(UNITS), random(WORDS, UNITS)
    gradient, changed = np.zeros(UNITS, np.float32), outputs.copy()
    take_step(loss, hidden, gradient, changed, target)
    by_hidden = differences(lambda one: loss(one, outputs.astype(float), target), hidden)
    by_outputs = differences(lambda one: loss(hidden.astype(float), one, target), outputs)
    np.testing.assert_allclose(gradient / -RATE, by_hidden, rtol=0.01, atol=0.01)
    np.testing.assert_allclose((changed - outputs) / -RATE, by_outputs, rtol=0.01, atol=0.01)
    assert np.abs(by_hidden).max() > 0.3 and np.abs(by_outputs).max() > 0.3


def test_the_hierarchical_softmax_is_a_distribution():
    hidden, outputs = random(UNITS), random(WORDS, UNITS)
    chances = [np.exp(-hierarchical_loss(hidden, outputs, word)) for word in range(WORDS)]
    assert sum(chances) == pytest.approx(1, abs=1e-6) and min(chances) > 0


@pytest.mark.parametrize("counts", [COUNTS, [1] * 9, [5, 5], sorted(range(1, 60), reverse=True)])
def test_huffman_code_is_shortest_and_prefix_free(counts):
    counts = np.array(counts)
    paths = huffman_paths(counts)
    codes = [
        tuple(zip(paths.nodes[start:end], paths.labels[start:end], strict=True))
        for start, end in zip(paths.starts, paths.starts[1:], strict=False)
    ]
    turns = ["".join(str(int(label)) for _, label in code) for code in codes]
    assert not any(a != b and b.startswith(a) for a in turns for b in turns)
    assert len({node for code in codes for node, _ in code}) == len(counts) - 1
    # Each node has only one path from the root.
    before = {}
    for code in codes:
        for place, (node, _) in enumerate(code):
            assert before.setdefault(node, code[:place]) == code[:place]
    # The length of an optimal code is the sum of the weights of all inner nodes.
    heap, best = counts.tolist(), 0
    heapq.heapify(heap)
    while len(heap) > 1:
        joined = heapq.heappop(heap) + heapq.heappop(heap)
        best += joined
        heapq.heappush(heap, joined)
    assert (np.diff(paths.starts) * counts).sum() == best


def test_noise_words_are_sampled_by_counts_to_the_power_three_quarters():
    noise, drawn = noise_table(COUNTS), state(77)
    count = 50_000
    words = [draw_noise(drawn, noise.chances, noise.aliases) for _ in range(count)]
    shares = COUNTS**0.75 / (COUNTS**0.75).sum()
    found = np.bincount(words, minlength=WORDS) / count
    assert (np.abs(found - shares) < 5 * np.sqrt(shares * (1 - shares) / count)).all()


def tables(loss=SOFTMAX, keep=None, rows=None, inputs=WORDS):
    noise = noise_table(COUNTS)
    starts = np.arange(WORDS + 1)
    return Tables(
        random(inputs, UNITS),
        random(WORDS, UNITS),
        *(rows or (starts, np.arange(WORDS, dtype=np.int32))),
        np.ones(WORDS, np.float32) if keep is None else keep,
        noise.chances,
        noise.aliases,
        *huffman_paths(COUNTS),
    )


def test_frequent_words_are_subsampled_at_the_expected_rate():
    """A frequent word f stays in a share sqrt(t / f) of its pairs with a rare word."""
    keep = keep_chances(np.array([90, 10]), 0.1)
    np.testing.assert_allclose(keep, [np.sqrt(0.1 / 0.9), 1])
    assert keep_chances(np.array([90, 10]), 0).tolist() == [1, 1]
    chances = np.ones(WORDS, np.float32)
    chances[0] = keep[0]
    count = 20_000
    block = np.tile(np.array([0, 1, -1], np.int32), count)
    made = train_block(block, tables(keep=chances), False, NEGATIVE, 1, 1, np.float32(0), state(5))
    # If both words stay, each predicts the other.
    assert made / 2 / count == pytest.approx(keep[0], abs=0.02)


def test_window_sizes_are_sampled_with_the_expected_mean():
    """A word has 2, 4 .. 10 neighbors: 6 on average."""
    block = np.array([*[1] * 1000, -1], np.int32)
    made = [
        train_block(block, tables(), False, NEGATIVE, 5, 1, np.float32(0), state(seed))
        for seed in range(1, 30)
    ]
    assert np.mean(made) == pytest.approx(6 * 1000, rel=0.01)


def reference(block, found, bag, rows):
    """The same training step in plain float64 numpy, with window 1 and the full softmax."""
    inputs, outputs = found.inputs.astype(float), found.outputs.astype(float)
    for middle, word in enumerate(block):
        places = [place for place in (middle - 1, middle + 1) if 0 <= place < len(block)]
        words = [block[place] for place in places] if bag else [word]
        hidden = np.mean([inputs[rows[one]].mean(axis=0) for one in words], axis=0)
        change = np.zeros(UNITS)
        for target in [word] if bag else [block[place] for place in places]:
            scores = outputs @ hidden
            chances = np.exp(scores - scores.max())
            chances /= chances.sum()
            errors = np.eye(WORDS)[target] - chances
            change += 0.05 * errors @ outputs
            outputs += 0.05 * np.outer(errors, hidden)
        for one in words:
            np.add.at(inputs, rows[one], change)
    return inputs, outputs


@pytest.mark.parametrize("bag", [False, True])
@pytest.mark.parametrize("parts", [False, True])
def test_training_on_a_sentence_equals_a_plain_numpy_loop(bag, parts):
    block = [0, 3, 1, 3, 6]
    rows = [[word] for word in range(WORDS)]
    inputs = WORDS
    if parts:
        rows = [[word, 7 + word % 3, 7 + (word + 1) % 3] for word in range(WORDS)]
        inputs += 3
    starts = np.cumsum([0, *map(len, rows)])
    found = tables(rows=(starts, np.concatenate(rows).astype(np.int32)), inputs=inputs)
    expected = reference(block, found, bag, rows)
    made = train_block(
        np.array([*block, -1], np.int32), found, bag, SOFTMAX, 1, 1, np.float32(0.05), state()
    )
    assert made == (5 if bag else 8)
    np.testing.assert_allclose(found.inputs, expected[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(found.outputs, expected[1], rtol=1e-4, atol=1e-5)


def test_hierarchical_training_of_a_block_equals_single_steps():
    found, expected = tables(), tables()
    block = np.array([2, 5, -1], np.int32)
    train_block(block, found, False, HIERARCHICAL, 1, 1, np.float32(RATE), state())
    for word, target in ((2, 5), (5, 2)):
        gradient = np.zeros(UNITS, np.float32)
        hidden = expected.inputs[word].copy()
        hierarchical_step(
            hidden, gradient, expected.outputs, target, *huffman_paths(COUNTS), np.float32(RATE)
        )
        expected.inputs[word] += gradient
    np.testing.assert_allclose(found.inputs, expected.inputs, rtol=1e-5)
    np.testing.assert_allclose(found.outputs, expected.outputs, rtol=1e-5)


def test_function_without_a_cache_file_is_still_compiled():
    names: dict = {}
    # A function without a source file has no location for a cache file.
    exec("def add(a, b):\n    return a + b\n", names)
    assert compiled(names["add"])(2, 3) == 5
