"""Reranking by a model of the opposite direction and a language model."""

import numpy as np
import pytest
from sacrebleu.metrics.bleu import BLEU
from training.toy import quiet_train, toy_settings, write_pairs

import keras_seq
from keras_seq import LikelihoodScorer, NoisyChannelTranslator, Translator
from keras_seq.inference.hypothesis import Hypothesis
from keras_seq.inference.noisy_channel import ChannelWeights, _Candidate
from keras_seq.settings import load_settings
from keras_seq.text import InputError

pytestmark = pytest.mark.slow

# A checkpoint of the run after half of its updates.
WEAK = 60


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("channel")


@pytest.fixture(scope="module")
def run(folder):
    """A run that copies letters, so that it also translates in the opposite direction."""
    for name, count, seed in (("train.tsv", 500, 1), ("valid.tsv", 12, 2)):
        write_pairs(folder / name, count, seed, reverse=False)
    settings = toy_settings(
        folder,
        model__units=32,
        model__feedforward_units=32,
        model__dropout=0.0,
        training__ema=0.9,
        training__max_steps=120,
        training__validate_every=60,
        training__checkpoint_every=60,
    )
    quiet_train(settings, folder / "run")
    return folder / "run"


@pytest.fixture(scope="module")
def language_model(folder):
    lines = [target for _, target in write_pairs(folder / "lm.tsv", 100, seed=3)]
    (folder / "lines").write_text("".join(f"{line}\n" for line in lines))
    settings = load_settings(
        preset="lm-gru",
        overrides={
            "data.text": str(folder / "lines"),
            "data.valid_text": str(folder / "lines"),
            "model.embedding_units": 8,
            "model.units": 8,
            "training.max_steps": 4,
            "training.validate_every": 4,
        },
    )
    quiet_train(settings, folder / "lm")
    return folder / "lm"


@pytest.mark.weekly
def test_scores_are_those_of_the_three_models(run, language_model):
    lines = ["a b c d e", "", "h h a"]
    weights = ChannelWeights(0.7, 0.2)
    options = {"reverse": run, "language_model": language_model, "candidates": 4, "which": WEAK}
    translator = NoisyChannelTranslator.load(run, weights=weights, **options)
    found = translator.translate(lines)
    assert [len(row) for row in found] == [4, 0, 4]
    assert translator(lines) == [row[0].text if row else "" for row in found]
    search = Translator.load(run, beam_size=4, n_best=4, which=WEAK).translate(lines)
    reverse, fluency = LikelihoodScorer.load(run), LikelihoodScorer.load(language_model)
    for line, row, candidates in zip(lines, found, search, strict=True):
        expected = {}
        for one in candidates:
            (back,), (alone,) = reverse([one.text], [line]), fluency([""], [one.text])
            total = 0.7 * sum(back.log_probabilities) + 0.2 * sum(alone.log_probabilities)
            # The end of the line is a token too.
            expected[one.text] = one.score + total / (len(line.split()) + 1)
        received = {one.text: one.score for one in row}
        assert received == pytest.approx(expected, abs=1e-4)
        assert list(received.values()) == sorted(received.values(), reverse=True)


@pytest.mark.weekly
def test_a_good_reverse_model_improves_a_weak_model(run, folder, keras_seq_command):
    pairs = write_pairs(folder / "test.tsv", 100, seed=4, reverse=False)
    sources, targets = ([pair[side] for pair in pairs] for side in (0, 1))

    def exact(texts):
        """Returns the share of right lines, of those that the weights were not tuned on."""
        equal = [text == target for text, target in zip(texts, targets, strict=True)]
        return np.mean(equal[50:])

    alone = keras_seq.translate(run, sources, which=WEAK)
    translator = NoisyChannelTranslator.load(run, reverse=run, which=WEAK)
    tuned = translator.tune(sources[:50], targets[:50], metric="exact")
    assert translator.weights == tuned.weights and tuned.weights.language_model == 0
    assert tuned.weights.reverse > 0 and tuned.after > tuned.before
    together = translator(sources)
    assert exact(together) > exact(alone) + 0.1

    # The command tunes on the validation text, and takes what it printed.
    (folder / "sources").write_text("".join(f"{line}\n" for line in sources))
    command = ["rerank", run, folder / "sources", "--reverse", run, "--which", WEAK]
    outcome = keras_seq_command(*command)
    assert outcome.code == 0, outcome.err
    (said,) = [line for line in outcome.err.split("\n") if "by the run alone" in line]
    assert said.startswith("12 validation lines: ")
    assert "choosing the weights on 12 validation lines\n" in outcome.err
    again = keras_seq_command(*command, *said.partition(" with ")[2].split(), "-o", folder / "out")
    assert again.code == 0 and "validation" not in again.err
    assert (folder / "out").read_bytes() == outcome.out
    assert exact(outcome.lines) > exact(alone)


@pytest.mark.parametrize(("tokenize", "used"), [("auto", "char"), ("13a", "13a")])
def test_weights_are_tuned_by_the_tokenizer_of_the_run(tokenize, used):
    """Lines without spaces are one token each for 13a."""
    reference = "犬が公園を走っている。"
    texts = ["猫がいる。", "犬が公園を走っている!"]
    # The reverse model prefers the second.
    row = [
        _Candidate(Hypothesis(text, -0.1, False), float(reverse), 0.0)
        for reverse, text in enumerate(texts)
    ]
    translator = NoisyChannelTranslator(None, None, tokenize=tokenize)
    translator._candidates = lambda sources: [row]
    tuned = translator.tune(["a"], [reference], metric="bleu")
    metric = BLEU(tokenize=used)
    before, after = (metric.corpus_score([text], [[reference]]).score for text in texts)
    assert (tuned.before, tuned.after) == pytest.approx((before, after))
    assert (after > before) == (used == "char")


def test_wrong_runs_and_weights_are_refused(run, language_model, folder, keras_seq_command):
    (folder / "one").write_text("a b\n")
    command = ["rerank", run, folder / "one", "--reverse"]
    assert (
        "of task 'language-model', expected 'translate'"
        in keras_seq_command(*command, language_model).error
    )
    with pytest.raises(InputError, match="of task 'translate', expected 'language-model'"):
        NoisyChannelTranslator.load(run, reverse=run, language_model=run)
    model = ["--language-model", language_model]
    for arguments, message in (
        (["--language-model-weight", 1], "needs --language-model"),
        ([*model, "--language-model-weight", 1], "expected both weights, or none"),
        ([*model, "--reverse-weight", 1], "expected both weights, or none"),
        (["--reverse-weight", -1], "--reverse-weight"),
        (["--beam-size", 5], "candidates: received 16, expected at most the beam size (5): lower"),
    ):
        assert message in keras_seq_command(*command, run, *arguments).error
