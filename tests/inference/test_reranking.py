"""Outputs chosen by their expected score among the candidates of a search."""

import json
import math
from collections import Counter

import pytest
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

import keras_seq
from keras_seq.inference import translator
from keras_seq.inference.hypothesis import Hypothesis
from keras_seq.inference.reranking import rerank
from keras_seq.run import Run
from keras_seq.scoring import bleu_tokenizers
from keras_seq.settings import SearchSettings, SettingsError, load_settings
from keras_seq.text import InputError, Tokenizer

LINES = ["March 5, 2021", "", "6 mai 1999", "12.11.1987", "May 3rd"]


def expected_scores(texts, probabilities):
    """The expected chrF of each text, by sacreBLEU, in Python."""
    metric = CHRF()
    return {
        text: sum(
            probability * metric.sentence_score(text, [reference]).score
            for reference, probability in zip(texts, probabilities, strict=True)
        )
        for text in texts
    }


@pytest.mark.parametrize(
    ("normalization", "penalty"),
    [
        ("average", lambda length: length**0.7),
        ("gnmt", lambda length: ((5 + length) / 6) ** 0.7),
        ("none", lambda length: 1.0),
    ],
)
def test_candidates_of_a_beam_count_by_their_normalized_probability(normalization, penalty):
    found = [("ein Hund", 2, -0.4), ("der Hund", 3, -0.7), ("ein Hund!", 4, -0.9), ("Katze", 1, -2)]
    hypotheses = [
        # The last one did not end.
        Hypothesis(text, score / penalty(length), False, (7,) * (length - ended), ended)
        for (text, length, score), ended in zip(found, (True, True, True, False), strict=True)
    ]
    search = SearchSettings(rerank="chrf", n_best=3, length_normalization=normalization, alpha=0.7)
    norm = sum(penalty(length) for _, length, _ in found) / len(found)
    weights = [math.exp(norm * row.score) for row in hypotheses]
    expected = expected_scores(
        [text for text, *_ in found], [weight / sum(weights) for weight in weights]
    )
    results = rerank(hypotheses, search)
    assert {row.text: row.score for row in results} == pytest.approx(
        dict(sorted(expected.items(), key=lambda item: -item[1])[:3])
    )
    assert [row.score for row in results] == sorted((row.score for row in results), reverse=True)
    assert {row.text: row.tokens for row in results} == {
        row.text: row.tokens for row in hypotheses if row.text in {one.text for one in results}
    }


def test_equal_samples_are_one_text_that_counts_as_often():
    """The text that most samples agree on wins, though another is more probable."""
    texts = ["x y z", "ein Hund", "x y z", "eine Hand", "ein Hund", "ein Hund"]
    scores = [-0.1, -5.0, -0.1, -4.0, -5.0, -5.0]
    samples = [Hypothesis(*pair, False) for pair in zip(texts, scores, strict=True)]
    settings = {"method": "sampling", "n_best": 4}
    results = rerank(samples, SearchSettings(rerank="chrf", **settings))
    expected = expected_scores(list(dict.fromkeys(texts)), [2 / 6, 3 / 6, 1 / 6])
    assert {row.text: row.score for row in results} == pytest.approx(expected)
    assert results[0].text == "ein Hund"
    votes = rerank(samples, SearchSettings(rerank="exact", **settings))
    assert {row.text: row.score / 100 * 6 for row in votes} == pytest.approx(Counter(texts))
    assert rerank([], SearchSettings(rerank="exact")) == []


def test_bleu_has_the_tokenizer_of_the_run_or_one_that_fits(tmp_path, monkeypatch):
    """Without spaces, 13a finds one token in each line, and all but equal lines differ."""
    texts = ["猫がいる。", "犬が走っている。", "犬が走っている!", "犬が公園を走っている。"]
    samples = [Hypothesis(text, 0.0, False) for text in texts]
    search = SearchSettings(rerank="bleu", method="sampling", n_best=4)
    metric = BLEU(effective_order=True, tokenize="char")
    expected = {
        text: sum(metric.sentence_score(text, [other]).score for other in texts) / 4
        for text in texts
    }
    assert {row.text: row.score for row in rerank(samples, search)} == pytest.approx(expected)
    alike = rerank(samples, search, tokenize="13a")
    assert [row.score for row in alike] == pytest.approx([25.0] * 4)

    monkeypatch.setattr(translator, "IdSearch", lambda *_: None)
    run = Run.create(tmp_path / "run", load_settings(overrides={"score.tokenize": "intl"}))
    run.save_vocabularies(*[Tokenizer.train(["a b"], size=300)] * 2)
    assert keras_seq.Translator.of_run(run, None, search).tokenize == "intl"
    # Another machine may lack what a tokenizer needs.
    monkeypatch.setattr(bleu_tokenizers, "SACREBLEU_DIR", str(tmp_path))
    run.update_settings(load_settings(overrides={"score.tokenize": "flores200"}))
    with pytest.raises(InputError, match="score.tokenize: tokenizer 'flores200' needs the file"):
        keras_seq.Translator.of_run(run, None, search)


@pytest.mark.parametrize("search", [{}, {"method": "sampling", "seed": 3, "temperature": 0.8}])
def test_translator_reranks_the_candidates_of_its_search(tiny_run, search):
    sizes = {"beam_size": 6, "n_best": 6}
    candidates = keras_seq.Translator.load(tiny_run, **sizes, **search).translate(LINES)
    options = {"rerank": "chrf", "candidates": 6, "n_best": 2, **search}
    found = keras_seq.Translator.load(tiny_run, **options).translate(LINES)
    settings = SearchSettings(**options)
    assert found == [rerank(row, settings) for row in candidates]
    assert found[1] == [] and all(len(row) == 2 for i, row in enumerate(found) if i != 1)


def test_commands_rerank(tiny_run, dates_file, tmp_path, keras_seq_command):
    options = ["--rerank", "chrf", "--candidates", "4"]
    text = "".join(f"{line}\n" for line in LINES).encode()
    outcome = keras_seq_command("translate", tiny_run, *options, stdin=text)
    expected = keras_seq.translate(tiny_run, LINES, rerank="chrf", candidates=4)
    assert outcome.lines == expected
    (tmp_path / "pairs.tsv").write_text(
        "".join(f"{line}\t{target}\n" for line, target in zip(LINES, expected, strict=True) if line)
    )
    outcome = keras_seq_command(
        "evaluate", tiny_run, "--pairs", tmp_path / "pairs.tsv", *options, "--json",
        "--no-confidence", "-m", "exact",
    )  # fmt: skip
    assert json.loads(outcome.out)["metrics"]["exact"]["value"] == 100


def test_what_does_not_rerank_says_so(tiny_run, tmp_path, keras_seq_command):
    with pytest.raises(SettingsError, match=r"n_best: received 5, expected at most search.candid"):
        Run.open(tiny_run).settings.with_search({"rerank": "bleu", "candidates": 4, "n_best": 5})
    with pytest.raises(SettingsError, match=r"received chrf, expected none with task .language"):
        load_settings(preset="lm-gru", overrides={"search.rerank": "chrf"})
    for arguments in ([], ["--format", "onnx"], ["--format", "litert"]):
        path = tmp_path / "out.tflite"
        outcome = keras_seq_command(
            "export", tiny_run, path, *arguments, "--rerank", "chrf", "--verify", 0
        )
        assert outcome.error == (
            "search.rerank: received chrf, expected none: only translations by a run are reranked"
        )
        assert not path.exists()
    outcome = keras_seq_command(
        "translate", tiny_run, "a", "--engine", "ctranslate2", "--rerank", "chrf"
    )
    assert "search.rerank: received chrf, which CTranslate2 does not support" in outcome.error


def test_validations_in_a_training_do_not_rerank(tiny_run, tmp_path):
    from keras_seq.tasks.translation import validation_search

    settings = Run.open(tiny_run).settings.with_search({"rerank": "chrf"})
    assert validation_search(Run.create(tmp_path / "run", settings)).rerank == "none"
