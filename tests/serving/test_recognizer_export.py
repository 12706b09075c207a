"""The SavedModel of a recognizer returns the texts of `Recognizer` on a stock server."""

import contextlib
import io
import json
import re
import shlex
import threading
from concurrent import futures
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import quote

import keras
import numpy as np
import pytest
from google.protobuf import text_format
from serving.test_deployment import batching_message
from stock_server import StockProcess, Tensor

from keras_seq.inference.recognizer import Recognizer
from keras_seq.layers import LogMelSpectrogram
from keras_seq.models import CTCRecognizer
from keras_seq.search import ctc_greedy_search
from keras_seq.serving import export_recognizer
from keras_seq.text import InputError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        keras.backend.backend() != "tensorflow", reason="only TensorFlow writes a SavedModel"
    ),
]

LABELS = ["one", "two", "drei", "四"]


def recognizer_model(features=None):
    """Builds a model whose random weights are large enough for non-empty outputs."""
    front = features or LogMelSpectrogram(1000, num_mels=4, frame_length=32, frame_step=16)
    model = CTCRecognizer(
        5, front, strides=(2,), convolution_units=4, num_layers=1, units=4, seed=1
    )
    generator = np.random.default_rng(3)
    model.set_weights([2 * generator.normal(size=w.shape) for w in model.get_weights()])
    return model


@pytest.fixture(scope="module")
def sounds():
    generator = np.random.default_rng(0)
    loudness = generator.uniform(0.01, 1, 80).repeat(50)
    sound = loudness * generator.normal(size=4000)
    return [sound[:length].astype("float32") for length in (4000, 900, 0, 20, 2500)]


@pytest.fixture(scope="module")
def model():
    return recognizer_model()


@pytest.fixture(scope="module")
def version(model, sounds, tmp_path_factory):
    notices = []
    version = export_recognizer(
        model,
        LABELS,
        tmp_path_factory.mktemp("a folder's name"),
        separator=" ",
        beam_size=4,
        n_best=3,
        examples=sounds,
        batch_size=7,
        notice=notices.append,
    )
    assert version.name == "1" and notices[0].startswith("5 recordings come out as in Python")
    return version


@pytest.fixture(scope="module")
def server(version):
    # The server process has only TensorFlow's C library.
    with StockProcess(version, operations=False) as process:
        yield process


def ask(server, sounds, signature="serving_default", width=4000):
    """Calls the server; samples are padded with NaN, so only `lengths` marks their ends."""
    samples = np.full((len(sounds), width), np.nan, "float32")
    for row, sound in zip(samples, sounds, strict=True):
        row[: len(sound)] = sound
    answer = server.run(
        signature,
        {
            "samples": Tensor(samples.shape, samples.ravel().tolist()),
            "lengths": Tensor.row([len(sound) for sound in sounds]),
        },
    )
    return {name: np.array(tensor.rows()) for name, tensor in answer.items()}


def test_exported_recognizer_transcribes_as_recognizer_does_in_python(model, server, sounds):
    here = Recognizer(model, LABELS, separator=" ", beam_size=4, n_best=3)
    expected = here.recognize(sounds)
    # The texts differ, and a sound of length 0 has an empty text.
    texts = [found[0].text for found in expected]
    assert len(set(texts)) >= 3 and texts[2] == "" and any(" " in text for text in texts)
    assert here(sounds) == texts
    best = ask(server, sounds)
    assert [text.decode() for text in best["text"]] == texts
    np.testing.assert_allclose(best["score"], [found[0].score for found in expected], atol=1e-3)
    several = ask(server, sounds, "n_best")
    for row, found in enumerate(expected):
        assert [text.decode() for text in several["text"][row][: len(found)]] == [
            one.text for one in found
        ]
        assert (several["score"][row][len(found) :] < -1e29).all()


def test_padding_and_other_rows_do_not_change_a_transcription(server, sounds):
    together = ask(server, sounds, width=4321)
    assert ask(server, sounds)["text"].tolist() == together["text"].tolist()
    for row, sound in enumerate(sounds):
        alone = ask(server, [sound], width=len(sound))
        assert alone["text"][0] == together["text"][row]
        np.testing.assert_allclose(alone["score"][0], together["score"][row], atol=1e-3)


@pytest.mark.parametrize("width", [0, 400])
def test_exported_recognizer_accepts_an_empty_batch(server, width):
    for signature in ("serving_default", "n_best"):
        answer = ask(server, [], signature, width=width)
        assert {name: len(values) for name, values in answer.items()} == {"text": 0, "score": 0}


def test_sound_without_samples_gives_empty_text(server):
    for width in (0, 1):
        answer = ask(server, [[], []], width=width)
        assert answer["text"].tolist() == [b"", b""] and answer["score"].tolist() == [0, 0]


def test_digital_silence_gives_empty_text(model, server):
    silence = np.zeros(4000, "float32")
    # Without the check for silence, this model would return labels.
    logits = model({"samples": silence[None], "lengths": np.array([4000], "int32")})
    assert int(ctc_greedy_search(logits).lengths[0, 0]) > 0
    nearly = np.zeros(4000, "float32")
    nearly[-1] = 1e-6
    sounds = [silence, nearly, silence[:16]]
    expected = Recognizer(model, LABELS, separator=" ", beam_size=4).recognize(sounds)
    assert expected[0] == [("", 0.0)] == expected[2] and expected[1][0].text
    answer = ask(server, sounds)
    assert [text.decode() for text in answer["text"]] == [found[0].text for found in expected]
    np.testing.assert_allclose(answer["score"], [found[0].score for found in expected], atol=1e-3)


def test_each_warm_up_request_runs(version, server):
    """Runs each warm-up request by its input names, as the server does."""
    import tensorflow as tf
    from tensorflow_serving.apis import prediction_log_pb2

    path = version / "assets.extra" / "tf_serving_warmup_requests"
    shapes = []
    for record in tf.data.TFRecordDataset(str(path)):
        log = prediction_log_pb2.PredictionLog.FromString(record.numpy())
        request = log.predict_log.request
        assert request.model_spec.signature_name == "serving_default"
        given = {name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()}
        assert set(given) == {"samples", "lengths"}
        assert given["lengths"].tolist() == [given["samples"].shape[1]] * len(given["samples"])
        inputs = {n: Tensor(a.shape, a.ravel().tolist()) for n, a in given.items()}
        assert len(server.run("serving_default", inputs)["text"].values) == len(given["lengths"])
        shapes.append(given["samples"].shape)
    # Warm-up requests have the lengths of the shortest non-empty and the longest example.
    assert shapes == [(1, 20), (1, 4000), (7, 20), (7, 4000)]


def blocks(version, language):
    text = (version.parent / "serving" / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def test_guide_curl_example_gives_the_documented_transcription(
    version, server, sounds, monkeypatch
):
    (curl,) = [block for block in blocks(version, "bash") if block.startswith("curl")]
    _, _, data, url = shlex.split(curl)
    assert url == f"localhost:8501/v1/models/{quote(version.parent.name)}:predict"
    monkeypatch.chdir(version.parent.parent)
    inputs = json.loads(Path(data.removeprefix("@")).read_text())["inputs"]
    # Samples written as JSON text are bit-identical.
    np.testing.assert_array_equal(np.array(inputs["samples"], "float32"), [sounds[0]])
    (text,) = ask(server, sounds[:1])["text"]
    assert f"Each of the three requests returns\n\n```\n{text.decode()}\n```" in (
        version.parent / "serving" / "README.md"
    ).read_text(encoding="utf-8")


def answered(server, inputs):
    tensors = {
        name: Tensor(np.shape(values), np.ravel(values).tolist()) for name, values in inputs.items()
    }
    return server.run("serving_default", tensors)


def printed(block):
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(compile(block, "README.md", "exec"), {})
    return output.getvalue()


def test_guide_rest_example_prints_the_served_answer(version, server, sounds, monkeypatch):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            assert self.path == f"/v1/models/{quote(version.parent.name)}:predict"
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found = answered(server, json.loads(body)["inputs"])
            outputs = {"text": found["text"].values[0].decode(), "score": found["score"].values[0]}
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps({"outputs": {n: [v] for n, v in outputs.items()}}).encode())

        def log_message(self, *_):
            pass

    rest, _ = blocks(version, "python")
    monkeypatch.chdir(version.parent.parent)
    with HTTPServer(("localhost", 0), Handler) as http:
        thread = threading.Thread(target=http.handle_request)
        thread.start()
        said = printed(rest.replace("8501", str(http.server_port)))
        thread.join()
    best = ask(server, sounds[:1])
    text, _, score = said.strip().rpartition(" ")
    assert text == best["text"][0].decode() and float(score) == pytest.approx(best["score"][0])


def test_guide_grpc_example_prints_the_served_text(version, server, sounds, monkeypatch):
    import grpc
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

    class Service(prediction_service_pb2_grpc.PredictionServiceServicer):
        def Predict(self, request, context):  # noqa: N802
            assert request.model_spec.name == version.parent.name
            given = {name: tf.make_ndarray(tensor) for name, tensor in request.inputs.items()}
            assert {n: a.dtype for n, a in given.items()} == {
                "samples": np.float32,
                "lengths": np.int32,
            }
            response = predict_pb2.PredictResponse()
            text = answered(server, given)["text"].values
            response.outputs["text"].CopyFrom(tf.make_tensor_proto(text))
            return response

    _, lines = blocks(version, "python")
    monkeypatch.chdir(version.parent.parent)
    service = grpc.server(futures.ThreadPoolExecutor(1))
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(Service(), service)
    port = service.add_insecure_port("localhost:0")
    service.start()
    said = printed(lines.replace("8500", str(port)))
    service.stop(None).wait()
    assert said.strip() == ask(server, sounds[:1])["text"][0].decode()


def test_guide_server_command_refers_to_the_generated_batching_file(version):
    serve = blocks(version, "bash")[0]
    assert shlex.quote(version.parent.name) + "/serving/batching.txt" in serve
    batching = (version.parent / "serving" / "batching.txt").read_text(encoding="utf-8")
    parameters = text_format.Parse(batching, batching_message())
    assert parameters.max_batch_size.value == 7 and parameters.pad_variable_length_inputs
    files = sorted(path.name for path in (version.parent / "serving").iterdir())
    assert files == ["README.md", "batching.txt", "example.json", "kserve.yaml", "kubernetes.yaml"]


@pytest.mark.slow
@pytest.mark.weekly
def test_exported_feature_model_with_greedy_search_equals_recognizer(sounds, tmp_path):
    model = recognizer_model(features=6)
    steps = [
        np.resize(sound, (length, 6)) for sound, length in zip(sounds, (9, 4, 1), strict=False)
    ]
    version = export_recognizer(model, LABELS, tmp_path / "heard", beam_size=None, examples=steps)
    with StockProcess(version, operations=False) as process:
        nothing = {"features": Tensor((0, 9, 6), []), "lengths": Tensor((0,), [])}
        assert process.run("serving_default", nothing)["text"].values == []
        request = {
            "features": Tensor((1, 9, 6), steps[0].ravel().tolist()),
            "lengths": Tensor.row([9]),
        }
        answer = process.run("serving_default", request)
    (text,) = Recognizer(model, LABELS, beam_size=None)(steps[:1])
    assert answer["text"].values == [text.encode()]
    guide = (tmp_path / "heard" / "serving" / "README.md").read_text(encoding="utf-8")
    assert 'request.inputs["features"]' in guide and "6 features" in guide


def test_invalid_recognizer_exports_raise_errors_and_write_nothing(model, tmp_path):
    with pytest.raises(ValueError, match="expected a list of 4 labels, .* received 3"):
        export_recognizer(model, LABELS[:3], tmp_path)
    with pytest.raises(ValueError, match="the greedy search finds one text, received n_best=2"):
        export_recognizer(model, LABELS, tmp_path, beam_size=None, n_best=2)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="a file, expected a directory"):
        export_recognizer(model, LABELS, tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
