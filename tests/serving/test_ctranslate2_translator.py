"""`CTranslate2Translator` has the interface, limits and scores of `Translator`."""

import functools
import random
import shutil
import subprocess
import sys

import keras
import pytest
from small_transformers import SOURCES, TARGETS, learned_run, padded, random_run

from keras_seq.inference.translator import Translator
from keras_seq.run import Run
from keras_seq.run.models import weight_arrays
from keras_seq.search import forced_scores
from keras_seq.serving.ctranslate2_spec import make_spec, open_spec, vocabularies
from keras_seq.serving.ctranslate2_translator import CTranslate2Translator
from keras_seq.settings import SearchSettings, SettingsError, load_settings
from keras_seq.text import InputError

pytestmark = pytest.mark.slow

ctranslate2 = pytest.importorskip("ctranslate2", reason="the extra ctranslate2 is not installed")

_WORDS = "the cat sees dog a small runs to and sleeps zebra x".split()
_GENERATOR = random.Random(1)
LINES = [
    "",
    *SOURCES,
    "日本語 😀 </s> <unk>",
    " \t\u3000",
    "e\u0301 " * 30,
    "a\x00b\u2028c\r",
    *(" ".join(_GENERATOR.choices(_WORDS, k=_GENERATOR.randint(1, 12))) for _ in range(60)),
]


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A run that has memorized four sentences, with separate vocabularies, and its model."""
    return learned_run(tmp_path_factory.mktemp("learned") / "run")


@pytest.fixture(scope="module")
def engines(learned):
    """Returns a function that loads both engines once for given search settings."""

    @functools.cache
    def make(**search):
        path = learned[0].path
        return Translator.load(path, **search), CTranslate2Translator.load(path, **search)

    return make


def assert_same(expected, found):
    assert [[h.text for h in row] for row in found] == [[h.text for h in row] for row in expected]
    for one, other in zip(sum(expected, []), sum(found, []), strict=True):
        assert other.score == pytest.approx(one.score, abs=1e-4)
        assert other.truncated == one.truncated


@pytest.mark.weekly
def test_both_engines_reproduce_the_memorized_translations(engines):
    for found in engines(beam_size=4):
        assert found([SOURCES[3], "", SOURCES[0], SOURCES[1]]) == [
            TARGETS[3],
            "",
            TARGETS[0],
            TARGETS[1],
        ]


def test_greedy_translations_equal_those_of_translator(engines):
    expected, found = (engine.translate(LINES) for engine in engines(beam_size=1))
    assert_same(expected, found)
    assert found[0] == found[6] == []


def test_per_row_length_limits_equal_those_of_translator(engines):
    search = {"beam_size": 1, "max_length_ratio": 0.3, "max_length_extra": 2, "max_length": 6}
    expected, found = (engine.translate(LINES) for engine in engines(**search))
    assert_same(expected, found)
    cut = sum(h.truncated for row in found for h in row)
    assert 0 < cut < len(LINES)


def test_beam_search_mostly_matches_translator_and_is_rarely_worse(engines):
    expected, found = (engine.translate(LINES) for engine in engines(beam_size=3))
    same = worse = 0
    for ours, theirs in zip(expected, found, strict=True):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            if one.text == other.text:
                same += 1
                assert other.score == pytest.approx(one.score, abs=1e-4)
                assert other.truncated == one.truncated
            else:
                worse += (other.truncated, -other.score) > (one.truncated, -one.score)
    assert same > 0.9 * len(LINES)
    # Neither search is exhaustive, so a few rows may be worse.
    assert worse <= 0.03 * len(LINES)


@pytest.mark.parametrize("joint", [False])
def test_endless_translations_are_truncated_as_by_translator(tmp_path, joint):
    run, _ = random_run(tmp_path / "run", joint=joint)
    for beam_size in (1, 3):
        expected, found = (
            engine.load(run.path, beam_size=beam_size).translate(LINES)
            for engine in (Translator, CTranslate2Translator)
        )
        assert_same(expected, found)
        assert sum(h.truncated for row in found for h in row) > len(LINES) / 2


@pytest.mark.parametrize(
    ("normalization", "alpha"), [("average", 1.0), ("average", 0.3), ("none", 1.0)]
)
def test_scores_are_length_normalized_log_probabilities_of_the_model(learned, normalization, alpha):
    run, model = learned
    search = SearchSettings(
        beam_size=4, n_best=4, length_normalization=normalization, alpha=alpha, max_length=12
    )
    source, target = run.source_tokenizer, run.target_tokenizer
    engine = CTranslate2Translator(
        open_spec(make_spec(run, positions=40), "float32"), source, target, search
    )
    checked = 0
    for line in SOURCES:
        (found,) = engine.translate([line])
        assert len({h.text for h in found}) > 1
        best_first = [(h.truncated, -h.score) for h in found]
        assert best_first == sorted(best_first)
        for text in {h.text for h in found if not h.truncated}:
            ids = target.encode([text])[0]
            scores = forced_scores(
                model,
                padded([[*source.encode([line])[0], 3]]),
                padded([[2, *ids]]),
                padded([[*ids, 3]]),
            )
            power = 0 if normalization == "none" else alpha
            total = float(keras.ops.sum(scores)) / (len(ids) + 1) ** power
            # The same text has another score if it is split into other pieces.
            of_text = [h.score for h in found if h.text == text]
            checked += min(abs(score - total) for score in of_text) < 1e-4
    assert checked >= 3


def test_finished_hypotheses_rank_before_truncated_ones(engines):
    _, engine = engines(beam_size=4, n_best=4, max_length=5)
    found = engine.translate(LINES)
    mixed = [row for row in found if {h.truncated for h in row} == {True, False}]
    assert any(row[0].score < row[-1].score for row in mixed)
    for row in mixed:
        assert [h.truncated for h in row] == sorted(h.truncated for h in row)


def test_batch_size_does_not_change_translations(learned):
    one, many = (
        CTranslate2Translator.load(
            learned[0].path, beam_size=3, n_best=2, batch_size=size
        ).translate(LINES)
        for size in (1, 50)
    )
    assert_same(one, many)


def test_suppressed_tokens_keep_their_probability_as_in_translator(learned, tmp_path):
    run, model = learned
    weights = weight_arrays(model)
    # Make the unknown token slightly likelier than the first token of a translation.
    table = weights["target_embedding/embeddings"]
    table[1] = 1.05 * table[run.target_tokenizer.encode(TARGETS[1:2])[0][0]]
    shutil.copytree(run.path, tmp_path / "run")
    run = Run.open(tmp_path / "run")
    run.save_checkpoint(2, {"weights": weights}, {})
    source_pieces, _ = vocabularies(run.source_tokenizer, run.target_tokenizer)
    rows = [[source_pieces[i] for i in ids] for ids in run.source_tokenizer.encode(SOURCES)]
    plain = open_spec(make_spec(run, positions=256), "float32").translate_batch(
        rows, beam_size=1, max_decoding_length=20, return_end_token=True
    )
    # One result has <unk> and ends normally, so only <unk> can cause its second search.
    assert any({"<unk>", "</s>"} <= set(result.hypotheses[0]) for result in plain)
    expected, found = (
        engine.load(run.path, beam_size=1).translate(SOURCES)
        for engine in (Translator, CTranslate2Translator)
    )
    assert_same(expected, found)
    assert found[1][0].text == TARGETS[1]


def test_too_long_source_is_cut_and_marked_as_truncated(tmp_path, learned):
    run, _ = learned
    longest = len(run.source_tokenizer.encode([SOURCES[0]])[0])
    engine = CTranslate2Translator(
        open_spec(make_spec(run, positions=40), "float32"),
        run.source_tokenizer,
        run.target_tokenizer,
        run.settings.search,
        longest,
    )
    line = f"{SOURCES[0]} zebra"
    (whole,), (cut,), (huge,) = engine.translate([SOURCES[0], line, f"{line} " * 10_000])
    assert whole[:3] == (TARGETS[0], whole.score, False)
    assert cut[:3] == (TARGETS[0], pytest.approx(whole.score, abs=1e-4), True)
    assert huge[:3] == (TARGETS[0], pytest.approx(whole.score, abs=1e-4), True)


def test_longest_source_and_translation_equal_those_of_translator(tmp_path):
    run, _ = random_run(
        tmp_path / "run", **{"data.max_source_length": 700, "search.max_length_ratio": 1.0}
    )
    line = "dog cat " * 1000
    expected, found = (
        engine.load(run.path, beam_size=1, max_length=690).translate([line])
        for engine in (Translator, CTranslate2Translator)
    )
    assert found[0][0].truncated
    assert found[0][0].text == expected[0][0].text
    assert found[0][0].score == pytest.approx(expected[0][0].score, abs=1e-4)


def test_int8_scores_differ_slightly_from_float32_scores(learned):
    path = learned[0].path
    if "int8" not in ctranslate2.get_supported_compute_types("cpu"):
        pytest.skip("CTranslate2 has no int8 on this processor")
    exact, rounded = (
        CTranslate2Translator.load(path, quantize=quantize).translate(SOURCES)
        for quantize in ("float32", "int8")
    )
    differences = [
        abs(one[0].score - other[0].score) for one, other in zip(exact, rounded, strict=True)
    ]
    assert 1e-6 < max(differences) < 0.5
    assert rounded[1][0].text == TARGETS[1]


def test_load_reads_the_current_best_or_latest_checkpoint(tmp_path, learned):
    run, model = random_run(tmp_path / "run")
    before = CTranslate2Translator.load(run.path)(SOURCES)
    for weight in model.weights:
        weight.assign(weight.value * 0.5)
    run.save_checkpoint(2, {"weights": weight_arrays(model)}, {})
    after = CTranslate2Translator.load(run.path)(SOURCES)
    assert after == Translator.load(run.path)(SOURCES) != before
    run.mark_best(1)
    assert CTranslate2Translator.load(run.path)(SOURCES) == before
    assert CTranslate2Translator.load(run.path, which="latest")(SOURCES) == after


def test_ctranslate2_translator_imports_neither_keras_nor_its_backends(learned):
    script = """
import sys
from keras_seq.serving import CTranslate2Translator
print(CTranslate2Translator.load(sys.argv[1])([sys.argv[2]])[0])
print({"keras", "tensorflow", "jax"} & set(sys.modules))
"""
    result = subprocess.run(
        [sys.executable, "-c", script, learned[0].path, SOURCES[1]],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.splitlines() == [TARGETS[1], "set()"]


def test_unsupported_search_quantization_or_family_raises_input_error(learned, tmp_path):
    load = CTranslate2Translator.load
    path = learned[0].path
    with pytest.raises(InputError, match=r'CTranslate2 has no "gnmt", expected "average"'):
        load(path, length_normalization="gnmt")
    with pytest.raises(InputError, match="quantize: received 'int9', expected .*float32"):
        load(path, quantize="int9")
    rnn = Run.create(tmp_path / "rnn", load_settings(preset="rnn-small"))
    with pytest.raises(InputError, match="rnn: model.family: received 'rnn'; CTranslate2 supports"):
        load(rnn.path)


def test_missing_run_or_checkpoint_and_wrong_arguments_raise_errors(learned, tmp_path):
    load = CTranslate2Translator.load
    with pytest.raises(InputError, match="no such run directory"):
        load(tmp_path / "nothing")
    Run.create(tmp_path / "untrained", load_settings())
    with pytest.raises(InputError, match="no checkpoint, the training has not saved one yet"):
        load(tmp_path / "untrained")
    with pytest.raises(SettingsError, match="search.beam_siz.*search.beam_size"):
        load(learned[0].path, beam_siz=3)
    with pytest.raises(TypeError, match=r"received one string"):
        load(learned[0].path)("the cat")
    with pytest.raises(InputError, match="never generates the unknown token"):
        CTranslate2Translator(None, None, None, SearchSettings(), unknown=True)


@pytest.mark.parametrize("name", ["ctranslate2", "ctranslate2.specs"])
def test_missing_ctranslate2_error_names_the_pip_extra(learned, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(InputError) as raised:
        CTranslate2Translator.load(learned[0].path)
    assert str(raised.value) == (
        "CTranslate2 is not installed: python -m pip install 'keras-seq[ctranslate2]'"
    )
