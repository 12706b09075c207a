"""Label scores, compared with scikit-learn and with counts by hand."""

import numpy as np
import pytest
from sklearn import metrics

from keras_seq.scoring import Counts, label_scores, tag_scores

NAMES = ["news", "sport", "weather", "rare", "never given", "never true"]


def drawn(size=400):
    """Returns random labels and mostly correct predictions; each side lacks one label."""
    generator = np.random.default_rng(3)
    truth = generator.choice(NAMES[:5], size, p=[0.5, 0.3, 0.1, 0.02, 0.08])
    given = np.where(generator.random(size) < 0.7, truth, generator.choice(NAMES, size))
    given[given == "never given"] = "news"
    return truth.tolist(), given.tolist()


def test_label_scores_equal_scikit_learn():
    truth, given = drawn()
    found = label_scores(truth, given)
    assert list(found.labels) == sorted(NAMES)
    assert found.accuracy == pytest.approx(metrics.accuracy_score(truth, given), abs=1e-12)
    np.testing.assert_array_equal(found.confusion, metrics.confusion_matrix(truth, given))
    for average, ours in (("macro", found.macro_f1), ("micro", found.micro_f1)):
        theirs = metrics.f1_score(truth, given, average=average, zero_division=0)
        assert ours == pytest.approx(theirs, abs=1e-12)
    theirs = metrics.precision_recall_fscore_support(truth, given, zero_division=0)
    for label, precision, recall, f1, support in zip(found.labels, *theirs, strict=True):
        one = found.by_label[label]
        assert (one.precision, one.recall, one.f1) == pytest.approx((precision, recall, f1))
        assert one.expected == support


def test_label_scores_without_occurrences_are_zero():
    nothing = Counts(0, 0, 0)
    assert (nothing.precision, nothing.recall, nothing.f1) == (0, 0, 0)
    found = label_scores(["a"], ["b"])
    assert (found.accuracy, found.macro_f1, found.micro_f1) == (0, 0, 0)


def test_label_score_table_is_formatted_as_expected():
    truth = ["positive"] * 12 + ["no"] * 3
    given = ["positive"] * 11 + ["no"] * 3 + ["so-so"]
    assert label_scores(truth, given).table().split("\n") == [
        # 11 + 2 of 15 labels are correct; the F1 scores are 22 / 23, 4 / 6 and 0.
        "accuracy 0.867, macro F1 0.541, micro F1 0.867, 15 labels",
        "",
        "label     precision  recall      F1  support",
        "no            0.667   0.667   0.667        3",
        "positive      1.000   0.917   0.957       12",
        "so-so         0.000   0.000   0.000        0",
        "",
        "confusion: a row for each true label, a column for each predicted label",
        "             1   2   3",
        "1 no         2   0   1",
        "2 positive   1  11   0",
        "3 so-so      0   0   0",
    ]


def test_table_columns_stay_aligned_when_numbers_are_long():
    names = [f"label {number:02}" for number in range(11)]
    lines = label_scores(names + ["label 00"] * 2000, names + ["label 10"] * 2000).table()
    heading, *rows = lines.split("\n")[-12:]
    assert {len(line) for line in rows} == {len(heading)}
    assert rows[0].split() == ["1", "label", "00", "1", *["0"] * 9, "2,000"]
    assert rows[-1].startswith("11 label 10")


def test_the_confusion_of_many_labels_is_not_printed():
    names = [f"label {number:02}" for number in range(21)]
    assert "confusion" in label_scores(names[:20], names[:20]).table()
    assert (
        label_scores(names, names).table().endswith("label 20      1.000   1.000   1.000        1")
    )


@pytest.mark.parametrize(
    ("sides", "error", "said"),
    [
        ((["a"], ["a", "b"]), ValueError, "received 1 references and 2 predictions"),
        (([], []), ValueError, "no labels"),
        (("a", ["a"]), TypeError, "references must be a list of labels"),
        ((["a"], "a"), TypeError, "predictions must be a list of labels"),
    ],
    ids=str,
)
def test_invalid_labels_raise_an_error_that_names_the_cause(sides, error, said):
    with pytest.raises(error, match=said):
        label_scores(*sides)


def test_tags_are_scored_by_word_and_by_entity():
    truth = [["B-x", "I-x", "O"], ["O"]]
    found = tag_scores(truth, [["B-x", "O", "O"], ["O"]])
    assert found.words.accuracy == 0.75
    assert (found.entities.correct, found.entities.found, found.entities.expected) == (0, 1, 1)
    assert found.table().startswith("entities") and "accuracy 0.750" in found.table()


def test_tags_without_entities_are_scored_by_word_only():
    found = tag_scores([["NOUN", "VERB"]], [["NOUN", "B-x"]])
    assert found.entities is None
    assert found.table().startswith("accuracy 0.500")


def test_tag_scores_refuse_sentences_of_different_lengths():
    with pytest.raises(ValueError, match="sentence 1 has 2 tags in the references and 1 in the"):
        # Both sides have the same total number of tags.
        tag_scores([["NOUN", "NOUN"], ["NOUN"]], [["NOUN"], ["NOUN", "NOUN"]])
