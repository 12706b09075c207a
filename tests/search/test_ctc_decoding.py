"""CTC decoding against an enumeration of all paths in plain Python."""

import itertools

import keras
import numpy as np
import pytest
from differentiation import quick
from keras import ops

from keras_seq.search import ctc_beam_search, ctc_greedy_search

pytestmark = [pytest.mark.jax, pytest.mark.torch]

ROWS, FRAMES, VOCABULARY = 8, 5, 3
LENGTHS = [5, 5, 5, 5, 4, 2, 1, 0]
MASK = np.arange(FRAMES) < np.array(LENGTHS)[:, None]
LOGITS = (1.5 * np.random.default_rng(0).normal(size=(ROWS, FRAMES, VOCABULARY))).astype("float32")
SPOILED = np.where(MASK[..., None], LOGITS, np.nan).astype("float32")
# More than the 63 prefixes of at most five labels, each one of two.
ALL = 64


def collapsed(path):
    return tuple(label for label, _ in itertools.groupby(path) if label)


def of_all_paths(logits):
    """Tuples of (labels, probability), the most probable first."""
    probabilities = np.exp(logits.astype("float64"))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    found = {}
    for path in itertools.product(range(logits.shape[1]), repeat=len(logits)):
        labels = collapsed(path)
        probability = np.prod(probabilities[np.arange(len(path)), path])
        found[labels] = found.get(labels, 0.0) + probability
    return sorted(found.items(), key=lambda item: -item[1])


def run(search, logits, mask=None, **options):
    """Returns a list of (labels, log-probability) for each row."""
    arrays = [logits] if mask is None else [logits, mask]
    found = quick(lambda *tensors: search(*tensors, **options))(*map(ops.convert_to_tensor, arrays))
    labels, lengths, scores = map(ops.convert_to_numpy, found)
    assert not labels[np.arange(labels.shape[2]) >= lengths[..., None]].any()
    return [
        [
            (tuple(labels[row, place, : lengths[row, place]].tolist()), scores[row, place])
            for place in range(lengths.shape[1])
            if scores[row, place] > -1e29
        ]
        for row in range(len(labels))
    ]


def assert_same(found, expected, atol=1e-4):
    assert [[labels for labels, _ in row] for row in found] == [
        [labels for labels, _ in row] for row in expected
    ]
    for left, right in zip(found, expected, strict=True):
        np.testing.assert_allclose([s for _, s in left], [s for _, s in right], atol=atol)


def test_wide_ctc_beam_finds_every_labeling_with_its_probability():
    expected = [
        [(labels, np.log(p)) for labels, p in of_all_paths(LOGITS[row, :length])]
        for row, length in enumerate(LENGTHS)
    ]
    # The only output of a row without frames is empty.
    assert expected[-1] == [((), 0.0)]
    found = run(ctc_beam_search, SPOILED, MASK, beam_size=ALL, n_best=ALL)
    assert_same(found, expected)


@pytest.mark.parametrize("beam_size", [1, 2, 4])
def test_narrow_ctc_beam_scores_are_lower_bounds(beam_size):
    for row, found in enumerate(run(ctc_beam_search, LOGITS, beam_size=beam_size)):
        truth = dict(of_all_paths(LOGITS[row]))
        ((labels, score),) = found
        assert score <= np.log(truth[labels]) + 1e-4
    # The widest beam finds labels that are at least as probable.
    wide = run(ctc_beam_search, LOGITS, beam_size=ALL)
    narrow = run(ctc_beam_search, LOGITS, beam_size=beam_size)
    for row in range(ROWS):
        truth = dict(of_all_paths(LOGITS[row]))
        assert truth[wide[row][0][0]] >= truth[narrow[row][0][0]] - 1e-9


def test_ctc_greedy_search_finds_the_best_path():
    expected = []
    for row, length in enumerate(LENGTHS):
        logits = LOGITS[row, :length].astype("float64")
        scores = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        expected.append([(collapsed(scores.argmax(axis=1).tolist()), scores.max(axis=1).sum())])
    assert_same(run(ctc_greedy_search, SPOILED, MASK), expected)


def test_ctc_beam_sums_paths_that_greedy_search_does_not():
    # Graves' example: the blank is likelier at both frames, but label 1 wins over all paths.
    logits = np.log([[[0.6, 0.4], [0.6, 0.4]]]).astype("float32")
    assert_same(run(ctc_greedy_search, logits), [[((), np.log(0.36))]])
    expected = [[((1,), np.log(0.64)), ((), np.log(0.36))]]
    assert_same(run(ctc_beam_search, logits, beam_size=2, n_best=2), expected)


SEARCHES = [(ctc_greedy_search, {}), (ctc_beam_search, {"beam_size": 4, "n_best": 3})]


@pytest.mark.parametrize(("search", "options"), SEARCHES, ids=["greedy", "beam"])
def test_padding_and_batch_mates_change_nothing(search, options):
    expected = run(search, LOGITS, MASK, **options)
    more = np.pad(SPOILED, [[0, 0], [2, 3], [0, 0]], constant_values=np.nan)
    assert_same(run(search, more, np.pad(MASK, [[0, 0], [2, 3]]), **options), expected)
    for row in (3, 5):
        alone = run(search, SPOILED[[row]], MASK[[row]], **options)
        assert_same(alone, expected[row : row + 1])
    # The logits of a model predict the blank in padding.
    blank = np.where(MASK[..., None], LOGITS, [0.0, -1e9, -1e9]).astype("float32")
    assert_same(run(search, blank, **options), expected)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="of TensorFlow's graphs")
@pytest.mark.parametrize(("search", "options"), SEARCHES, ids=["greedy", "beam"])
def test_ctc_graph_of_unknown_sizes_uses_only_servable_operations(search, options):
    import tensorflow as tf

    from keras_seq.serving.graph_file.operations import ALLOWED

    specs = [tf.TensorSpec([None, None, VOCABULARY]), tf.TensorSpec([None, None], "bool")]
    graph = tf.function(lambda *tensors: search(*tensors, **options)).get_concrete_function(*specs)
    definition = graph.graph.as_graph_def()
    nodes = [*definition.node, *(n for f in definition.library.function for n in f.node_def)]
    assert {node.op for node in nodes} <= ALLOWED
    for rows, frames in ((ROWS, FRAMES), (2, 3), (3, 0), (0, 4)):
        found = graph(tf.constant(LOGITS[:rows, :frames]), tf.constant(MASK[:rows, :frames]))
        own = search(LOGITS[:rows, :frames], MASK[:rows, :frames], **options)
        for left, right in zip(found, own, strict=True):
            np.testing.assert_allclose(left, right, atol=1e-5)


def test_invalid_ctc_search_arguments_raise_value_error():
    for size in (0, 1.5):
        with pytest.raises(ValueError, match=f"`beam_size` must be .*, received {size}"):
            ctc_beam_search(LOGITS, beam_size=size)
    with pytest.raises(ValueError, match="`n_best` must be .* the beam size 2, received 3"):
        ctc_beam_search(LOGITS, beam_size=2, n_best=3)
    for search in (ctc_greedy_search, ctc_beam_search):
        with pytest.raises(ValueError, match=r"\(batch, frames, vocabulary\), received \(8, 5\)"):
            search(LOGITS[..., 0])
