"""A real server process under clients that hold connections, descriptors and bodies."""

import contextlib
import http.client
import resource
import socket
import sys
import threading
import time
from collections import deque
from urllib.parse import urlsplit

import pytest
from http_serving import save_text_model, serving

pytestmark = pytest.mark.process

# A process that may open few files; the server itself raises the soft limit to the hard one.
FEW_FILES = (
    "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (150, 300)); "
    "from keras_seq_cli.main import main; sys.exit(main(sys.argv[1:]))"
)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    base = tmp_path_factory.mktemp("base") / "ende"
    base.mkdir()
    save_text_model(base, 1)
    return base


def address(served):
    return urlsplit(served.url).hostname, urlsplit(served.url).port


def health(served):
    """Returns the status of /health on a new connection, or 0 if it is not answered."""
    connection = http.client.HTTPConnection(*address(served), timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status
    except OSError:
        return 0
    finally:
        connection.close()


def test_server_outlives_more_silent_connections_than_descriptors(base):
    resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
    with serving(base, program=[sys.executable, "-c", FEW_FILES]) as served:
        with contextlib.ExitStack() as stack:
            silent = deque(
                stack.enter_context(socket.create_connection(address(served), 10))
                for _ in range(500)
            )
            # The oldest ones make room, also if their client opens others all the time.
            stop, renewed = threading.Event(), 0

            def renew():
                nonlocal renewed
                while not stop.wait(0.002):
                    silent.popleft().close()
                    connection = socket.create_connection(address(served), 10)
                    silent.append(stack.enter_context(connection))
                    renewed += 1

            thread = threading.Thread(target=renew)
            thread.start()
            try:
                assert [health(served) for _ in range(30)] == [200] * 30
                assert served.predict(["a"])[0]["translation"] == "A"
            finally:
                stop.set()
                thread.join()
            assert renewed > 20
        assert served.stop() == 0
        served.close()
        assert len(served.said) < 10, len(served.said)
        assert any(line.startswith("more than 150 connections: ") for line in served.said)


def test_sigterm_while_a_body_trickles_in_ends_without_a_traceback(base):
    with serving(base) as served:
        stop = threading.Event()
        with socket.create_connection(address(served), 10) as connection:
            connection.sendall(
                b"POST /v1/models/ende:predict HTTP/1.1\r\nHost: localhost\r\n"
                b"Content-Length: 1000\r\n\r\n"
            )

            def trickle():
                with contextlib.suppress(OSError):
                    while not stop.wait(0.2):
                        connection.sendall(b" ")

            thread = threading.Thread(target=trickle)
            thread.start()
            time.sleep(0.5)
            start = time.monotonic()
            assert served.stop() == 0
            assert time.monotonic() - start < 15
            stop.set()
            thread.join()
        served.close()
        assert len(served.said) == 2, served.said
