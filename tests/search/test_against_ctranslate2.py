"""Beam search against CTranslate2 on the same random weights: other code, the same numbers.

`benchmarks/search_against_ctranslate2.py` uses a trained model and 1,000 lines.
"""

import random
from collections import Counter

import pytest
from small_transformers import random_run

from keras_seq import backend
from keras_seq.inference.translator import Translator
from keras_seq.run.models import weight_arrays
from keras_seq.serving.ctranslate2_translator import CTranslate2Translator

pytest.importorskip("ctranslate2", reason="the extra ctranslate2 is not installed")
# Other tests compare JAX with TensorFlow on the same searches.
pytestmark = pytest.mark.skipif(backend.name() == "jax", reason="runs are trained on TensorFlow")

_WORDS = "the cat sees dog a small runs to and sleeps".split()
_GENERATOR = random.Random(1)
LINES = [" ".join(_GENERATOR.choices(_WORDS, k=_GENERATOR.randint(1, 8))) for _ in range(80)]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run whose model depends on its source, rarely repeats itself, and mostly ends."""
    run, model = random_run(tmp_path_factory.mktemp("random") / "run")
    weights = weight_arrays(model)
    for name, values in weights.items():
        values *= 3 if "kernel" in name else 0.2 if name.endswith("embeddings") else 1
    weights["decoder_norm/gamma"] *= 8
    run.save_checkpoint(2, {"weights": weights}, {})
    # The end token gets the embedding of a frequent token, and becomes equally likely.
    said = Counter(
        token
        for (found,) in Translator.load(run.path, which="latest", beam_size=1).translate(LINES)
        for token in found.tokens[3:8]
    )
    (table,) = (values for name, values in weights.items() if name.endswith("embeddings"))
    table[3] = table[said.most_common(3)[-1][0]]
    run.save_checkpoint(3, {"weights": weights}, {})
    return run


def found_by_both(run, patience=None, **options):
    own = {} if patience is None else {"patience": patience}
    ours = Translator.load(run.path, which="latest", **options, **own).translate(LINES)
    theirs = CTranslate2Translator.load(run.path, which="latest", **options).translate(LINES)
    return [
        (one, other)
        for ours_of_line, theirs_of_line in zip(ours, theirs, strict=True)
        for one, other in zip(ours_of_line, theirs_of_line, strict=True)
    ]


def same(one, other):
    return (one.tokens, one.ended) == (other.tokens, other.ended)


@pytest.mark.slow
def test_greedy_search_finds_the_same_tokens_as_ctranslate2(run):
    pairs = found_by_both(run, beam_size=1)
    assert len({one.tokens for one, _ in pairs}) > 10
    assert 10 < sum(one.ended for one, _ in pairs) < len(pairs) - 10
    for one, other in pairs:
        assert same(one, other)
        assert one.score == pytest.approx(other.score, abs=1e-4)


@pytest.mark.slow
@pytest.mark.weekly
def test_beam_search_with_patience_equals_or_beats_ctranslate2(run):
    """CTranslate2 stops when twice as many hypotheses have ended as its beam has slots.

    A patience of 3 keeps this library's beam full equally long. CTranslate2 ranks truncated
    hypotheses by score among the ended ones; this library ranks them last.
    """
    pairs = found_by_both(run, patience=3.0, beam_size=4)
    whole = [pair for pair in pairs if pair[1].ended]
    assert len(whole) > 10
    for one, other in whole:
        assert same(one, other) or one.score > other.score - 1e-4
    equal = [pair for pair in pairs if same(*pair)]
    assert len(equal) >= 0.95 * len(pairs)
    for one, other in equal:
        assert one.score == pytest.approx(other.score, abs=1e-4)
