"""The choice of the metric that validation monitors, and its use in training."""

import json
import random
import typing
from pathlib import Path

import pytest
import sacrebleu
from training.toy import quiet_train, toy_settings

from keras_seq import Translator
from keras_seq.preparation import prepare_run
from keras_seq.run import Run
from keras_seq.run.models import load_model
from keras_seq.scoring import ALL_METRICS, TOKENIZERS
from keras_seq.settings import MONITORS, TASKS, TEXT_MONITORS, SettingsError, load_settings
from keras_seq.settings.score import ScoreSettings
from keras_seq.text import InputError
from keras_seq.training.evaluation import make_evaluation
from keras_seq.training.feed import fit_batches, training_stream
from keras_seq.training.judging import judging_of
from keras_seq.training.result import TrainingResult

WORDS = ["dog", "cat", "tree", "house", "river"]
SENTENCES = [f"the {a} runs to the {b} and sees a {c}" for a in WORDS for b in WORDS for c in WORDS]
JAPANESE = [
    "犬が走っている。今日は雨です。",
    "私は彼女に会いに行きました。",
    "猫が食べているのを見た。",
]


def judging(references, resumed=None, **overrides):
    overrides = {key.replace("__", "."): value for key, value in overrides.items()}
    return judging_of(load_settings(overrides=overrides), references, resumed)


def test_auto_takes_what_fits_the_references_and_gives_the_reason():
    found = judging(WORDS)
    assert (found.monitor, found.metrics, found.tie_break) == ("exact", ("exact", "cer"), "cer")
    assert found.notices() == [
        "judged by exact match: the validation references have 1.0 words a line on average "
        "(training.monitor)"
    ]
    found = judging(SENTENCES)
    assert (found.monitor, found.metrics, found.tie_break) == ("bleu", ("bleu", "chrf"), None)
    assert "judged by BLEU: the validation references have 10.0 words" in found.notices()[0]


@pytest.mark.parametrize("monitor", TEXT_MONITORS)
def test_a_metric_of_the_settings_is_computed_first(monitor):
    found = judging(SENTENCES, training__monitor=monitor)
    assert (found.monitor, found.metrics[0], found.reason) == (monitor, monitor, "")
    scores = found.scores(SENTENCES, SENTENCES)
    assert list(scores) == list(found.metrics)
    perfect = 0 if MONITORS[monitor].lower_is_better else 100
    assert scores[monitor].value == pytest.approx(perfect)
    assert scores[monitor].name == MONITORS[monitor].score_name
    # Completely wrong output has the worst score that `MONITORS` defines.
    wrong = found.scores(["#" * 40] * len(SENTENCES), SENTENCES)[monitor].value
    assert MONITORS[monitor].is_worst(wrong) and not MONITORS[monitor].is_worst(perfect)


@pytest.mark.parametrize("monitor", ["loss", "perplexity", "accuracy"])
def test_fitting_metrics_are_shown_with_a_monitor_that_is_no_score_of_text(monitor):
    found = judging(WORDS, training__monitor=monitor)
    assert (found.monitor, found.metrics) == (monitor, ("exact", "cer"))


def test_auto_keeps_the_monitor_of_the_resumed_training():
    found = judging(WORDS, resumed="bleu")
    assert (found.monitor, found.metrics) == ("bleu", ("bleu", "chrf"))
    assert judging(WORDS, resumed="exact").reason == judging(WORDS).reason
    # A monitor in the settings takes precedence.
    assert judging(WORDS, resumed="bleu", training__monitor="cer").monitor == "cer"


def test_bleu_counts_characters_of_japanese_and_reports_it():
    """sacreBLEU's default tokenizer splits a line of Japanese into only one or two words."""
    found = judging(JAPANESE, training__monitor="bleu")
    assert found.tokenize == "char" and "tokenizer char" in found.notices()[1]
    score = found.scores(JAPANESE, JAPANESE)["bleu"]
    assert score.value == pytest.approx(100) and "|tok:char|" in score.signature
    assert sacrebleu.corpus_bleu(JAPANESE, [JAPANESE]).score == 0
    assert judging(JAPANESE).monitor == "chrf"


def test_a_tokenizer_of_the_settings_is_used():
    found = judging(SENTENCES, score__tokenize="intl")
    expected = sacrebleu.corpus_bleu(SENTENCES, [SENTENCES[::-1]], tokenize="intl").score
    score = found.scores(SENTENCES, SENTENCES[::-1])["bleu"]
    assert score.value == expected and "|tok:intl|" in score.signature


def test_a_tokenizer_that_needs_a_model_is_refused_before_the_text_is_prepared(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("keras_seq.scoring.bleu_tokenizers.SACREBLEU_DIR", str(tmp_path / "no"))
    settings = toy_settings(tmp_path, score__tokenize="flores200")
    with pytest.raises(InputError, match="score.tokenize: tokenizer 'flores200' needs the file"):
        prepare_run(settings, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(InputError, match="score.tokenize: tokenizer 'flores200' needs the file"):
        judging_of(settings, SENTENCES)


@pytest.mark.parametrize("task", TASKS)
def test_a_monitor_that_the_task_does_not_compute_is_refused_with_those_that_it_does(task):
    known = ("auto", *TASKS[task].monitors)
    for monitor in ("auto", *MONITORS):
        overrides = {"task": task, "training.monitor": monitor}
        if monitor in known:
            assert load_settings(overrides=overrides).training.monitor == monitor
            continue
        with pytest.raises(SettingsError) as error:
            load_settings(overrides=overrides)
        message = str(error.value)
        assert message.startswith(f"training.monitor: received '{monitor}', expected 'auto', ")
        assert message.endswith(f" with task '{task}'") and "\n" not in message
        assert all(f"'{name}'" in message for name in known)


def test_the_command_refuses_a_monitor_of_another_task(tmp_path, keras_seq_command):
    (tmp_path / "lines.txt").write_text("a b\nb a\n")
    options = ["--task", "language-model", "--text", tmp_path / "lines.txt"]
    found = keras_seq_command("train", tmp_path / "run", *options, "--set", "training.monitor=bleu")
    assert found.code == 2 and "expected 'auto', 'loss', 'perplexity' or 'accuracy'" in found.err
    assert not (tmp_path / "run").exists()


def test_tables_of_settings_and_of_scoring_have_the_same_names():
    """The settings repeat the names, because importing sacreBLEU is slow."""
    assert set(TEXT_MONITORS) == set(ALL_METRICS)
    tokenize = ScoreSettings.model_fields["tokenize"].annotation
    assert set(typing.get_args(tokenize)) == {"auto", *TOKENIZERS}


def test_result_names_a_score_with_its_signature():
    result = TrainingResult("runs/a", 9, 1.0, "exact", 54.0, 5, "nrefs:1|unit:line", "reason")
    assert result.score == "EXACT = 54.00 at step 5 nrefs:1|unit:line"
    result = TrainingResult("runs/a", 9, 1.0, "loss", 0.12345, 5, "")
    assert result.score == "loss 0.1235 at step 5"


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """Trains a run on single words with two validations."""
    folder = tmp_path_factory.mktemp("judging")
    draw = random.Random(1)
    for name, count in (("train", 200), ("valid", 30)):
        words = ["".join(draw.choices("abcdef", k=5)) for _ in range(count)]
        (folder / f"{name}.tsv").write_text("".join(f"{w}\t{w[::-1].upper()}\n" for w in words))
    options = {"max_steps": 4, "validate_every": 2, "checkpoint_every": 2}
    settings = toy_settings(folder, **{f"training__{key}": v for key, v in options.items()})
    result, said = quiet_train(settings, folder / "run")
    return folder, settings, result, said


def validations(run: Path):
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [line for line in lines if line["kind"] == "validation"]


def test_training_reports_and_stores_what_it_is_judged_by(toy):
    folder, _, result, said = toy
    assert said.count("judged by exact match: the validation references have 1.0 words") == 1
    assert result.metric == "exact" and "1.0 words a line" in result.reason
    stored = json.loads((folder / "run" / "result.json").read_text())["result"]
    assert (stored["metric"], stored["reason"]) == ("exact", result.reason)
    assert f"| judged by exact match | {result.reason} |" in (folder / "run/README.md").read_text()
    for line in validations(folder / "run"):
        assert line["monitor"] == "exact" and {"exact", "cer", "loss", "accuracy"} <= line.keys()
        assert "bleu" not in line
    # No translation is right yet, so the lowest loss decides.
    lowest = min(validations(folder / "run"), key=lambda line: line["loss"])
    assert result.best_step == lowest["step"] == Run.open(folder / "run").checkpoints.best_step


def test_validation_scores_are_the_monitored_values_of_which_larger_are_better(toy, tmp_path):
    folder, _, _, _ = toy
    run = Run.open(folder / "run")
    assert run.logs.validation_scores() == {
        line["step"]: line["exact"] for line in validations(folder / "run")
    }
    run.logs.path = tmp_path
    lines = [
        {"kind": "validation", "step": 1, "monitor": "cer", "cer": 12.5},
        {"kind": "validation", "step": 2, "bleu": 7.0},
        {"kind": "validation", "step": 3, "monitor": "comet", "comet": 7.0},
        {"kind": "validation", "step": 4, "monitor": ["cer"], "cer": 7.0},
    ]
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert run.logs.validation_scores() == {1: -12.5, 2: 7.0}


@pytest.mark.slow
def test_another_monitor_decides_anew_when_a_training_resumes(toy):
    folder, settings, _, _ = toy
    training = settings.training.model_copy(update={"max_steps": 6, "monitor": "loss"})
    result, said = quiet_train(settings.model_copy(update={"training": training}), folder / "run")
    assert "setting changed: training.monitor auto -> loss" in said
    last = [line for line in validations(folder / "run") if line["monitor"] == "loss"]
    assert [line["step"] for line in last] == [4, 6]
    best = min(last, key=lambda line: line["loss"])
    assert (result.metric, result.best_step) == ("loss", best["step"])
    assert result.best == pytest.approx(best["loss"], rel=1e-4) and result.signature == ""


def test_loss_of_a_training_and_of_a_validation_are_the_same_number(toy):
    """Compares both losses on the same batch and weights, without label smoothing."""
    run = Run.open(toy[0] / "run")
    assert run.settings.training.label_smoothing == 0.1
    model, stream = load_model(run), training_stream(run)
    objective = TASKS[run.settings.task].objective(run.settings)
    ((inputs, targets, weights),) = fit_batches(stream, 0, 1, objective.fit_batch)
    shown = float(objective.loss(model)(targets, model(inputs, training=False), weights))
    expected = make_evaluation(model)([stream.batch(0)])["loss"]
    assert shown == pytest.approx(expected, rel=1e-5)


def test_a_score_that_contradicts_the_accuracy_is_reported():
    found = judging(SENTENCES)
    for accuracy, value in ((0.5, 0.0), (0.95, 3.0), (0.89, 0.004)):
        assert found.contradiction({"accuracy": accuracy, "bleu": value}) is None
    assert found.contradiction({"accuracy": 0.9, "bleu": 0.004}) == (
        "BLEU is 0.00, but the token accuracy is 0.900: this score may not fit the text; "
        "--set training.monitor=exact judges by exact match"
    )
    said = judging(WORDS).contradiction({"accuracy": 0.95, "exact": 0.0})
    assert said is not None and said.endswith("--set training.monitor=loss judges by loss")
    by_loss = judging(WORDS, training__monitor="loss")
    assert by_loss.contradiction({"accuracy": 1.0, "loss": 0.0}) is None


@pytest.mark.slow
@pytest.mark.weekly
def test_single_words_are_learned_to_the_end_and_the_best_is_right(tmp_path):
    draw = random.Random(1)
    for name, count in (("train", 400), ("valid", 60)):
        words = ["".join(draw.choices("abcdefgh", k=4)) for _ in range(count)]
        (tmp_path / f"{name}.tsv").write_text("".join(f"{w}\t{w.upper()}\n" for w in words))
    settings = toy_settings(
        tmp_path,
        model__units=32,
        model__feedforward_units=64,
        tokenizer__size=284,
        training__learning_rate=0.005,
        training__ema=0.0,
        training__max_steps=500,
        training__validate_every=25,
        training__checkpoint_every=25,
        training__patience=8,
    )
    result, _ = quiet_train(settings, tmp_path / "run")
    assert result.metric == "exact"
    found = {line["step"]: line for line in validations(tmp_path / "run")}
    highest = max(line["exact"] for line in found.values())
    assert result.best == pytest.approx(highest, rel=1e-4) and highest >= 95
    assert "EXACT = " in result.score
    pairs = [line.split("\t") for line in (tmp_path / "valid.tsv").read_text().splitlines()]
    translated = Translator.load(tmp_path / "run")([source for source, _ in pairs])
    right = sum(ours == target for ours, (_, target) in zip(translated, pairs, strict=True))
    assert right >= 0.95 * len(pairs)
