"""`keras-seq serve` implements TensorFlow Serving's REST API; tested over a real socket."""

import base64
import json
import shutil
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import pytest
from http_serving import WITHOUT_KERAS, save_text_model, serving

pytestmark = pytest.mark.process

MEGABYTE = 2**20


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """A server in a process where Keras cannot be imported."""
    base = tmp_path_factory.mktemp("base") / "ende"
    base.mkdir()
    save_text_model(base, 1)
    with serving(base, program=[sys.executable, "-c", WITHOUT_KERAS]) as served:
        yield served
        assert served.stop() == 0


def expected(text):
    return {
        "translation": text.upper(),
        "score": pytest.approx(-len(text.encode()) / 3),
        "truncated": len(text.encode()) > 20,
    }


def test_row_and_column_requests_give_the_same_predictions(served):
    texts = ["A dog runs.", "", "two", "x" * 30]
    assert served.predict(texts) == [expected(text) for text in texts]
    assert served.predict([{"text": text} for text in texts]) == served.predict(texts)
    columns = served.client.post(served.predict_url, json={"inputs": texts}).json()["outputs"]
    assert columns["translation"] == [text.upper() for text in texts]
    assert columns["truncated"] == [False, False, False, True]
    named = served.client.post(served.predict_url, json={"inputs": {"text": texts}}).json()
    assert named == {"outputs": columns}


def test_documented_curl_command_works_unchanged(served):
    curl = shutil.which("curl")
    if curl is None:
        pytest.skip("curl is not installed")
    where = served.predict_url.removeprefix("http://")
    result = subprocess.run(
        [curl, "-s", "-d", '{"instances": ["A dog runs."]}', where], capture_output=True, check=True
    )
    assert json.loads(result.stdout) == {"predictions": [expected("A dog runs.")]}


def test_named_signatures_answer_with_their_own_outputs(served):
    (row,) = served.predict(["ab"], "n_best")
    assert row["translation"] == ["AB", "ab", ""]
    assert row["score"] == [-0.666666687, -1.66666675, -1e30]
    rows = served.predict([[1, 2], [3, 4]], "ids")
    assert rows == [{"ids": [[1, 2, 1, 2]], "length": [2]}, {"ids": [[3, 4, 3, 4]], "length": [2]}]
    raw = {"b64": base64.b64encode(b"\xff\x00").decode()}
    assert served.predict([raw], "bytes") == [raw]
    # A single output is returned without its name.
    assert served.predict(["a"], "slow") == ["A"]


def test_column_request_without_rows_gives_empty_outputs(served):
    answer = served.client.post(served.predict_url, json={"inputs": []})
    assert answer.json() == {"outputs": {"translation": [], "score": [], "truncated": []}}


def test_predict_handles_unicode_control_characters_and_invalid_utf8(served):
    texts = ["é😀", "a\x00b", "\u2028", "<script>", '"\\', "\x1f\x7f", "e\u0301"]
    found = [row["translation"] for row in served.predict(texts)]
    # The model converts only ASCII letters to upper case.
    assert found == ["".join(c.upper() if c.isascii() else c for c in text) for text in texts]
    (invalid,) = served.predict([{"b64": base64.b64encode(b"\xff\xfea").decode()}])
    assert invalid["translation"] == "\ufffd\ufffdA"


def test_megabyte_text_is_answered_and_oversized_body_gets_413(served):
    (row,) = served.predict(["w" * MEGABYTE])
    assert row["translation"] == "W" * MEGABYTE
    (row,) = served.predict(["\x00" * MEGABYTE])
    assert row["score"] == pytest.approx(-MEGABYTE / 3)
    body = json.dumps({"instances": ["w" * 9 * MEGABYTE]}).encode()
    code, message = served.refused(body)
    assert (code, message) == (413, "the body is larger than 8,388,608 bytes")
    # A chunked body does not declare its length.
    pieces = (body[at : at + 65536] for at in range(0, len(body), 65536))
    assert served.client.post(served.predict_url, content=pieces).status_code == 413
    # With `Expect: 100-continue`, the server rejects the body before it is sent.
    host, port = urlsplit(served.url).hostname, urlsplit(served.url).port
    with socket.create_connection((host, port), 10) as connection:
        connection.sendall(
            b"POST /v1/models/ende:predict HTTP/1.1\r\nHost: localhost\r\n"
            b"Expect: 100-continue\r\nContent-Length: 99999999\r\n\r\n"
        )
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")
    assert served.predict(["still here"]) == [expected("still here")]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "empty"),
        (b"{", "JSON Parse error"),
        (b'{"instances": ["\xff"]}', "invalid UTF-8"),
        (b"[" * 1000, "nested too deep"),
        (b"[" * MEGABYTE, "1,048,576 lists and objects, at most 100,000"),
        ({"instances": [1]}, "not of expected type: string"),
        ({"instances": []}, "No values"),
        ({"instances": [["a"], "b"]}, "nested deeper"),
        ({"text": "a"}, "Missing 'inputs' or 'instances'"),
        ({"instances": ["a\ud800"]}, "surrogate"),
        ({"signature_name": "nope\ud800", "instances": ["a"]}, "nope"),
        ({"signature_name": "__saved_model_init_op", "instances": ["a"]}, "not found"),
        ({"signature_name": 100, "instances": ["a"]}, "must be a string"),
        ({"signature_name": "ids", "instances": [[1], [1, 2]]}, "unexpected size"),
        ({"signature_name": "ids", "instances": [[100]]}, "the model rejects this input"),
        ({"signature_name": "ids", "instances": [[2**40]]}, "outside of the range"),
        ({"instances": ["a"] * 300}, "300 rows in one request, at most 256"),
    ],
)
def test_invalid_body_gets_400_with_a_one_line_error(served, body, words):
    code, message = served.refused(body)
    assert code == 400 and words in message
    assert "\n" not in message and "Traceback" not in message and len(message) < 400
    assert served.predict(["on"]) == [expected("on")]


def test_wrong_paths_methods_and_encodings_get_specific_errors(served):
    right = {"instances": ["a"]}
    for path, code, words in (
        ("/v1/models/half:predict", 404, "Servable not found for request: Latest(half)"),
        ("/v1/models/ende/versions/7:predict", 404, "not found for request: Specific(ende, 7)"),
        ("/v1/models/ende/labels/stable:predict", 400, "Unrecognized servable version label"),
        ("/v1/models/ende/versions/x:predict", 400, "Malformed request: POST"),
        ("/v1/models/ende/versions/" + "9" * 30 + ":predict", 400, "Failed to convert version"),
        ("/v1/models/ende:classify", 400, "signature method_name"),
        ("/v1/models/ende", 400, "Malformed request: POST"),
        ("/v1/models/%2e%2e:predict", 404, "Servable not found"),
        ("/v1/models/%2e%2e%2fende:predict", 400, "Malformed request"),
        ("/nothing", 404, "Not found"),
        ("/", 405, "Method Not Allowed"),
    ):
        assert served.refused(right, path)[0] == code, path
        assert words in served.refused(right, path)[1]
    for path, code, words in (
        ("/v1/models/half", 404, "Could not find any versions of model half"),
        ("/v1/models/ende/versions/7", 404, "Could not find version 7 of model ende"),
        ("/v1/models/ende/labels/stable", 400, "Unrecognized servable version label: stable"),
        ("/v1/models/half/metadata", 404, "Servable not found"),
        ("/v1/models", 400, "Malformed request: GET"),
        ("/v1/models/%ff%00", 404, "Could not find any versions"),
        ("/favicon.ico", 404, "Not found"),
        ("/%0a", 404, "Not found"),
        ("/metrics%0a", 404, "Not found"),
    ):
        answer = served.client.get(path)
        assert answer.status_code == code and words in answer.json()["error"], path
    assert served.client.delete("/v1/models/ende").status_code == 405
    answer = served.client.post(
        served.predict_url, content=b"\x1f\x8b", headers={"Content-Encoding": "gzip"}
    )
    assert answer.status_code == 415


def test_status_and_metadata_follow_the_tensorflow_serving_format(served):
    status = {
        "model_version_status": [
            {
                "version": "1",
                "state": "AVAILABLE",
                "status": {"error_code": "OK", "error_message": ""},
            }
        ]
    }
    for path in ("/v1/models/ende", "/v1/models/ende/versions/1"):
        assert served.client.get(path).json() == status
    assert served.client.head("/v1/models/ende").status_code == 200
    answer = served.client.get("/v1/models/ende/metadata").json()
    assert answer["model_spec"] == {"name": "ende", "signature_name": "", "version": "1"}
    signatures = answer["metadata"]["signature_def"]["signature_def"]
    shape = {"dim": [{"size": "-1", "name": ""}], "unknown_rank": False}
    assert signatures["serving_default"]["inputs"]["text"] == {
        "dtype": "DT_STRING",
        "tensor_shape": shape,
        "name": "serving_default_text:0",
    }
    assert signatures["serving_default"]["method_name"] == "tensorflow/serving/predict"
    assert signatures["serving_default"]["outputs"]["score"]["dtype"] == "DT_FLOAT"
    assert "__saved_model_init_op" in signatures


def test_status_and_metadata_json_parse_as_protobuf_messages(served):
    json_format = pytest.importorskip("google.protobuf.json_format")
    apis = pytest.importorskip("tensorflow_serving.apis.get_model_metadata_pb2")
    answer = served.client.get("/v1/models/ende/versions/1/metadata").json()
    found = json_format.ParseDict(answer["metadata"]["signature_def"], apis.SignatureDefMap())
    assert found.signature_def["serving_default"].inputs["text"].dtype == 7
    status = pytest.importorskip("tensorflow_serving.apis.get_model_status_pb2")
    answer = served.client.get("/v1/models/ende").json()
    parsed = json_format.ParseDict(answer, status.GetModelStatusResponse())
    assert parsed.model_version_status[0].state == 30


def test_health_ready_and_metrics_report_the_server_state(served):
    assert served.client.get("/health").json() == {"status": "ok"}
    assert served.client.get("/ready").json() == {"status": "ready"}
    name = 'keras_seq_requests_total{code="200",endpoint="predict"}'
    served.predict(["a"])
    before = served.metric(name)
    batches = served.metric("keras_seq_batch_rows_count")
    served.predict(["a"] * 40)
    assert served.metric(name) == before + 1
    assert served.metric("keras_seq_batch_rows_count") == batches + 2
    assert served.metric('keras_seq_requests_total{code="404",endpoint="predict"}') >= 1
    assert served.metric("keras_seq_request_seconds_count") >= 2
    assert served.metric("keras_seq_batch_seconds_count") >= 2
    assert served.metric("keras_seq_queue_rows") == 0
    assert served.metric("keras_seq_model_version") == 1
    answer = served.client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    parser = pytest.importorskip("prometheus_client.parser")
    assert len(list(parser.text_string_to_metric_families(answer.text))) > 7
    # Unknown paths do not add metric labels.
    for number in range(20):
        served.client.get(f"/made-up/{number}")
    assert "made-up" not in served.client.get("/metrics").text


def test_non_http_input_does_not_break_the_server(served):
    host, port = urlsplit(served.url).hostname, urlsplit(served.url).port
    for rubbish in (b"\x16\x03\x01\x02\x00", b"GET / HTTP/9\r\n\r\n", b"A" * 100_000 + b"\r\n\r\n"):
        with socket.create_connection((host, port), 10) as connection:
            connection.sendall(rubbish)
            connection.shutdown(socket.SHUT_WR)
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
            assert b" 500 " not in answer and b"Traceback" not in answer
    assert served.predict(["on"]) == [expected("on")]
    assert [line for line in served.said if "rror" in line] == []
