"""Examples in memory become the same rows, whatever object has them."""

import datasets
import numpy as np
import pandas
import pytest

from keras_seq.estimators.examples import rows_of, write_rows
from keras_seq.text import InputError, read_table

PAIRS = [("A dog, two", "Ein Hund\tzwei"), ('"Yes"', "„Ja“")]


@pytest.mark.parametrize(
    "examples",
    [
        PAIRS,
        iter(PAIRS),
        (list(pair) for pair in PAIRS),
        np.array(PAIRS),
        {"target": [b for _, b in PAIRS], "source": [a for a, _ in PAIRS]},
        {"en": [a for a, _ in PAIRS], "de": [b for _, b in PAIRS]},
        [{"source": a, "target": b, "id": 1} for a, b in PAIRS],
        pandas.DataFrame(PAIRS),
        pandas.DataFrame([(1, b, a) for a, b in PAIRS], columns=["id", "target", "source"]),
        datasets.Dataset.from_list([{"source": a, "target": b, "id": 1} for a, b in PAIRS]),
    ],
)
def test_objects_with_the_same_pairs_give_the_same_rows(examples):
    assert list(rows_of(examples, "translate")) == PAIRS


def test_columns_are_named_or_numbered_in_the_order_of_a_row():
    nested = [{"translation": {"en": a, "de": b}} for a, b in PAIRS]
    columns = ["translation.en", "translation.de"]
    assert list(rows_of(nested, "translate", columns)) == PAIRS
    rows = [(b, "x", a) for a, b in PAIRS]
    assert list(rows_of(rows, "translate", [2, 0])) == PAIRS
    assert list(rows_of({"b": ["x"], "a": ["y"]}, "translate", [1, 0])) == [("y", "x")]


def test_features_are_a_third_column():
    assert list(rows_of([("go", "went", "V;PST")], "translate")) == [("go", "went", "V;PST")]
    row = {"features": "V", "target": "b", "source": "a"}
    assert list(rows_of([row], "translate")) == [("a", "b", "V")]


def test_numbers_of_classes_become_their_names():
    rows = {"text": ["fine", "awful"], "label": [1, 0]}
    assert list(rows_of(rows, "classify")) == [("fine", "1"), ("awful", "0")]
    assert list(rows_of(pandas.DataFrame(rows), "classify")) == [("fine", "1"), ("awful", "0")]
    names = datasets.ClassLabel(names=["bad", "good"])
    named = datasets.Dataset.from_dict(rows).cast_column("label", names)
    assert list(rows_of(named, "classify")) == [("fine", "good"), ("awful", "bad")]
    words = datasets.Dataset.from_dict(
        {"tokens": [["Oh", "no"]], "tags": [[1, 0]]},
        features=datasets.Features(
            tokens=datasets.List(datasets.Value("string")), tags=datasets.List(names)
        ),
    )
    assert list(rows_of(words, "tag", ["tokens", "tags"])) == [("Oh no", "good bad")]


def test_texts_alone_and_recordings():
    assert list(rows_of(["a", "b"], "language-model")) == [("a",), ("b",)]
    assert list(rows_of([{"text": "a", "id": 3}], "vae")) == [("a",)]
    ((path, text),) = rows_of([("one.wav", "one")], "speech")
    assert path.endswith("/one.wav") and path.startswith("/") and text == "one"


def test_arrays_of_recordings_are_written(tmp_path):
    soundfile = pytest.importorskip("soundfile")
    samples = np.linspace(-0.5, 0.5, 800, dtype=np.float32)
    examples = [((samples, 8000), "one"), ({"array": samples, "sampling_rate": 8000}, "two")]
    rows = list(rows_of(examples, "speech", folder=tmp_path))
    assert [text for _, text in rows] == ["one", "two"]
    for path, _ in rows:
        found, rate = soundfile.read(path, dtype="float32")
        assert rate == 8000
        np.testing.assert_array_equal(found, samples)


def test_written_rows_are_read_back(tmp_path):
    path = tmp_path / "rows.csv"
    write_rows(path, [*PAIRS, ("two\nlines", "x")])
    rows = list(read_table(path, columns="source=1,target=2"))
    assert rows == [*PAIRS, ("two lines", "x")]


@pytest.mark.parametrize(
    ("examples", "task", "columns", "message"),
    [
        ([("a", "b"), ("a", None)], "translate", None, "row 1: 1: received nothing, expected text"),
        ([("a", float("nan"))], "classify", None, "row 0: 1: received nothing, expected text"),
        ([("a", 1.5)], "classify", None, "row 0: 1: received 1.5, expected text"),
        ([("a",)], "translate", None, r"row 0: 1 columns, expected 2 \(source, target\)"),
        (["ab"], "translate", None, "row 0: received 'ab', expected a row of source and target"),
        ([("a", "b", "c")], "classify", None, r"row 0: 3 columns, expected 2 \(text, label\)"),
        ([{"x": "a", "y": "b", "z": "c"}], "translate", None, "row 0: columns x, y, z: name those"),
        ([{"t": {"en": "a", "de": "b"}}], "translate", ["t.en", "t.fr"], "no column 't.fr' among"),
        ([("a", "b")], "translate", [0, 2], "row 0: 2 columns, expected the columns"),
        ([(["a b"], ["X"])], "tag", None, "row 0: 0: received 'a b', expected a word without"),
        ({"a": ["x"], "b": []}, "translate", None, "columns of different lengths: a 1, b 0"),
        ([(3, "one")], "speech", None, "row 0: 0: received 3, expected a path, or samples"),
    ],
)
def test_wrong_rows_are_named(examples, task, columns, message, tmp_path):
    with pytest.raises(InputError, match=message):
        list(rows_of(examples, task, columns, tmp_path))


def test_wrong_arguments_are_refused():
    with pytest.raises(TypeError, match="`examples` must be rows, received str"):
        list(rows_of("pairs.tsv", "translate"))
    splits = datasets.DatasetDict(train=datasets.Dataset.from_list([{"text": "a"}]))
    with pytest.raises(TypeError, match="several data sets, give one of 'train'"):
        list(rows_of(splits, "vae"))
    with pytest.raises(ValueError, match="`columns` must name text and label, received"):
        rows_of([("a", "b")], "classify", [0])
