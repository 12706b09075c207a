"""`keras-seq evaluate` and `keras_seq.evaluate`, against files that other commands write."""

import json
import math
import shutil
from collections import Counter, defaultdict

import numpy as np
import pytest
import sacrebleu
from label_runs import labeled_lines, tagged_lines, write_lines

import keras_seq
from keras_seq.evaluation import evaluation_metrics
from keras_seq.evaluation.card import add_to_card
from keras_seq.evaluation.label_values import label_values
from keras_seq.evaluation.resampling import resampled
from keras_seq.evaluation.values import Baseline, Evaluation, MetricValue
from keras_seq.run import Run
from keras_seq.scoring import entity_scores, label_scores

PAIRS = [
    ("the 3rd of may 1999", "1999-05-03"),
    ("12 june 2034", "2034-06-12"),
    ("monday, 1 july 2002", "2002-07-01"),
    ("5/6/1987", "1987-06-05"),
] * 3


@pytest.fixture
def pairs(tmp_path):
    return write_lines(tmp_path / "test.tsv", PAIRS)


def values_of(outcome):
    """Printed values by name, in printed order."""
    return {line.split(" = ")[0]: float(line.split(" = ")[1].split()[0]) for line in outcome.lines}


@pytest.mark.slow
def test_translations_are_those_of_translate_and_scores_those_of_sacrebleu(
    tiny_run, pairs, tmp_path, keras_seq_command
):
    output = tmp_path / "out.txt"
    options = ["--which", 2, "--beam-size", 1]
    outcome = keras_seq_command("evaluate", tiny_run, "--pairs", pairs, "-o", output, *options)
    assert outcome.code == 0, outcome.err
    sources = "".join(f"{source}\n" for source, _ in PAIRS).encode()
    translated = keras_seq_command("translate", tiny_run, *options, stdin=sources)
    assert output.read_bytes() == translated.out
    found, references = translated.lines, [[reference for _, reference in PAIRS]]
    expected = {
        "BLEU": sacrebleu.corpus_bleu(found, references).score,
        "EXACT": 100 * sum(map(str.__eq__, found, references[0])) / len(found),
        "chrF2": sacrebleu.corpus_chrf(found, references).score,
        "TER": sacrebleu.corpus_ter(found, references).score,
    }
    values = values_of(outcome)
    assert set(values) == {"EXACT", "CER", "WER", "chrF2", "BLEU", "TER"}
    for name, value in expected.items():
        assert values[name] == pytest.approx(value, abs=0.005)
    assert all(" ± " in line and "|bs:1000|" in line for line in outcome.lines)
    assert f"{tiny_run}: step 2, 12 lines\n" in outcome.err


def test_metric_that_chose_the_best_checkpoint_is_first(tiny_run, classifier_run, tmp_path):
    copy = shutil.copytree(tiny_run, tmp_path / "run")
    result = json.loads((copy / "result.json").read_text())
    result["result"]["metric"] = "ter"
    (copy / "result.json").write_text(json.dumps(result))
    expected = ("ter", "exact", "cer", "wer", "chrf", "bleu")
    assert evaluation_metrics(Run.open(copy)) == expected
    (copy / "result.json").write_text('{"result": 5}')
    assert evaluation_metrics(Run.open(copy)) == ("exact", "cer", "wer", "chrf", "bleu", "ter")
    expected = ("macro_f1", "accuracy", "calibration_error")
    assert evaluation_metrics(Run.open(classifier_run)) == expected


@pytest.mark.slow
def test_two_files_give_the_same_as_one(tiny_run, pairs, tmp_path, keras_seq_command):
    for name, side in (("source", 0), ("target", 1)):
        (tmp_path / name).write_text("".join(f"{pair[side]}\n" for pair in PAIRS))
    options = [
        "-m",
        "exact,bleu",
        "--tokenize",
        "char",
        "--no-confidence",
        "--json",
        "--beam-size",
        1,
    ]
    one = keras_seq_command("evaluate", tiny_run, "--pairs", pairs, *options)
    files = ["--source", tmp_path / "source", "--target", tmp_path / "target"]
    two = keras_seq_command("evaluate", tiny_run, *files, *options)
    assert (one.code, one.out) == (0, two.out)
    found = json.loads(one.out)
    assert (found["checkpoint"], found["lines"]) == ("best", 12)
    assert found["step"] == Run.open(tiny_run).checkpoints.best_step
    assert list(found["metrics"]) == ["exact", "bleu"]
    bleu = found["metrics"]["bleu"]
    assert "tok:char" in bleu["signature"] and bleu["interval"] is None


@pytest.mark.slow
def test_python_gives_scores_and_translations(tiny_run):
    sources, references = zip(*PAIRS, strict=True)
    found = keras_seq.evaluate(tiny_run, sources, references, metrics=["cer"], beam_size=1)
    assert found.outputs == tuple(keras_seq.Translator.load(tiny_run, beam_size=1)(sources))
    assert list(found.metrics) == ["cer"] and found.metrics["cer"].interval is not None


@pytest.mark.parametrize(
    ("sources", "references", "error"),
    [("a", ["a"], TypeError), ([], [], ValueError), (["a"], ["a", "b"], ValueError)],
)
def test_wrong_examples_raise_an_error(tiny_run, sources, references, error):
    with pytest.raises(error):
        keras_seq.evaluate(tiny_run, sources, references)


def test_classifier_has_accuracy_and_macro_f1(classifier_run, tmp_path, keras_seq_command):
    lines = [*labeled_lines(40, seed=5), ("today we see ice", "dry")]
    data = write_lines(tmp_path / "data.tsv", lines)
    output = tmp_path / "labels"
    outcome = keras_seq_command("evaluate", classifier_run, "--labeled", data, "-o", output)
    texts = "".join(f"{text}\n" for text, _ in lines).encode()
    given = keras_seq_command("classify", classifier_run, stdin=texts).lines
    assert output.read_text().split("\n")[:-1] == given
    truth = [label for _, label in lines]
    scores = []
    for label in set(truth) | set(given):
        pairs = [(one == label, other == label) for one, other in zip(truth, given, strict=True)]
        scores.append(2 * pairs.count((True, True)) / sum(map(sum, pairs)))
    found = values_of(outcome)
    assert found.pop("calibration error") < 0.2
    assert found == {
        "macro F1": pytest.approx(np.mean(scores), abs=5e-5),
        "accuracy": pytest.approx(np.mean(np.equal(truth, given)), abs=5e-5),
    }


def test_classifier_is_compared_with_the_most_frequent_label(classifier_run, tmp_path):
    lines = [*labeled_lines(40, seed=5), ("today we see ice", "dry")]
    result = keras_seq.evaluate(classifier_run, *zip(*lines, strict=True))
    assert result.baseline.name == "most frequent label"
    labels = [label for _, label in lines]
    assert result.baseline.metrics["accuracy"].value == labels.count("dry") / 41
    assert result.beats_baseline is True
    assert result.to_dict()["baseline"]["name"] == "most frequent label"


def test_tagger_is_compared_with_the_most_frequent_tag_of_each_word(tagger_run):
    training = (tagger_run.parent / "tag-train.tsv").read_text().splitlines()
    counts = defaultdict(Counter)
    for text, tags in (line.split("\t") for line in training):
        for word, tag in zip(text.split(), tags.split(), strict=True):
            counts[word][tag] += 1
    common = sum(counts.values(), Counter()).most_common(1)[0][0]
    lines = [*tagged_lines(30, seed=5), ("emmy saw ada", "B-PER O B-PER")]
    right = [
        (counts[word].most_common(1)[0][0] if word in counts else common) == tag
        for text, tags in lines
        for word, tag in zip(text.split(), tags.split(), strict=True)
    ]
    result = keras_seq.evaluate(tagger_run, *zip(*lines, strict=True), metrics=["accuracy"])
    assert result.baseline.metrics["accuracy"].value == np.mean(right)


def test_translations_are_compared_with_copies_of_the_source(tiny_run):
    sources, references = ["1999-05-03", "5/6/1987"], ["1999-05-03", "1987-06-05"]
    result = keras_seq.evaluate(tiny_run, sources, references, metrics=["exact", "cer"])
    assert result.baseline.metrics["exact"].value == 50.0
    assert result.beats_baseline is False


def without_training_text(run, folder):
    """Copies a run without its training text, as averages of checkpoints are."""
    copy = shutil.copytree(run, folder / "run")
    shutil.rmtree(copy / "data" / "train")
    return copy


def test_copies_of_the_source_need_no_training_text(tiny_run, tmp_path):
    run = without_training_text(tiny_run, tmp_path)
    result = keras_seq.evaluate(run, ["5/6/1987"], ["5/6/1987"], metrics=["exact"])
    assert result.baseline.metrics["exact"].value == 100.0
    assert (result.beats_baseline, result.no_baseline) == (False, "")


def test_a_baseline_that_cannot_be_computed_is_reported(
    classifier_run, tmp_path, keras_seq_command
):
    run = without_training_text(classifier_run, tmp_path)
    data = write_lines(tmp_path / "data.tsv", labeled_lines(5, seed=5))
    outcome = keras_seq_command("evaluate", run, "--data", data, "--json")
    assert outcome.code == 0, outcome.err
    reason = f"{run} has no training text to count"
    assert f"no baseline: {reason}\n" in outcome.err
    found = json.loads(outcome.out)
    assert (found["baseline"], found["beats_baseline"]) == (None, None)
    assert found["no_baseline"] == reason
    assert "not better" not in (run / "README.md").read_text()


def test_baseline_of_damaged_token_ids_is_an_error_of_one_line(tagger_run, tmp_path):
    run = shutil.copytree(tagger_run, tmp_path / "run")
    path = run / "data" / "train" / "shard-00000.target.ids"
    ids = np.fromfile(path, "<u2")
    ids[0] = 65_535
    path.write_bytes(ids.tobytes())
    with pytest.raises(keras_seq.InputError, match="target.ids: the token id 65,535"):
        keras_seq.evaluate(run, ["a dog"], ["DET NOUN"])


def evaluation_of(step, value=50.0, baseline=None):
    metric = MetricValue("EXACT", value, "nrefs:1", mean=value, interval=2.5)
    return Evaluation(step, 12, {"exact": metric}, ("",), baseline=baseline)


def test_card_reports_the_evaluated_test_sets(tiny_run, tmp_path):
    run = Run.open(shutil.copytree(tiny_run, tmp_path / "run"))
    (run.path / "evaluations.json").unlink(missing_ok=True)
    copies = Baseline("copy of the source", {"exact": MetricValue("EXACT", 0.0, "nrefs:1")})
    add_to_card(run, "a.tsv", evaluation_of(1))
    for name in ("b.tsv", "c.tsv", "b.tsv"):
        add_to_card(run, name, evaluation_of(2, baseline=copies))
    card = (run.path / "README.md").read_text()
    assert card.startswith((tiny_run / "README.md").read_text().split("\n## Test sets")[0])
    assert "Of the checkpoint at step 2." in card
    assert [line for line in card.splitlines() if ".tsv, 12 lines" in line] == [
        f"| {name}, 12 lines | EXACT | 50.00 | 47.50 to 52.50 | 0.00 (copy of the source) | "
        "`nrefs:1` |"
        for name in ("c.tsv", "b.tsv")
    ]
    assert "not better" not in card
    for value in (0.0, 50.0):
        add_to_card(run, "c.tsv", evaluation_of(2, value, copies))
        sentence = "On c.tsv, the model is not better than its baseline, which needs no model."
        assert ((run.path / "README.md").read_text().count(sentence)) == (value == 0.0)


def test_card_and_scores_of_many_test_sets_are_read_again(tiny_run, tmp_path):
    """With eight metrics each, they take more than 64 KiB."""
    run = Run.open(shutil.copytree(tiny_run, tmp_path / "run"))
    value = MetricValue("EXACT", 50.0, "nrefs:1|case:mixed|unit:line" * 5, mean=50.0, interval=2.5)
    for number in range(50):
        metrics = {f"{name}": value for name in range(8)}
        add_to_card(run, f"{number}.tsv", Evaluation(1, 12, metrics, ("",)))
    sizes = [(run.path / name).stat().st_size for name in ("evaluations.json", "README.md")]
    assert min(sizes) > 1 << 16
    assert len(run.read_evaluations()) == 50
    assert "| 0.tsv, 12 lines" in run.read_card()


def test_damaged_evaluations_are_replaced(tiny_run, tmp_path):
    run = Run.open(shutil.copytree(tiny_run, tmp_path / "run"))
    (run.path / "evaluations.json").write_text(json.dumps({"a": {"step": 2}, "b": 1}))
    add_to_card(run, "c.tsv", evaluation_of(2))
    assert list(json.loads((run.path / "evaluations.json").read_text())) == ["c.tsv"]


def test_evaluate_writes_the_card(tiny_run, pairs, tmp_path, keras_seq_command):
    run = shutil.copytree(tiny_run, tmp_path / "run")
    both = keras_seq_command("evaluate", run, "--data", pairs, "--pairs", pairs)
    assert both.code == 2 and "received --pairs, --data, expected --pairs FILE, or" in both.error
    outcome = keras_seq_command("evaluate", run, "--data", pairs, "-m", "exact")
    assert outcome.code == 0, outcome.err
    assert "baseline (copy of the source): EXACT = 0.00\n" in outcome.err
    assert f"| test.tsv, 12 lines | EXACT | {values_of(outcome)['EXACT']:.2f} | " in (
        run / "README.md"
    ).read_text("utf-8")


@pytest.mark.slow
@pytest.mark.weekly
def test_tagger_has_entity_f1_only_for_tags_of_entities(tagger_run, tmp_path, keras_seq_command):
    lines = [*tagged_lines(30, seed=5), ("ada left berlin", "O O B-LOC")]
    data = write_lines(tmp_path / "data.tsv", lines)
    outcome = keras_seq_command("evaluate", tagger_run, "--labeled", data)
    texts = "".join(f"{text}\n" for text, _ in lines).encode()
    given = [line.split() for line in keras_seq_command("tag", tagger_run, stdin=texts).lines]
    truth = [tags.split() for _, tags in lines]
    found = values_of(outcome)
    assert list(found) == ["entity F1", "accuracy", "macro F1"]
    assert found["entity F1"] == pytest.approx(entity_scores(truth, given).f1, abs=5e-5)
    right = [
        one == other
        for pair in zip(truth, given, strict=True)
        for one, other in zip(*pair, strict=True)
    ]
    assert found["accuracy"] == pytest.approx(np.mean(right), abs=5e-5)
    write_lines(data, [("ada left", "NOUN VERB")])
    outcome = keras_seq_command("evaluate", tagger_run, "--labeled", data)
    assert list(values_of(outcome)) == ["accuracy", "macro F1"]
    outcome = keras_seq_command("evaluate", tagger_run, "--labeled", data, "-m", "entity_f1")
    assert outcome.code == 2
    assert outcome.error.startswith("metric 'entity_f1': the tags are not of entities")


@pytest.mark.slow
def test_bits_per_character_of_packed_text_are_those_of_its_validation(tmp_path, keras_seq_command):
    """In pieces as long as the validation text, evaluation and validation read the same."""
    text, valid = tmp_path / "text", tmp_path / "valid"
    text.write_text("a b c d\nb c\n\nd a b\n" * 20)
    valid.write_text("a b\n\nd c b a\n")
    overrides = {
        "data.text": str(text),
        "data.valid_text": str(valid),
        "data.packed": True,
        "data.max_target_length": 64,
        "tokenizer.kind": "char",
        "model.units": 8,
        "model.embedding_units": 8,
        "training.max_steps": 1,
        "training.sample_count": 0,
    }
    settings = keras_seq.load_settings(preset="lm-gru", overrides=overrides)
    notices = []
    keras_seq.train(settings, tmp_path / "run", notice=notices.append)
    (said,) = [line for line in notices if line.startswith("validation at step 1,")]
    bits = float(said.split("bits per character ")[1])
    outcome = keras_seq_command("evaluate", tmp_path / "run", "--text", valid)
    assert outcome.code == 0, outcome.err
    assert "lines:3|characters:13|" in outcome.lines[1]
    # Validation also counts the begin tokens of the second and the third line.
    assert 0 < bits - values_of(outcome)["bits per character"] < 2 * 10 / 13


@pytest.mark.slow
def test_language_model_has_the_perplexity_of_likelihood(tmp_path, keras_seq_command):
    text = tmp_path / "text"
    text.write_text("a b c d\nb c\n\nd a b\n" * 20)
    settings = keras_seq.load_settings(
        preset="lm-gru",
        overrides={
            "data.text": str(text),
            "model.units": 8,
            "model.embedding_units": 8,
            "training.max_steps": 1,
            "training.sample_count": 0,
        },
    )
    keras_seq.train(settings, tmp_path / "run", notice=[].append)
    outcome = keras_seq_command("evaluate", tmp_path / "run", "--text", text)
    assert outcome.code == 0, outcome.err
    corpus = keras_seq_command("likelihood", tmp_path / "run", text, "--each", "corpus")
    expected = json.loads(corpus.out)
    assert values_of(outcome)["perplexity"] == pytest.approx(expected["perplexity"], abs=0.005)
    characters = len(text.read_text()) - text.read_text().count("\n\n")
    bits = -expected["log_probability"] / math.log(2) / characters
    assert values_of(outcome)["bits per character"] == pytest.approx(bits, abs=5e-4)
    assert "baseline (frequency of each token): perplexity = " in outcome.err
    assert f"tokens:{expected['tokens']}|" in outcome.lines[0]


WRONG = [
    ([], "received no file, expected --pairs FILE, or --source and --target: the task of the run"),
    (["--labeled", "FILE"], "received --labeled, expected --pairs FILE"),
    (["--pairs", "FILE", "--text", "FILE"], "received --pairs, --text, expected --pairs FILE"),
    (["--source", "FILE"], "received --source, expected --pairs FILE"),
    (["--pairs", "absent"], "absent: no such file"),
    (["--pairs", "EMPTY"], "EMPTY: empty, there is nothing to evaluate"),
    (["--source", "FILE", "--target", "EMPTY"], "EMPTY"),
    (["--pairs", "FILE", "-m", "exact,blue"], "metric 'blue': expected one of exact, cer, wer"),
    (["--pairs", "FILE", "-m", "macro_f1"], "metric 'macro_f1': expected one of exact, cer, wer"),
    (["--pairs", "FILE", "--tokenize", "13b"], "tokenize: unknown tokenizer '13b'"),
    (["--pairs", "FILE", "--beam-size", "0"], "search.beam_size: "),
    (["--pairs", "FILE", "--which", "3"], "received checkpoint '3', expected best, latest or"),
    (["--pairs", "FILE", "-o", "absent/file"], "absent/file: cannot be written"),
    (["--pairs", "FILE", "--no-confidence", "--samples", "5"], "needs --confidence"),
]


@pytest.mark.usefixtures("without_tensorflow")
@pytest.mark.parametrize(("options", "words"), WRONG)
def test_wrong_option_or_file_is_one_line(
    tiny_run, pairs, options, words, tmp_path, keras_seq_command
):
    (tmp_path / "EMPTY").touch()
    values = {"FILE": pairs, "EMPTY": tmp_path / "EMPTY"}
    outcome = keras_seq_command("evaluate", tiny_run, *(values.get(one, one) for one in options))
    assert (outcome.code, outcome.out) == (2, b"")
    assert words in outcome.error


@pytest.mark.usefixtures("without_tensorflow")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-m", "bleu"], "metric 'bleu': expected one of accuracy, macro_f1, calibration_error"),
        (["--tokenize", "13a"], "tokenize: received '13a', but task 'classify' has no BLEU"),
        (["--ensemble", "x"], "ensemble: a run of task 'classify' is evaluated alone"),
        (["--beam-size", "2"], "search.beam_size: no text is written with task 'classify'"),
    ],
)
def test_option_of_another_task_is_one_line(
    classifier_run, options, words, tmp_path, keras_seq_command
):
    data = write_lines(tmp_path / "data.tsv", labeled_lines(3, seed=5))
    outcome = keras_seq_command("evaluate", classifier_run, "--labeled", data, *options)
    assert (outcome.code, outcome.out) == (2, b"")
    assert words in outcome.error


@pytest.mark.usefixtures("without_tensorflow")
def test_run_without_a_metric_names_reconstruct(tmp_path, keras_seq_command):
    Run.create(tmp_path / "run", keras_seq.load_settings(preset="vae"))
    outcome = keras_seq_command("evaluate", tmp_path / "run", "--text", "x")
    assert outcome.code == 2
    assert "task 'vae' has no metric of a test set" in outcome.error
    assert "keras-seq reconstruct" in outcome.error


def test_interval_of_a_share_is_that_of_the_normal_approximation():
    """For 2,000 lines, 30 % of them correct, the half-width is 1.96 standard errors."""
    right = np.arange(2000) % 10 < 3
    mean, half = resampled(lambda counts: counts @ right / 2000, 2000, 1000)
    assert mean == pytest.approx(0.3, abs=0.002)
    assert half == pytest.approx(1.96 * math.sqrt(0.3 * 0.7 / 2000), rel=0.1)


def test_intervals_of_labels_are_those_of_scores_of_the_resampled_lines():
    """Resampled counts give the same scores as `label_scores` and `entity_scores`."""
    generator = np.random.default_rng(3)
    tags = np.array(["O", "B-a", "I-a", "B-b"])
    sizes = generator.integers(1, 6, size=25)
    truth, given = ([list(map(str, generator.choice(tags, size))) for size in sizes] for _ in "12")
    samples = 40
    found = label_values(truth, given, ["accuracy", "macro_f1", "entity_f1"], samples)
    again = np.random.default_rng(12345)
    values = {"accuracy": [], "macro_f1": [], "entity_f1": []}
    for _ in range(samples):
        chosen = again.integers(25, size=25)
        true_ones, given_ones = ([side[i] for i in chosen] for side in (truth, given))
        words = label_scores(*(sum(side, []) for side in (true_ones, given_ones)))
        values["accuracy"].append(words.accuracy)
        values["macro_f1"].append(words.macro_f1)
        values["entity_f1"].append(entity_scores(true_ones, given_ones).f1)
    for name, every in values.items():
        every.sort()
        assert found[name].mean == pytest.approx(np.mean(every))
        assert found[name].interval == pytest.approx((every[-2] - every[1]) / 2)
