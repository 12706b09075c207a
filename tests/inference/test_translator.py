"""Translation of text, against a plain Python beam search over a slow numpy Transformer."""

import keras
import numpy as np
import pytest
import reference_transformer as reference
from plain_search import plain_beam_search

import keras_seq
from keras_seq.inference.translator import Hypothesis, Translator
from keras_seq.losses import SequenceCrossEntropy
from keras_seq.models import Transformer
from keras_seq.settings import SearchSettings
from keras_seq.text import Tokenizer

SOURCES = ["the cat sees the dog", "a dog", "the small dog runs to the cat and sleeps", "cat"]
TARGETS = ["der hund sieht die katze", "ein hund", "die katze schläft", "katze und hund"]
LIMIT = 20


@pytest.fixture(scope="module")
def parts():
    """A model that has memorized four sentences, and its tokenizers."""
    source, target = Tokenizer.train(SOURCES, size=280), Tokenizer.train(TARGETS, size=281)
    keras.utils.set_random_seed(0)
    model = Transformer(
        source.vocabulary_size,
        target.vocabulary_size,
        num_encoder_layers=1,
        num_decoder_layers=1,
        units=16,
        feedforward_units=16,
        num_heads=2,
        dropout=0.0,
    )
    model.compile(keras.optimizers.Adam(0.02), SequenceCrossEntropy())
    outputs = padded([[*ids, 3] for ids in target.encode(TARGETS)])
    inputs = {
        "source": padded([[*ids, 3] for ids in source.encode(SOURCES)]),
        "target": padded([[2, *ids] for ids in target.encode(TARGETS)]),
    }
    model.fit(inputs, outputs, epochs=40, verbose=0)
    return model, source, target


def longest(parts):
    """The maximum source length: that of the first source, which is not the longest."""
    return len(parts[1].encode(SOURCES)[0])


def padded(rows):
    width = max(map(len, rows))
    return np.array([[*row, *[0] * (width - len(row))] for row in rows], "int32")


@pytest.fixture(scope="module")
def made(parts):
    """Builds translators from search settings and caches each, because compiling is slow."""
    known = {}

    def make(**search):
        key = tuple(search.items())
        if key not in known:
            settings = SearchSettings(
                max_length=LIMIT, **{"beam_size": 2, "batch_size": 4} | search
            )
            known[key] = Translator(*parts, settings, longest(parts))
        return known[key]

    return make


def expected_hypotheses(parts, line, beam_size=2, n_best=1):
    model, source, target = parts
    ids = [*source.encode([line])[0][: longest(parts)], 3]
    weights = reference.named_arrays(model)

    def chain(tokens):
        logits = reference.transformer_row(np.array(ids), np.array([2, *tokens]), weights, 2, "pre")
        return reference.log_softmax(logits[-1])

    limit = min(LIMIT, 2 * len(ids) + 10)
    found = plain_beam_search(chain, beam_size, n_best, limit)
    texts = target.decode([[token for token in f.tokens if token != 3] for f in found])
    return [
        Hypothesis(
            text,
            pytest.approx(f.score, abs=1e-4),
            f.truncated,
            tuple(token for token in f.tokens if token != 3),
        )
        for text, f in zip(texts, found, strict=True)
    ]


def test_translator_equals_plain_python_search_for_each_line(parts, made):
    lines = [*SOURCES, "cat dog"]
    translated = made(n_best=2).translate(lines)
    for line, hypotheses in zip(lines, translated, strict=True):
        expected = expected_hypotheses(parts, line, n_best=2)
        too_long = len(parts[1].encode([line])[0]) > longest(parts)
        assert hypotheses == [h._replace(truncated=h.truncated or too_long) for h in expected]
    assert {h.truncated for hypotheses in translated for h in hypotheses} == {True, False}
    assert made(n_best=2)(lines) == [hypotheses[0].text for hypotheses in translated]


def test_translator_returns_memorized_translations(made):
    assert made()([SOURCES[3], SOURCES[0], SOURCES[1]]) == [TARGETS[3], TARGETS[0], TARGETS[1]]


def test_blank_lines_stay_blank_and_all_lines_in_order(made):
    translator = made()
    alone = {line: translator([line])[0] for line in SOURCES}
    assert len(set(alone.values())) == 4
    lines = ["", SOURCES[1], " \t ", SOURCES[2], SOURCES[0], "\u3000", SOURCES[3], SOURCES[1], ""]
    assert translator(lines) == [alone.get(line, "") for line in lines]
    assert translator.translate(["", " "]) == [[], []]
    assert translator([]) == []


def test_batch_size_does_not_change_translations(made):
    lines = [*SOURCES, *reversed(SOURCES), SOURCES[2]]
    one, many = made(batch_size=1).translate(lines), made(batch_size=4).translate(lines)
    for left, right in zip(one, many, strict=True):
        assert [h.text for h in left] == [h.text for h in right]
        assert left[0].score == pytest.approx(right[0].score, abs=1e-4)


def test_several_translations_come_best_first(made):
    for hypotheses in made(n_best=2).translate(SOURCES):
        assert len(hypotheses) == 2
        assert hypotheses[0].text != hypotheses[1].text
        # Ended translations come before truncated ones, whatever their scores.
        assert hypotheses[0].score > hypotheses[1].score or hypotheses[1].truncated


def test_too_long_source_is_truncated_and_marked(parts, made):
    line = f"{SOURCES[0]} zebra"
    encode = parts[1].encode
    assert encode([line])[0][: longest(parts)] == encode(SOURCES)[0]
    (whole,), (cut,), (huge,) = made().translate([SOURCES[0], line, f"{line} " * 10_000])
    assert whole == (TARGETS[0], whole.score, False, whole.tokens, True)
    assert cut == (TARGETS[0], pytest.approx(whole.score, abs=1e-4), True, whole.tokens, True)
    # A matrix product does not sum all of its rows in the same order.
    assert huge == cut._replace(score=pytest.approx(cut.score, abs=1e-6))


def test_text_that_training_never_saw_is_translated_too(made):
    lines = ["日本語 😀", "\x00", "</s> <s>", "a\u200bb", "e\u0301" * 3]
    translated = made().translate(lines)
    assert len(translated) == 5
    assert all(len(hypotheses) == 1 for hypotheses in translated if hypotheses)
    assert translated[0] and translated[2]


def test_translator_uses_the_current_weights(parts, made):
    model = parts[0]
    before = made()(SOURCES)
    kept = model.get_weights()
    reference.randomize(model)
    other = made()(SOURCES)
    model.set_weights(kept)
    assert other != before
    assert made()(SOURCES) == before


def test_number_of_parallel_searches_does_not_change_translations(made, monkeypatch):
    lines = [*SOURCES, *reversed(SOURCES), SOURCES[2]] * 3
    monkeypatch.setenv("TF_NUM_INTEROP_THREADS", "1")
    alone = made(batch_size=2).translate(lines)
    monkeypatch.setenv("TF_NUM_INTEROP_THREADS", "4")
    together = made(batch_size=2).translate(lines)
    for left, right in zip(alone, together, strict=True):
        assert [h.text for h in left] == [h.text for h in right]
        assert left[0].score == pytest.approx(right[0].score, abs=1e-6)


def test_translator_rejects_a_single_string(made):
    with pytest.raises(TypeError, match=r"a list of strings, received one string"):
        made()("the cat")


def test_translator_loads_the_best_or_latest_checkpoint_of_a_run(tiny_run):
    lines = ["2 January 2026", "", "5 maart 1999"]
    best = keras_seq.Translator.load(tiny_run)
    translated = best(lines)
    assert len(translated) == 3 and translated[1] == ""
    assert best(lines) == translated
    latest = keras_seq.Translator.load(tiny_run, which="latest")
    assert len(latest(lines)) == 3


def test_search_settings_can_be_changed_at_loading(tiny_run):
    translator = keras_seq.Translator.load(tiny_run, beam_size=3, n_best=3, max_length=4)
    (hypotheses,) = translator.translate(["2 January 2026"])
    assert len(hypotheses) == 3


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ({"beam_siz": 3}, "search.beam_siz.*search.beam_size"),
        ({"beam_size": 0}, "search.beam_size: received 0, expected"),
        ({"n_best": 50}, "n_best: received 50, expected at most"),
    ],
)
def test_wrong_search_settings_raise_settings_error(tiny_run, search, message):
    with pytest.raises(keras_seq.SettingsError, match=message):
        keras_seq.Translator.load(tiny_run, **search)


def test_loading_a_missing_or_untrained_run_raises_input_error(tmp_path):
    with pytest.raises(keras_seq.InputError, match="no such run directory"):
        keras_seq.Translator.load(tmp_path / "nothing")
    with pytest.raises(keras_seq.InputError, match="not a run directory of keras-seq"):
        keras_seq.Translator.load(tmp_path)
    keras_seq.Run.create(tmp_path / "untrained", keras_seq.load_settings())
    with pytest.raises(keras_seq.InputError, match="no checkpoint"):
        keras_seq.Translator.load(tmp_path / "untrained")
