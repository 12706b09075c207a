"""`keras-seq serve` takes recordings as files in base64."""

import asyncio
import base64
import io
import json
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from http_in_process import Capitals, in_process, post_request
from http_serving import WITHOUT_KERAS, serving
from sound_files import flac_that_declares

from keras_seq.serving.graph_file.signatures import Signature, TensorInfo
from keras_seq.serving.http.bodies import Bodies
from keras_seq.serving.http.limits import Limits
from keras_seq.serving.http.sounds import Recordings

pytestmark = pytest.mark.process

RATE = 8000


def save_sound_model(base):
    """Saves a model that answers with the number of samples and their mean."""
    import tensorflow as tf

    class Model(tf.Module):
        @tf.function(
            input_signature=[
                tf.TensorSpec([None, None], tf.float32, name="samples"),
                tf.TensorSpec([None], tf.int32, name="lengths"),
            ]
        )
        def serving_default(self, samples, lengths):
            return {"text": tf.strings.as_string(lengths), "score": tf.reduce_sum(samples, axis=1)}

    model = Model()
    path = base / "1"
    tf.saved_model.save(model, str(path), signatures={"serving_default": model.serving_default})
    (path / "checkpoint.json").write_text(json.dumps({"runs": [], "sample_rate": RATE}))


def audio(samples, rate=RATE, kind="WAV"):
    """Encodes samples as a file in base64."""
    import soundfile

    file = io.BytesIO()
    soundfile.write(file, samples, rate, format=kind)
    return {"b64": base64.b64encode(file.getvalue()).decode()}


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    base = tmp_path_factory.mktemp("base") / "words"
    base.mkdir()
    save_sound_model(base)
    with serving(base, program=[sys.executable, "-c", WITHOUT_KERAS]) as served:
        yield served
        assert served.stop() == 0


def test_recordings_of_any_format_and_rate_become_samples(served):
    wav, flac = np.full(900, 0.25), np.full(1600, 0.5)
    rows = [{"audio": audio(wav)}, {"audio": audio(flac, 2 * RATE, "FLAC")}]
    first, second = served.predict(rows)
    assert first == {"text": "900", "score": pytest.approx(225, abs=0.1)}
    # Half as many samples at half the rate; the ends of a resampled recording are smoothed.
    assert second == {"text": "800", "score": pytest.approx(400, rel=0.02)}
    body = {"inputs": {"audio": [row["audio"] for row in rows]}}
    columns = served.client.post(served.predict_url, json=body).json()["outputs"]
    assert columns["text"] == ["900", "800"]
    assert served.predict([{"audio": audio(np.zeros(0))}]) == [{"text": "0", "score": 0.0}]
    samples = [{"samples": [0.5, 0.25, 0.0], "lengths": 2}]
    assert served.predict(samples) == [{"text": "2", "score": 0.75}]
    empty = served.client.post(served.predict_url, json={"inputs": {"audio": []}}).json()
    assert empty == {"outputs": {"text": [], "score": []}}


@pytest.mark.parametrize(
    ("request_body", "words"),
    [
        ({"instances": [{"audio": {"b64": "AAAA"}}]}, "audio 0: not a recording that can be read"),
        ({"instances": [{"audio": "text"}]}, 'input audio 0: expected {"b64": "..."}'),
        ({"instances": [{"audio": {"b64": "?"}}]}, "audio 0: Unable to base64 decode"),
        (
            {"instances": [{"audio": {"b64": ""}, "lengths": 1}]},
            "Expecting objects with 'audio' alone",
        ),
        (
            {"inputs": {"audio": []}, "instances": 3},
            "Expecting only one of 'inputs' or 'instances'",
        ),
        ({"inputs": {"audio": 3}}, "Expecting a list 'audio' alone in 'inputs'"),
        ({"instances": [{"samples": [0.0]}]}, "Missing input: lengths"),
    ],
)
def test_wrong_recordings_are_refused_in_one_line(served, request_body, words):
    code, message = served.refused(json.dumps(request_body).encode())
    assert code == 400 and words in message and "\n" not in message


def test_a_recording_above_the_limit_is_not_decoded(served):
    # Silence compresses to a few hundred bytes a minute.
    long = audio(np.zeros(11 * 60 * 1000), 1000, "FLAC")
    code, message = served.refused(json.dumps({"instances": [{"audio": long}]}).encode())
    assert code == 400
    assert message == "a recording of 660.0 s, at most 600 s; split the recording"


def test_a_recording_of_many_channels_at_a_high_rate_is_not_decoded(served):
    # 600 s, the longest duration, but 12.6 GB of samples.
    content = flac_that_declares(600 * 655_350, 655_350, 8)
    row = {"audio": {"b64": base64.b64encode(content).decode()}}
    code, message = served.refused(json.dumps({"instances": [row]}).encode())
    assert (code, message) == (
        400,
        "1 recording of 3,145,680,000 samples in all channels, at most 134,217,728 in one request; "
        "reduce the sampling rate or the channels",
    )


def test_recordings_that_are_too_long_together_are_refused_before_they_are_padded(served):
    # 9 minutes and 100 short recordings: a row of 9 minutes for each of them.
    rows = [{"audio": audio(np.zeros(seconds * RATE), RATE, "FLAC")} for seconds in (540, 1)]
    code, message = served.refused(json.dumps({"instances": [rows[0], *[rows[1]] * 100]}).encode())
    assert code == 400
    assert message.startswith("101 recordings of up to 540.0 s in one request, at most 600 s")
    assert len(served.predict([rows[1]] * 100)) == 100


@pytest.fixture
def seconds_model(monkeypatch):
    """Lets the model of `in_process` answer recordings with their seconds."""
    float32 = TensorInfo("DT_FLOAT", (None, None))
    sounds = Signature({"samples": float32, "lengths": TensorInfo("DT_INT32", (None,))}, {})
    text = Capitals.signatures["serving_default"]
    monkeypatch.setattr(Capitals, "signatures", {"serving_default": text, "sounds": sounds})
    monkeypatch.setattr(Capitals, "sample_rate", RATE)
    monkeypatch.setattr(
        Capitals, "run", lambda model, name, inputs: {"seconds": inputs["lengths"] / RATE}
    )


@pytest.mark.parametrize(
    "limits", [{"sound_bytes": 6 * RATE}, {"total_sound_values": 3 * RATE // 2}], ids=list
)
def test_decoded_recordings_of_all_requests_have_a_bound(limits, seconds_model, monkeypatch):
    """Two requests with a second each come; one fits."""
    row = {"audio": audio(np.zeros(RATE), RATE, "FLAC")}
    request = {"signature_name": "sounds", "instances": [row]}

    async def check():
        async with in_process(**limits) as served:
            decoding, go = asyncio.Event(), threading.Event()
            loop = asyncio.get_running_loop()

            def decode(recordings, decode=Recordings.decode):
                loop.call_soon_threadsafe(decoding.set)
                go.wait()
                return decode(recordings)

            monkeypatch.setattr(Recordings, "decode", decode)
            first = asyncio.create_task(served.post(request))
            await decoding.wait()
            status, answer = await served.post(request)
            assert status == 503 and b"retry-after: 1\r\n" in answer
            assert answer.endswith(b'{"error":"too many requests with recordings"}')
            go.set()
            for status, answer in (await first, await served.post(request)):
                assert status == 200 and b'{"predictions": [1.0]}' in answer

    asyncio.run(check())


def test_recordings_of_a_client_that_left_are_not_decoded(seconds_model, monkeypatch):
    """There is room for two: a third is accepted when the client of the second has left."""
    row = {"audio": audio(np.zeros(RATE), RATE, "FLAC")}
    request = {"signature_name": "sounds", "instances": [row]}
    go, decoded = threading.Event(), []

    def decode(recordings, decode=Recordings.decode):
        decoded.append(recordings)
        go.wait()
        return decode(recordings)

    monkeypatch.setattr(Recordings, "decode", decode)

    async def until_accepted(served):
        while True:
            posted = asyncio.create_task(served.post(request))
            done, _ = await asyncio.wait([posted], timeout=0.2)
            if not done:
                return posted
            assert (await posted)[0] == 503

    async def check():
        async with asyncio.timeout(60), in_process(total_sound_values=5 * RATE // 2) as served:
            first = await until_accepted(served)
            _, writer = await served.connect()
            writer.write(post_request(request))
            while (await served.post(request))[0] != 503:
                pass
            writer.close()
            third = await until_accepted(served)
            go.set()
            for status, answer in (await first, await third):
                assert status == 200 and b'{"predictions": [1.0]}' in answer
            assert len(decoded) == 2

    asyncio.run(check())


def test_recordings_are_decoded_by_one_thread_of_their_own():
    def thread():
        return threading.current_thread()

    async def decoder(bodies):
        async with bodies.decode(
            SimpleNamespace(num_bytes=1, num_values=1, decode=thread)
        ) as samples:
            return samples

    async def check():
        bodies = Bodies(Limits())
        threads = set(await asyncio.gather(*(decoder(bodies) for _ in range(3))))
        (one,) = threads
        assert one.name.startswith("decoder")

    asyncio.run(check())
