"""Classifiers and taggers: training from files, resuming, and rejected input."""

import json

import numpy as np
import pytest
from label_runs import label_settings, labeled_lines, tagged_lines, write_lines
from training.toy import assert_equal_tensors, killed_after, tensors_of

import keras_seq
from keras_seq.data import TokenCorpus
from keras_seq.preparation import prepare_run
from keras_seq.run import Run
from keras_seq.settings import SettingsError, load_settings
from keras_seq.text import InputError
from keras_seq.training import plan, train


@pytest.fixture(params=["classify", "tag"])
def task(request):
    return request.param


@pytest.fixture
def trained(task, request):
    return request.getfixturevalue({"classify": "classifier_run", "tag": "tagger_run"}[task])


METRICS = {"classify": "macro_f1", "tag": "entity_f1"}


def test_classifier_and_tagger_learn_and_report_their_scores(task, trained):
    run = Run.open(trained)
    metrics = [json.loads(line) for line in (trained / "metrics.jsonl").read_text().splitlines()]
    last = [entry for entry in metrics if entry["kind"] == "validation"][-1]
    assert last["step"] == 60 and last[METRICS[task]] > 0.95 and last["accuracy"] > 0.95
    card = (trained / "README.md").read_text("utf-8")
    assert f"keras-seq {task} {trained}" in card and "BLEU" not in card
    expected = {
        "classify": ("cold", "dry", "wet"),
        "tag": ("B-LOC", "B-PER", "I-LOC", "I-PER", "O"),
    }
    assert run.labels.names == expected[task]


def test_classifier_and_tagger_predict_the_expected_labels(task, trained):
    lines = {"classify": labeled_lines, "tag": tagged_lines}[task](40, 3)
    loaded = {"classify": keras_seq.Classifier, "tag": keras_seq.Tagger}[task].load(trained)
    answers = loaded([text for text, _ in lines])
    right = sum(answer == label for answer, (_, label) in zip(answers, lines, strict=True))
    assert right >= 38


@pytest.mark.slow
def test_resumed_label_training_ends_with_the_same_weights(task, trained, tmp_path):
    again = killed_after(40, trained, tmp_path / "again")
    train(Run.open(trained).settings, again, notice=[].append)
    assert_equal_tensors(tensors_of(trained, 60), tensors_of(again, 60))
    assert (trained / "samples.txt").read_text() == (again / "samples.txt").read_text()


def test_balanced_class_weights_give_each_label_the_same_total_weight(tmp_path):
    settings = label_settings(tmp_path, "classify", data__class_weights="balanced")
    run = prepare_run(settings, tmp_path / "run", notice=[].append)
    corpus = TokenCorpus.open(run.train_directory)
    labels = np.array([int(corpus.target(i)[0]) for i in range(len(corpus))])
    weights = corpus.weights(np.arange(len(corpus)))
    sums = [weights[labels == label].sum() for label in sorted(set(labels))]
    np.testing.assert_allclose(sums, len(corpus) / 3, rtol=1e-5)
    assert weights.min() < 1 < weights.max()


def test_corpus_without_class_weights_has_no_weights(tmp_path):
    run = prepare_run(label_settings(tmp_path, "classify"), tmp_path / "run", notice=[].append)
    assert not TokenCorpus.open(run.train_directory).has_weights


def test_a_dry_run_shows_texts_and_labels(task, tmp_path):
    settings = label_settings(tmp_path, task)
    said = plan(prepare_run(settings, tmp_path / "run", notice=[].append))
    lines = {"classify": labeled_lines, "tag": tagged_lines}[task](200, 1)
    shown = said.split("first batch")[1]
    assert any(text in shown and label in shown for text, label in lines)


def test_validation_lines_are_held_out_when_none_are_given(task, tmp_path):
    settings = label_settings(tmp_path, task, data__valid_labeled=None)
    run = prepare_run(settings, tmp_path / "run", notice=[].append)
    texts, labels = run.valid_lines()
    lines = dict({"classify": labeled_lines, "tag": tagged_lines}[task](200, 1))
    assert texts and all(lines[text] == label for text, label in zip(texts, labels, strict=True))
    corpus = TokenCorpus.open(run.train_directory)
    assert len(corpus) <= 200 - len(texts)


def test_lines_without_text_or_label_are_dropped(tmp_path):
    settings = label_settings(tmp_path, "classify")
    path = tmp_path / "classify-train.tsv"
    path.write_text(path.read_text() + "\tdry\n  \twet\nsome text\t\n")
    said = []
    run = prepare_run(settings, tmp_path / "run", notice=said.append)
    assert len(TokenCorpus.open(run.train_directory)) == 200
    assert "training: 200 of 203 lines kept; dropped 3 without text or label" in said


@pytest.mark.weekly
@pytest.mark.slow
@pytest.mark.parametrize(("tag", "metric"), [("B-HUM", "entity_f1")])
def test_validation_text_may_have_tags_missing_from_the_training_text(tmp_path, tag, metric):
    settings = label_settings(tmp_path, "tag", training__max_steps=2)
    path = tmp_path / "tag-valid.tsv"
    path.write_text(path.read_text() + f"emmy left\t{tag} O\nemmy left\tB-PER {tag}\n")
    said = []
    assert train(settings, tmp_path / "run", notice=said.append).metric == metric
    assert (
        "validation: 2 of 32 lines have labels that the training text does not have "
        f"({tag}): they count as wrong, and not in the loss"
    ) in said


def test_labels_only_in_validation_text_are_reported(tmp_path):
    settings = label_settings(tmp_path, "classify")
    path = tmp_path / "classify-valid.tsv"
    path.write_text("".join(f"rain {place}\t{place}\n" for place in "abcdefg") + "sun\tdry\n")
    said = []
    prepare_run(settings, tmp_path / "run", notice=said.append)
    assert any(
        "validation: 7 of 8 lines have labels that" in line and "(a, b, c, d, e, ...)" in line
        for line in said
    )


@pytest.mark.slow
def test_label_run_starts_from_the_weights_and_labels_of_another_run(tmp_path, classifier_run):
    settings = label_settings(
        tmp_path,
        "classify",
        training__from_run=str(classifier_run),
        training__max_steps=1,
        training__learning_rate=1e-9,
        training__ema=0.0,
    )
    train(settings, tmp_path / "run", notice=[].append)
    before, after = (Run.open(path) for path in (classifier_run, tmp_path / "run"))
    assert after.labels.names == before.labels.names
    lines = [text for text, _ in labeled_lines(20, 5)]
    answers = [keras_seq.Classifier.load(run.path)(lines) for run in (before, after)]
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    ("lines", "task", "said"),
    [
        ([("a", "x"), ("b", "x"), ("c", "x")], "classify", r"1 label \('x'\), expected at least 2"),
        ([("a b", "X X"), ("c", "X")], "tag", r"1 tag \('X'\), expected at least 2"),
        ([("a b", "X Y"), ("c d", "X")], "tag", r"train\.tsv:2: 2 words and 1 tags"),
        (
            [("x", f"a long text of its own, number {n}") for n in range(300)],
            "classify",
            "300 different labels among 300: .* are the columns the other way round",
        ),
        ([("a", ""), ("b", "")], "classify", r"no line has text and a label \(2 lines\)"),
    ],
    ids=["one label", "one tag", "tag missing", "columns swapped", "no labels"],
)
def test_unlearnable_label_file_raises_input_error(tmp_path, lines, task, said):
    settings = label_settings(tmp_path, task)
    write_lines(tmp_path / f"{task}-train.tsv", lines)
    with pytest.raises(InputError, match=said):
        prepare_run(settings, tmp_path / "run", notice=[].append)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("preset", "overrides", "said"),
    [
        ("classify-bag", {"task": "tag"}, "model.family: received 'classifier-bag', expected 'tag"),
        ("classify-bag", {"data.pairs": "x"}, "data.pairs: received 'x', which is for task 'tra"),
        ("tag-birnn", {"data.class_weights": "balanced"}, "which is for task 'classify'"),
        ("tag-birnn", {"tokenizer.joint": False}, "tokenizer.joint: no text is written with task"),
        ("classify-birnn", {"search.beam_size": 2}, "search.beam_size: no text is written"),
        ("classify-birnn", {"training.scheduled_sampling": "linear"}, "no text is written"),
        ("classify-birnn", {"model.crf": True}, "model.crf: not a setting of model.family"),
        ("classify-transformer", {"model.pooling": "sum"}, "model.pooling: received 'sum', expect"),
        ("classify-transformer", {"model.num_heads": 3}, "num_heads: received 3, expected a div"),
    ],
)
def test_settings_without_meaning_for_label_tasks_raise_settings_error(preset, overrides, said):
    with pytest.raises(SettingsError, match=said.replace("'", "['\"]")):
        load_settings(preset=preset, overrides={"data.labeled": "text", **overrides})


@pytest.mark.slow
def test_predictions_are_independent_of_other_texts_and_batch_size(task, trained):
    texts = [text for text, _ in {"classify": labeled_lines, "tag": tagged_lines}[task](9, 4)]
    texts += ["", "one", " ".join(texts), "\u00a0 \u200b sun\u00a0king", "😀" * 50]
    kind = {"classify": keras_seq.Classifier, "tag": keras_seq.Tagger}[task]
    loaded, small = kind.load(trained), kind.load(trained, batch_size=2)
    together = loaded(texts)
    assert together == [loaded([text])[0] for text in texts]
    assert together == small(texts) == small(texts[::-1])[::-1]
    assert loaded([]) == []
    with pytest.raises(TypeError, match="pass \\[text\\]"):
        loaded("one string")


def test_probabilities_are_ranked_and_sum_to_1(classifier_run):
    (found,) = keras_seq.Classifier.load(classifier_run).classify(["rain and more rain"])
    assert found.label == found.ranked[0][0] and found.probability == found.ranked[0][1]
    shares = [share for _, share in found.ranked]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1, abs=1e-6)
    assert not found.truncated


def test_a_long_text_is_tagged_in_pieces(tagger_run):
    tagger = keras_seq.Tagger.load(tagger_run)
    lines = tagged_lines(80, 6)
    words = " ".join(text for text, _ in lines)
    (found,) = tagger.tag([words])
    assert found.words == tuple(words.split()) and len(found.tags) == len(found.words)
    expected = " ".join(tags for _, tags in lines).split()
    right = np.mean([a == b for a, b in zip(found.tags, expected, strict=True)])
    assert right > 0.9


def test_loading_a_run_of_another_task_names_the_right_command(classifier_run, tagger_run):
    with pytest.raises(InputError, match="task 'tag', expected 'classify': use `keras-seq tag"):
        keras_seq.Classifier.load(tagger_run)
    message = "task 'classify', expected 'tag': use `keras-seq classify`"
    with pytest.raises(InputError, match=message):
        keras_seq.Tagger.load(classifier_run)
    with pytest.raises(InputError, match="task 'tag', expected 'translate'"):
        keras_seq.Translator.load(tagger_run)
