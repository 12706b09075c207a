"""Starts a server in a separate process, and makes a small SavedModel for it to serve."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx

# Runs `keras-seq` in an interpreter that cannot import Keras.
WITHOUT_KERAS = (
    "import sys; sys.modules['keras'] = None; "
    "from keras_seq_cli.main import main; sys.exit(main(sys.argv[1:]))"
)
SLOW_SECONDS = 0.3


def save_text_model(base: Path, version: int, mark: str = "") -> Path:
    """Saves a model with the signatures of an export and answers that are easy to compute.

    serving_default: `mark` + text in capitals; the score is -1/3 of the text's bytes.
    n_best: the same, then the text itself, then "" with the score -1e30.
    ids: each row followed by its copy from a lookup table, so ids must be below 100.
    slow: the translation of serving_default, after `SLOW_SECONDS` of work.
    bytes: the text itself, as `text_bytes`.
    """
    import tensorflow as tf

    text = [tf.TensorSpec([None], tf.string, name="text")]

    class Model(tf.Module):
        def __init__(self):
            super().__init__()
            self.mark = tf.Variable(mark)
            self.table = tf.Variable(tf.range(100))

        def capitals(self, text):
            return tf.strings.join([self.mark, tf.strings.upper(text)])

        @tf.function(input_signature=text)
        def serving_default(self, text):
            return {
                "translation": self.capitals(text),
                "score": tf.cast(tf.strings.length(text), tf.float32) / -3.0,
                "truncated": tf.strings.length(text) > 20,
            }

        @tf.function(input_signature=text)
        def n_best(self, text):
            length = tf.cast(tf.strings.length(text), tf.float32) / -3.0
            never = tf.fill(tf.shape(text), -1e30)
            empty = tf.fill(tf.shape(text), "")
            return {
                "translation": tf.stack([self.capitals(text), text, empty], 1),
                "score": tf.stack([length, length - 1.0, never], 1),
                "truncated": tf.zeros([tf.shape(text)[0], 3], tf.bool),
            }

        @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, name="ids")])
        def ids(self, ids):
            found = tf.concat([ids, tf.gather(self.table, ids)], 1)
            return {"ids": found[:, None], "length": tf.fill([tf.shape(ids)[0], 1], 2)}

        @tf.function(input_signature=text)
        def slow(self, text):
            end = tf.timestamp() + SLOW_SECONDS
            # Without `nothing`, an empty string, the answer would not depend on the loop.
            spent = tf.while_loop(
                lambda n: tf.timestamp() < end, lambda n: [n + 1], [tf.constant(0)]
            )
            nothing = tf.strings.substr(tf.strings.as_string(spent[0]), 0, 0)
            return {"translation": tf.strings.join([self.capitals(text), nothing])}

        @tf.function(input_signature=text)
        def bytes(self, text):
            return {"text_bytes": tf.identity(text)}

    model = Model()
    path = base / f".tmp-{version}"
    names = ("serving_default", "n_best", "ids", "slow", "bytes")
    tf.saved_model.save(model, str(path), signatures={name: getattr(model, name) for name in names})
    # Rename at the end, like an export, so that a polling server never sees a partial version.
    return path.rename(base / str(version))


class Served:
    """A client for a running server process."""

    def __init__(self, process: subprocess.Popen) -> None:
        self.process = process
        self.said: list[str] = []
        self.url = ""
        self._clients: list[httpx.Client] = []
        self._local = threading.local()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def wait(self, name: str) -> None:
        """Waits until the server reports its URL."""
        deadline = time.monotonic() + 60
        while not (found := re.search(r" at (http://\S+) ", "".join(self.said))):
            assert self.process.poll() is None and time.monotonic() < deadline, self.said
            time.sleep(0.02)
        self.url = found.group(1)
        self.predict_url = f"{self.url}/v1/models/{name}:predict"

    @property
    def client(self) -> httpx.Client:
        """The HTTP client of this thread; a shared client may drop connections in its cleanup."""
        if not hasattr(self._local, "client"):
            self._local.client = httpx.Client(base_url=self.url, timeout=60)
            self._clients.append(self._local.client)
        return self._local.client

    def close(self) -> None:
        """Closes the clients and the reader thread after the process has ended."""
        for client in self._clients:
            client.close()
        self._reader.join(60)

    def _read(self) -> None:
        for line in self.process.stderr:
            self.said.append(line)

    def predict(self, instances: list, signature: str | None = None) -> list:
        """Returns the predictions for `instances`."""
        body = {"instances": instances} | ({"signature_name": signature} if signature else {})
        answer = self.client.post(self.predict_url, json=body)
        assert answer.status_code == 200, answer.text
        return answer.json()["predictions"]

    def refused(self, body: bytes | dict, path: str | None = None) -> tuple[int, str]:
        """Sends an invalid request and returns the status and the error message."""
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = self.client.post(path or self.predict_url, content=content)
        assert answer.headers["content-type"] == "application/json"
        assert set(answer.json()) == {"error"}
        return answer.status_code, answer.json()["error"]

    def metric(self, name: str) -> float:
        """Returns the value of one metric from /metrics."""
        text = self.client.get("/metrics").text
        found = re.search(rf"^{re.escape(name)} (\S+)$", text, flags=re.MULTILINE)
        assert found, f"{name} is not in\n{text}"
        return float(found.group(1))

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Sends a signal and returns the exit code."""
        self.process.send_signal(number)
        return self.process.wait(60)


@contextlib.contextmanager
def serving(
    directory: Path,
    *options: object,
    program: list[str] | None = None,
    trust: bool = True,
) -> Iterator[Served]:
    """Runs `keras-seq serve` on a free port; models of `save_text_model` need `trust`."""
    options = (*options, *(["--trust"] if trust else []))
    command = [
        *(program or [sys.executable, "-m", "keras_seq"]),
        "serve",
        directory,
        "--port",
        0,
    ]
    with subprocess.Popen(
        [*map(str, command), *map(str, options)],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    ) as process:
        served = Served(process)
        try:
            served.wait(Path(directory).name)
            yield served
        finally:
            if process.poll() is None:
                process.kill()
            served.close()
