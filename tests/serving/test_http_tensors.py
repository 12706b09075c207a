"""Conversion between JSON and tensors by the documented rules of TensorFlow Serving."""

import base64
import json

import numpy as np
import pytest

from keras_seq.serving.graph_file.signatures import Signature, TensorInfo
from keras_seq.serving.http.errors import RequestError
from keras_seq.serving.http.limits import Limits
from keras_seq.serving.http.tensors import (
    parse_body,
    read_inputs,
    signature_name,
    write_outputs,
)

TEXT = Signature({"text": TensorInfo("DT_STRING", (None,))}, {})
IDS = Signature({"ids": TensorInfo("DT_INT32", (None, None))}, {})
# The example from TensorFlow Serving's documentation.
THREE = Signature(
    {
        "tag": TensorInfo("DT_STRING", (None,)),
        "signal": TensorInfo("DT_FLOAT", (None, 5)),
        "sensor": TensorInfo("DT_INT64", (None, 2, 2)),
    },
    {},
)


def read(document, signature):
    return read_inputs(parse_body(json.dumps(document).encode(), Limits()), signature)


def refused(document, signature=TEXT):
    with pytest.raises(RequestError) as caught:
        read(document, signature)
    assert caught.value.code == 400
    message = str(caught.value)
    assert "\n" not in message and len(message) < 400
    return message


def test_all_four_request_forms_give_the_same_text_tensor():
    bodies = [
        {"instances": ["a", "é"]},
        {"instances": [{"text": "a"}, {"text": "é"}]},
        {"inputs": ["a", "é"]},
        {"inputs": {"text": ["a", "é"]}},
    ]
    for body in bodies:
        inputs, by_row = read(body, TEXT)
        assert inputs["text"].tolist() == [b"a", "é".encode()]
        assert by_row == ("instances" in body)


def test_base64_values_are_decoded_to_bytes():
    raw = bytes(range(256))
    for encoded in (base64.b64encode(raw).decode(), base64.b64encode(raw).decode().rstrip("=")):
        value = {"b64": encoded}
        for body in (
            {"instances": [value]},
            {"instances": [{"text": value}]},
            {"inputs": {"text": [value]}},
        ):
            assert read(body, TEXT)[0]["text"].tolist() == [raw]
    assert "base64" in refused({"instances": [{"b64": "?"}]})
    assert "does not have named input" in refused({"instances": [{"b64": "aa", "c": 1}]})


def test_documented_example_parses_equally_from_rows_and_columns():
    rows = [
        {"tag": "foo", "signal": [1, 2, 3, 4, 5], "sensor": [[1, 2], [3, 4]]},
        {"tag": "bar", "signal": [3, 4, 1, 2, 5], "sensor": [[4, 5], [6, 8]]},
    ]
    columns = {
        "tag": ["foo", "bar"],
        "signal": [[1, 2, 3, 4, 5], [3, 4, 1, 2, 5]],
        "sensor": [[[1, 2], [3, 4]], [[4, 5], [6, 8]]],
    }
    for inputs, _ in (read({"instances": rows}, THREE), read({"inputs": columns}, THREE)):
        assert inputs["tag"].tolist() == [b"foo", b"bar"]
        assert inputs["signal"].dtype == np.float32
        assert inputs["signal"].tolist() == columns["signal"]
        assert inputs["sensor"].dtype == np.int64
        assert inputs["sensor"].tolist() == columns["sensor"]


def test_empty_columns_give_an_empty_batch():
    assert read({"inputs": []}, TEXT)[0]["text"].shape == (0,)
    assert read({"inputs": {"ids": []}}, IDS)[0]["ids"].shape == (0, 0)
    assert read({"instances": [[], []]}, IDS)[0]["ids"].shape == (2, 0)
    assert refused({"instances": []}) == "No values in 'instances' array"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "empty"),
        (b"{", "JSON Parse error"),
        (b"[1]", "Is not object"),
        (b'"text"', "Is not object"),
        (b'{"instances": ["\xff"]}', "invalid UTF-8 at offset 16"),
        (b'{"a": ' * 100_000, "nested too deep"),
        (b"[" * 100_000, "nested too deep"),
        (b'{"a": 1' + b"0" * 5000 + b"}", "JSON Parse error"),
    ],
)
def test_body_that_is_not_a_json_object_raises_request_error(body, words):
    with pytest.raises(RequestError, match=words) as caught:
        parse_body(body, Limits())
    assert len(str(caught.value)) < 300


def test_byte_order_mark_before_the_body_is_ignored():
    assert parse_body(b'\xef\xbb\xbf{"a": 1}', Limits()) == {"a": 1}


def test_input_that_does_not_fit_the_signature_raises_request_error():
    assert "Missing 'inputs' or 'instances'" in refused({})
    assert "only one of" in refused({"inputs": ["a"], "instances": ["a"]})
    assert "list/array" in refused({"instances": "a"})
    assert "list/array" in refused({"instances": {"text": "a"}})
    assert "1 is not of expected type: string" in refused({"instances": ["a", 1]})
    assert "null is not of expected type: string" in refused({"instances": [None]})
    assert "lists nested deeper than 1" in refused({"instances": [["a"]]})
    assert "received the shape []" in refused({"inputs": "a"})
    assert "Missing named input: text" in refused({"inputs": {}})
    assert 'named input: "words"' in refused({"instances": [{"words": "a"}]})
    assert 'named input: "words"' in refused({"inputs": {"text": ["a"], "words": ["a"]}})
    assert "at item 1" in refused({"instances": ["a", {"text": "b"}]})
    assert "at item 1" in refused({"instances": [{"text": "b"}, "a"]})
    assert "surrogate" in refused({"instances": ["a\ud800"]})
    assert "unexpected size: 1 expected size: 2" in refused({"instances": [[1, 2], [3]]}, IDS)
    assert "expected a list" in refused({"instances": [[1, 2], 3]}, IDS)
    assert "received the shape [2]" in refused({"instances": [1, 2]}, IDS)
    assert "Array is not of expected type" in refused({"instances": [[1, [2]]]}, IDS)
    assert "nested deeper" in refused({"instances": [[[1]]]}, IDS)
    for wrong in (True, 1.0, "1", None):
        assert "is not of expected type: int32" in refused({"instances": [[1, wrong]]}, IDS)
    assert "outside of the range of int32" in refused({"instances": [[2**31]]}, IDS)
    assert "outside of the range" in refused({"instances": [[10**30]]}, IDS)
    assert "list of objects" in refused({"instances": ["a"]}, THREE)
    assert "must be an object" in refused({"inputs": ["a"]}, THREE)
    assert "Missing input: signal" in refused({"instances": [{"tag": "a"}]}, THREE)
    row = {"tag": "a", "signal": [1, 2, 3, 4], "sensor": [[1, 2], [3, 4]]}
    assert "received the shape [1, 4], expected [?, 5]" in refused({"instances": [row]}, THREE)
    row["signal"] = [1, 2, 3, 4, 1e39]
    assert "outside of the range of float32" in refused({"instances": [row]}, THREE)
    columns = {"tag": ["a", "b"], "signal": [[1] * 5], "sensor": [[[1, 2], [3, 4]]]}
    assert "differ in their number of rows" in refused({"inputs": columns}, THREE)


def test_nan_and_infinity_are_read_and_written():
    signature = Signature({"x": TensorInfo("DT_FLOAT", (None,))}, {})
    body = b'{"inputs": [NaN, Infinity, -Infinity]}'
    inputs, _ = read_inputs(parse_body(body, Limits()), signature)
    assert write_outputs({"y": inputs["x"]}, False) == b'{"outputs": [NaN, Infinity, -Infinity]}'


def test_signature_name_defaults_to_serving_default_and_must_be_a_string():
    assert signature_name({}) == signature_name({"signature_name": ""}) == "serving_default"
    assert signature_name({"signature_name": "n_best"}) == "n_best"
    with pytest.raises(RequestError, match="must be a string"):
        signature_name({"signature_name": 100})


def test_outputs_are_written_as_rows_or_columns():
    outputs = {
        "translation": np.array([b"a", "é\x00".encode(), b"\xff"], object),
        "score": np.array([[0.5, 2.0], [1 / 3, 9e6], [3e-5, -1e30]], np.float32),
        "truncated": np.array([True, False, False]),
    }
    # Nine digits identify a float32, so 1/3 is written as 0.333333343, as TensorFlow Serving does.
    # TensorFlow Serving's 9e+06 and 3e-05 are the same numbers in another notation.
    scores = [[0.5, 2.0], [0.333333343, 9e6], [3e-05, -1e30]]
    texts = ["a", "é\x00", "\ufffd"]
    cut = [True, False, False]
    rows = json.loads(write_outputs(outputs, True))
    assert rows == {
        "predictions": [
            {"translation": text, "score": score, "truncated": is_cut}
            for text, score, is_cut in zip(texts, scores, cut, strict=True)
        ]
    }
    columns = json.loads(write_outputs(outputs, False))
    assert columns == {"outputs": {"translation": texts, "score": scores, "truncated": cut}}


def test_single_output_is_written_without_its_name():
    outputs = {"y": np.array([3.5, 4.0, 5.5], np.float32)}
    assert write_outputs(outputs, True) == b'{"predictions": [3.5, 4.0, 5.5]}'
    assert write_outputs(outputs, False) == b'{"outputs": [3.5, 4.0, 5.5]}'


def test_outputs_with_the_bytes_suffix_are_base64_encoded():
    raw = np.array([[b"\xff\x00"], [b"plain"]], object)
    found = json.loads(write_outputs({"image_bytes": raw, "image": raw}, True))["predictions"]
    assert [row["image_bytes"] for row in found] == [[{"b64": "/wA="}], [{"b64": "cGxhaW4="}]]
    assert found[1]["image"] == ["plain"]


def test_float32_values_survive_the_json_round_trip():
    values = np.random.default_rng(1).integers(0, 2**32, 20_000, np.uint32).view(np.float32)
    values = values[np.isfinite(values)]
    found = json.loads(write_outputs({"y": values}, False))["outputs"]
    np.testing.assert_array_equal(np.array(found, np.float32), values)


def test_multidimensional_outputs_are_written_as_nested_lists():
    array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    assert json.loads(write_outputs({"y": array}, False))["outputs"] == array.tolist()
    assert json.loads(write_outputs({"y": array[:, :0]}, False))["outputs"] == [[], []]
