"""A server under load, during shutdown, and while versions change."""

import json
import shutil
import signal
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from http_serving import SLOW_SECONDS, save_text_model, serving

from keras_seq.serving.http.server import Options, Server
from keras_seq.text import InputError

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Versions 1 and 2 of a model, whose outputs begin with different prefixes."""
    base = tmp_path_factory.mktemp("models")
    return {n: save_text_model(base, n, f"{n} ") for n in (1, 2)}


@pytest.fixture
def base(tmp_path, models):
    (tmp_path / "ende").mkdir()
    shutil.copytree(models[1], tmp_path / "ende" / "1")
    return tmp_path / "ende"


def test_concurrent_clients_get_the_same_answers_as_sequential_ones(base):
    texts = [f"{'word ' * (number % 40)}{number}" for number in range(200)]
    with serving(base, "--queue-size", 64) as served:
        alone = [served.predict([text])[0] for text in texts]
        assert [row["translation"] for row in alone] == [f"1 {text.upper()}" for text in texts]
        batches = served.metric("keras_seq_batch_rows_count")
        with ThreadPoolExecutor(32) as pool:
            together = list(pool.map(lambda text: served.predict([text])[0], texts))
        assert together == alone
        # Concurrent requests shared batches.
        assert served.metric("keras_seq_batch_rows_count") - batches < 200
        # A row gets the same answer alone and in a batch of 64.
        assert served.predict(texts[:64]) == alone[:64]
        port = urlsplit(served.url).port
        with pytest.raises(InputError, match=f"port {port} of 127.0.0.1 cannot be used"):
            Server(Options(base, port=port), print)
        assert served.stop() == 0


def test_overloaded_server_answers_429_and_recovers(base):
    body = {"signature_name": "slow", "instances": ["a", "b"]}
    options = ("--batch-size", 2, "--queue-size", 4, "--threads", 1, "--batch-delay-ms", 0)
    with serving(base, *options) as served:
        with ThreadPoolExecutor(12) as pool:
            answers = list(
                pool.map(lambda _: served.client.post(served.predict_url, json=body), range(12))
            )
        codes = [answer.status_code for answer in answers]
        assert set(codes) == {200, 429}
        # One request runs and two wait; a slow machine may accept a few more.
        assert 3 <= codes.count(200) <= 6
        for answer in answers:
            if answer.status_code == 429:
                assert 1 <= int(answer.headers["Retry-After"]) <= 60
                assert answer.json() == {"error": "too many requests are waiting"}
            else:
                assert answer.json() == {"predictions": ["1 A", "1 B"]}
        assert served.metric('keras_seq_requests_total{code="429",endpoint="predict"}') >= 6
        assert served.metric("keras_seq_queue_rows") == 0
        assert served.predict(["a"], "slow") == ["1 A"]
        assert served.stop(signal.SIGINT) == 130


def wait_for_queue(served, rows):
    """Waits until at least `rows` rows wait; an exact number can pass unseen on a busy machine."""
    deadline = time.monotonic() + 30
    while served.metric("keras_seq_queue_rows") < rows:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_disconnect_drops_queued_rows_and_shutdown_answers_pending_ones(base):
    with serving(base, "--batch-size", 1, "--threads", 1) as served:
        # Waiting rows of a disconnected client are dropped; running all forty would take long.
        body = json.dumps({"signature_name": "slow", "instances": ["a"] * 40}).encode()
        address = urlsplit(served.url).hostname, urlsplit(served.url).port
        with socket.create_connection(address, 10) as connection:
            connection.sendall(
                b"POST /v1/models/ende:predict HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
            )
            wait_for_queue(served, 25)
        start = time.monotonic()
        assert served.predict(["b"], "slow") == ["1 B"]
        assert time.monotonic() - start < 15 * SLOW_SECONDS
        assert served.metric('keras_seq_requests_total{code="499",endpoint="predict"}') == 1

        # On shutdown, the server first answers pending requests: more than 15 rows wait, so all
        # four requests have arrived.
        rows = {"signature_name": "slow", "instances": ["a"] * 5}
        with ThreadPoolExecutor(4) as pool:
            answers = [
                pool.submit(httpx.post, served.predict_url, json=rows, timeout=60) for _ in range(4)
            ]
            wait_for_queue(served, 16)
            start = time.monotonic()
            assert served.stop() == 0
            assert time.monotonic() - start < 20 * SLOW_SECONDS + 10
            for answer in answers:
                assert answer.result().json() == {"predictions": ["1 A"] * 5}
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{served.url}/health")
        assert len(served.said) == 2, served.said


def test_newer_version_is_loaded_without_a_failed_request(base, models):
    with serving(base) as served:
        stop, seen, wrong = threading.Event(), [], []

        def ask():
            with httpx.Client(timeout=60) as client:
                while not stop.is_set():
                    answer = client.post(served.predict_url, json={"instances": ["a"]})
                    if answer.status_code != 200:
                        wrong.append(answer.text)
                        return
                    text = answer.json()["predictions"][0]["translation"]
                    seen.append((answer.headers["Model-Version"], text))
                    time.sleep(0.005)

        clients = [threading.Thread(target=ask) for _ in range(8)]
        for client in clients:
            client.start()
        shutil.copytree(models[2], base / ".tmp-2")
        time.sleep(1.5)
        assert {version for version, _ in seen} == {"1"}
        (base / ".tmp-2").rename(base / "2")
        deadline = time.monotonic() + 60
        while seen[-1][0] != "2" and not wrong and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.2)
        stop.set()
        for client in clients:
            client.join()
        assert wrong == []
        assert set(seen) == {("1", "1 A"), ("2", "2 A")}
        status = served.client.get("/v1/models/ende").json()["model_version_status"]
        assert [(s["version"], s["state"]) for s in status] == [("2", "AVAILABLE"), ("1", "END")]
        old = f"{served.url}/v1/models/ende/versions/1:predict"
        assert served.client.post(old, json={"instances": ["a"]}).status_code == 404
        assert served.metric("keras_seq_model_version") == 2
        assert served.said[2:] == ["version 2 is served now\n"]


# The disk with the log is full from a signal on.
FULL_LOG = """
import os, signal, sys
from keras_seq_cli.main import main
signal.signal(signal.SIGUSR1, lambda *_: os.dup2(os.open("/dev/full", os.O_WRONLY), 2))
sys.exit(main())
"""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_of_the_log_ends_nothing(base, models):
    with serving(base, program=[sys.executable, "-c", FULL_LOG]) as served:
        served.process.send_signal(signal.SIGUSR1)
        # Each of these versions is reported.
        (base / "3").mkdir()
        shutil.copytree(models[2], base / ".tmp-2")
        (base / ".tmp-2").rename(base / "2")
        deadline = time.monotonic() + 60
        while served.predict(["a"])[0]["translation"] != "2 A":
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert served.stop() == 0
