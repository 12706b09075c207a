"""Verdicts of the error analysis on a model with known probabilities and on a trained run."""

import itertools
import json
import math

import pytest
import sacrebleu
from known_model import SOURCES, KnownModel, known_tokenizer

from keras_seq.analysis.diagnosis.diagnosing import diagnose
from keras_seq.analysis.diagnosis.search_space import SearchSpace
from keras_seq.analysis.diagnosis.settings import diagnosis_settings
from keras_seq.analysis.diagnosis.symptoms import is_copy, repeats
from keras_seq.analysis.diagnosis.verdicts import judge
from keras_seq.inference.likelihood import LikelihoodScorer
from keras_seq.inference.translator import Translator
from keras_seq.run import Run
from keras_seq.settings import SearchSettings, SettingsError, load_settings
from keras_seq.text import InputError

# Source, reference, and the known output and verdict with beam 1.
KNOWN = [
    ("garden", "b c", "a c", "search error"),
    ("fault", "b", "a", "model error"),
    # The output is b, whose id is lower.
    ("even", "a", "b", "tie"),
    ("right", "c", "c", "tie"),
    ("loop", "b", "a a a a", "model error"),
    ("far", "b c d e", "a", "search error"),
    (" ", "b", "", None),
    ("", "", "", None),
]
LIMIT = 4


@pytest.fixture(scope="module")
def tokenizer():
    return known_tokenizer()


@pytest.fixture(scope="module")
def model(tokenizer):
    return KnownModel(tokenizer, SOURCES)


@pytest.fixture(scope="module")
def search():
    return SearchSettings(beam_size=1, max_length=LIMIT)


@pytest.fixture(scope="module")
def diagnosis(model, tokenizer, search):
    sources, references = [row[0] for row in KNOWN], [row[1] for row in KNOWN]
    found = {
        beam: Translator(
            model, tokenizer, tokenizer, search.model_copy(update={"beam_size": beam})
        ).translate(sources)
        for beam in (1, 5)
    }
    scorer = LikelihoodScorer(model, tokenizer, tokenizer)
    return judge(sources, references, found, scorer, search)


def test_verdicts_equal_those_known_by_construction(diagnosis):
    assert [(line.first.text, line.verdict) for line in diagnosis.lines] == [
        row[2:] for row in KNOWN
    ]
    # A wider beam fixes the search error whose reference is within reach.
    assert [line.outputs[5].verdict for line in diagnosis.lines] == [
        "tie", "model error", "tie", "tie", "tie", "search error", None, None,
    ]  # fmt: skip
    assert [line.wider_is_better for line in diagnosis.lines] == [True] + [False] * 7
    assert [line.same for line in diagnosis.lines] == [False] * 3 + [True] + [False] * 4
    assert [line.out_of_reach for line in diagnosis.lines] == (
        [None] * 5 + ["longer than the limit"] + [None] * 2
    )


def test_narrower_beam_is_not_counted_as_wider_is_better(model, tokenizer, search):
    # Beam 1 finds a better output for "loop", which does not make the wider beam better.
    found = {
        beam: Translator(
            model, tokenizer, tokenizer, search.model_copy(update={"beam_size": beam})
        ).translate(["loop"])
        for beam in (5, 1)
    }
    scorer = LikelihoodScorer(model, tokenizer, tokenizer)
    (line,) = judge(["loop"], ["b"], found, scorer, search).lines
    assert line.outputs[1].objective > line.outputs[5].objective + 0.1
    assert not line.wider_is_better and line.first is line.outputs[5]


def test_objectives_follow_from_the_model_probabilities(diagnosis, model):
    for line in diagnosis.lines[:6]:
        for target in (line.reference, *line.outputs.values()):
            expected = model.objective(line.source, target.text)
            assert target.objective == pytest.approx(expected, abs=1e-4), (line.source, target)
    # Computed by hand: 0.55 * 0.3 * 0.95 over three tokens.
    assert diagnosis.lines[0].first.objective == pytest.approx(math.log(0.55 * 0.3 * 0.95) / 3)
    assert diagnosis.lines[0].margin == pytest.approx(math.log(0.4 * 0.95 / 0.55 / 0.3) / 3)


def test_output_signs_report_truncation_repetition_and_chrf(diagnosis):
    loop = diagnosis.lines[4]
    assert [line.first.truncated for line in diagnosis.lines] == [False] * 4 + [True] + [False] * 3
    assert loop.first.repeats and not loop.reference.repeats
    # Truncated at four tokens; the score includes the end token that was never generated.
    assert loop.first.tokens == LIMIT + 1
    assert [line.first.empty for line in diagnosis.lines] == [False] * 6 + [True] * 2
    for line in diagnosis.lines:
        for output in line.outputs.values():
            expected = sacrebleu.sentence_chrf(output.text, [line.reference.text]).score
            assert output.chrf == pytest.approx(expected)


def test_diagnosis_counts_add_up(diagnosis):
    totals = diagnosis.totals
    assert totals == {
        "lines": 8,
        "search_errors": 2,
        "model_errors": 2,
        "ties": 2,
        "not_judged": 2,
        "same": 1,
        "out_of_reach": 1,
        "wider_is_better": 1,
        "truncated_sources": 0,
    }
    for beam, one in diagnosis.beams.items():
        outputs = [line.outputs[beam] for line in diagnosis.lines]
        verdicts = [output.verdict for output in outputs]
        assert one.search_errors == verdicts.count("search error")
        assert one.model_errors == verdicts.count("model error")
        assert one.search_errors + one.model_errors + one.ties + totals["not_judged"] == 8
        # Beam 5 finds an end for the source that beam 1 repeats forever.
        assert (one.empty, one.copies) == (2, 0)
        assert (one.truncated, one.repetitions) == ((1, 1) if beam == 1 else (0, 0))
        assert one.objective == pytest.approx(sum(o.objective for o in outputs) / 8)
        tokens = sum(line.reference.tokens for line in diagnosis.lines)
        assert one.length_ratio == pytest.approx(sum(o.tokens for o in outputs) / tokens)
    assert diagnosis.references.length_ratio == 1
    assert diagnosis.references.empty == 1


def test_diagnosis_bleu_equals_sacrebleu(diagnosis):
    references = [[line.reference.text for line in diagnosis.lines]]
    metric = sacrebleu.BLEU(force=True)

    def expected(texts):
        return metric.corpus_score(texts, references).score

    for beam, one in diagnosis.beams.items():
        texts = [line.outputs[beam].text for line in diagnosis.lines]
        assert one.bleu.value == expected(texts)
        assert one.bleu.signature == str(metric.get_signature())
    mended = [row[1] if row[3] == "search error" else row[2] for row in KNOWN]
    assert diagnosis.oracle_bleu.value == expected(mended)


def test_objectives_follow_each_length_normalization(model, tokenizer):
    scorer = LikelihoodScorer(model, tokenizer, tokenizer)
    for name, alpha, penalty in (
        ("none", 1.0, lambda length: 1),
        ("average", 0.5, lambda length: length**0.5),
        ("gnmt", 0.6, lambda length: ((5 + length) / 6) ** 0.6),
    ):
        search = SearchSettings(beam_size=1, length_normalization=name, alpha=alpha)
        found = Translator(model, tokenizer, tokenizer, search).translate(["garden"])
        (line,) = judge(["garden"], ["b c"], {1: found}, scorer, search).lines
        for target in (line.reference, line.first):
            expected = model.log_probability("garden", target.text) / penalty(3)
            assert target.objective == pytest.approx(expected, abs=1e-4)
        assert line.first.objective == pytest.approx(found[0][0].score, abs=1e-4)


def test_another_tokenization_of_the_same_text_is_a_tie(tokenizer, model, search):
    from keras_seq.inference.hypothesis import Hypothesis

    # A space and a byte token instead of the piece: a search may find both.
    by_text = {piece.text: i for i, piece in enumerate(tokenizer.pieces)}
    ids = (by_text["\u2581"], by_text["<0x63>"])
    text = tokenizer.decode([ids])[0]
    assert text == "c" and list(ids) != tokenizer.encode(["c"])[0]
    scorer = LikelihoodScorer(model, tokenizer, tokenizer)
    found = {1: [[Hypothesis(text, -9.0, False, ids)]]}
    (line,) = judge(["right"], ["c"], found, scorer, search).lines
    assert (line.verdict, line.same) == ("tie", True)
    assert abs(line.margin) > 1


def test_diagnosis_json_contains_every_field(diagnosis, search):
    found = json.loads(json.dumps(diagnosis.to_dict(), allow_nan=False))
    assert list(found) == [
        "format", "search", "totals", "beams", "references", "oracle_bleu", "lines",
    ]  # fmt: skip
    assert found["format"] == "keras-seq diagnosis 1"
    assert found["totals"] == diagnosis.totals
    assert found["search"]["max_length"] == LIMIT
    assert found["search"]["length_normalization"] == "average"
    assert [one["beam"] for one in found["beams"]] == [1, 5]
    shape = {
        "beam": int, "bleu": dict, "objective": float, "length_ratio": float, "copies": int,
        "repetitions": int, "empty": int, "truncated": int, "search_errors": int,
        "model_errors": int, "ties": int,
    }  # fmt: skip
    for one in found["beams"]:
        assert {name: type(value) for name, value in one.items()} == shape
        assert {name: type(value) for name, value in one["bleu"].items()} == {
            "value": float,
            "signature": str,
        }
    for name in ("beam", "bleu", "truncated", "search_errors", "model_errors", "ties"):
        del shape[name]
    assert {name: type(value) for name, value in found["references"].items()} == shape
    text = {
        "text": str, "objective": float, "tokens": int, "copies": bool, "repeats": bool,
        "empty": bool,
    }  # fmt: skip
    for line, expected in zip(found["lines"], diagnosis.lines, strict=True):
        assert set(line) == {
            "number", "verdict", "margin", "same", "wider_is_better", "source_truncated",
            "out_of_reach", "source", "reference", "outputs",
        }  # fmt: skip
        assert {name: type(value) for name, value in line["reference"].items()} == text
        for output in line["outputs"]:
            kinds = {name: type(value) for name, value in output.items()}
            assert kinds.pop("verdict") is (str if line["verdict"] else type(None))
            assert kinds == text | {"beam": int, "chrf": float, "truncated": bool}
        assert line["verdict"] == expected.verdict == line["outputs"][0]["verdict"]
        assert line["margin"] == expected.margin


def test_judge_rejects_mismatched_or_empty_inputs(model, tokenizer, search):
    scorer = LikelihoodScorer(model, tokenizer, tokenizer)
    for sources, references, found in (
        ([], [], {1: []}),
        (["a"], ["a", "b"], {1: [[]]}),
        (["a"], ["a"], {1: [[], []]}),
        (["a"], ["a"], {}),
    ):
        with pytest.raises(ValueError, match="expected"):
            judge(sources, references, found, scorer, search)


# Targets within reach of a search


def test_reach_equals_the_texts_the_search_rules_allow(tokenizer):
    texts = [" ".join(words) for n in range(6) for words in itertools.product("abc", repeat=n)]
    for rules, allowed in (
        ({}, lambda words: len(words) <= 3),
        ({"min_length": 3}, lambda words: 2 <= len(words) <= 3),
        ({"no_repeat_ngram_size": 1}, lambda words: len({*words}) == len(words) <= 3),
        (
            {"no_repeat_ngram_size": 2, "max_length": 9},
            lambda words: (
                len({*itertools.pairwise(words)}) == len([*itertools.pairwise(words)])
                and len(words) <= 5
            ),
        ),
        ({"forbidden": ["b", "a c"]}, lambda words: "b" not in words and "ac" not in "".join(words)
         and len(words) <= 3),
        # The rules do not apply to the prefix, and the prefix shifts the length limit.
        ({"prefix": "a a", "no_repeat_ngram_size": 1},
         lambda words: words[:2] == ["a", "a"] and len({*words}) == len(words) - 1),
        ({"prefix": "b a", "forbidden": "b", "max_length": 9, "max_length_extra": 1},
         lambda words: words[:2] == ["b", "a"] and "b" not in words[2:] and len(words) <= 2),
    ):  # fmt: skip
        search = SearchSettings(
            **{"max_length_ratio": 0.5, "max_length_extra": 3, "max_length": 9} | rules
        )
        space = SearchSpace(search, tokenizer)
        # The source has two tokens with the end token: 2 * 0.5 + 3 = 4, three words and the end.
        (limits,) = space.limits([1])
        reachable = {
            text
            for text, ids in zip(texts, tokenizer.encode(texts), strict=True)
            if space.out_of_reach(ids, limits) is None
        }
        most = limits[1] - 1
        expected = {t for t in texts if allowed(t.split()) and len(t.split()) <= most}
        assert reachable == expected, rules


def test_length_limits_follow_each_source(tokenizer):
    space = SearchSpace(
        SearchSettings(max_length_ratio=1.5, max_length_extra=2, max_length=9), tokenizer
    )
    # The end token of the source counts: floor(1.5 * (n + 1)) + 2, at most 9.
    assert space.limits([0, 1, 2, 50] * 2000) == [(1, 3), (1, 5), (1, 6), (1, 9)] * 2000
    assert space.out_of_reach([1], (1, 9)) == "with a token that is never generated"


# Output signs


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ("A dog runs .", "A dog runs .", True),
        ("one two three four five", "one two three four cinq", True),
        ("one two three four five", "one two three quatre cinq", False),
        ("the the the the", "the", False),
        ("2021", "2021", True),
        ("2021", "2022", False),
        ("", "", False),
    ],
)
def test_copies_of_the_source_are_detected(source, text, expected):
    assert is_copy(source, text) is expected


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ("x a a a y", True),
        ("x a a y a", False),
        ("a b c a b c a b c", True),
        ("a b c a b c a b", False),
        (" ".join("abcdefgh" * 3), True),
        (" ".join("abcdefghi" * 3), False),
        ("2 0 0 0", False),
        (". . .", True),
        ("", False),
    ],
)
def test_repeated_ngrams_are_detected(pieces, expected):
    assert repeats(pieces.split()) is expected


# A trained run


@pytest.mark.slow
@pytest.mark.weekly
def test_a_run_is_diagnosed_with_its_settings(tiny_run):
    sources = ["March 5, 2021", "5 mai 1999", "", "friday " * 300]
    references = ["2021-03-05", "1999-05-05", "", "2000-01-01"]
    notices = []
    found = diagnose(
        tiny_run, sources, references, beam_sizes=(2, 1), notice=notices.append, max_length=9
    )
    assert [notice.partition(":")[0] for notice in notices] == ["beam 2", "beam 1"]
    assert list(found.beams) == [2, 1]
    assert found.search.max_length == 9
    assert [line.source_truncated for line in found.lines] == [False] * 3 + [True]
    for beam in (2, 1):
        translator = Translator.load(tiny_run, beam_size=beam, max_length=9)
        every = translator.translate(sources)
        for line, hypotheses in zip(found.lines, every, strict=True):
            output = line.outputs[beam]
            assert output.text == (hypotheses[0].text if hypotheses else "")
            if hypotheses and not output.truncated:
                assert output.objective == pytest.approx(hypotheses[0].score, abs=1e-4)
            if hypotheses and not line.source_truncated:
                assert output.truncated == hypotheses[0].truncated
    scorer = LikelihoodScorer.load(tiny_run)
    for line, one in zip(found.lines, scorer(sources, references), strict=True):
        assert line.reference.objective == pytest.approx(one.total / max(1, len(one.tokens)))


def test_diagnose_rejects_invalid_arguments(tiny_run, tmp_path):
    with pytest.raises(TypeError, match="must be a list of strings"):
        diagnose(tiny_run, "a", "b")
    with pytest.raises(ValueError, match="received 1 sources and 2 references"):
        diagnose(tiny_run, ["a"], ["a", "b"])
    with pytest.raises(InputError, match="no such run directory"):
        diagnose(tmp_path / "absent", ["a"], ["a"])
    with pytest.raises(SettingsError, match="search.beam_size: received 0"):
        diagnose(tiny_run, ["a"], ["a"], beam_sizes=(0,))
    assert Run.open(tiny_run).settings.search.method == "beam"


def test_diagnosis_settings_vary_the_beam_and_reject_penalties():
    settings = load_settings(overrides={"search.n_best": 4, "search.alpha": 0.6})
    notices = []
    found = diagnosis_settings(settings, (1, 5), {"max_length": 9}, notices.append)
    assert {beam: (one.beam_size, one.n_best, one.alpha) for beam, one in found.items()} == {
        1: (1, 1, 0.6),
        5: (5, 1, 0.6),
    }
    assert not notices
    for beams in ((), (5, 5)):
        with pytest.raises(SettingsError, match="expected different beam sizes"):
            diagnosis_settings(settings, beams)
    for name in ("coverage_penalty", "repetition_penalty"):
        with pytest.raises(SettingsError, match=f"--{name.replace('_', '-')}"):
            diagnosis_settings(settings, (5,), {name: 1.5})
    with pytest.raises(SettingsError, match="alpha"):
        diagnosis_settings(settings, (5,), {"alpha": -1})
    sampling = load_settings(overrides={"search.method": "sampling", "search.top_k": 9})
    assert diagnosis_settings(sampling, (5,), {}, notices.append)[5].method == "beam"
    assert notices == ["the run samples its translations; the diagnosis uses beam search"]
