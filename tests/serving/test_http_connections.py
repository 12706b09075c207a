"""Limits on the number of connections, and on the time that a connection may wait."""

import asyncio
import contextlib
import errno
import subprocess
import sys
import time

import pytest
from http_in_process import in_process, post_request, read_all

from keras_seq.serving.http.connections import RareNotice
from keras_seq.serving.http.limits import connection_limit
from keras_seq.text import InputError

FULL = "more than {} connections: those without a request are closed, and further ones are refused"
HEALTH = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def closed_after(reader):
    """Returns what a connection received until the server closed it, and the seconds."""
    start = time.monotonic()
    received = await asyncio.wait_for(read_all(reader), 10)
    return received, time.monotonic() - start


async def trickle(writer, data=b"a", seconds=0.05):
    with contextlib.suppress(ConnectionError):
        while True:
            writer.write(data)
            await writer.drain()
            await asyncio.sleep(seconds)


def test_connections_beyond_the_limit_get_503_until_others_leave():
    async def check():
        async with in_process(connections=5) as served:
            open_ones = [await served.connect() for _ in range(5)]
            for reader, writer in open_ones:
                writer.write(HEALTH)
                await reader.readuntil(b'{"status":"ok"}')
            for _ in range(20):
                answer = await served.send(b"")
                assert answer.startswith(b"HTTP/1.1 503 ")
                assert b"\r\nConnection: close\r\n" in answer
                assert answer.endswith(b'\r\n\r\n{"error":"too many connections"}')
            # The accepted connections still work, and the log has one line.
            reader, writer = open_ones[0]
            writer.write(HEALTH)
            assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
            assert served.printed == [FULL.format(5)]
            for _, writer in open_ones:
                writer.close()
            await asyncio.sleep(0.05)
            assert (await served.post({"instances": ["a"]}))[0] == 200

    asyncio.run(check())


def test_silent_connections_make_room_for_others_the_oldest_first():
    async def check():
        async with in_process(connections=3) as served:
            used, used_writer = await served.connect()
            used_writer.write(HEALTH)
            await used.readuntil(b'{"status":"ok"}')
            first, _ = await served.connect()
            second, second_writer = await served.connect()
            second_writer.write(HEALTH[:-4])
            await asyncio.sleep(0.05)
            for silent in (first, second):
                assert (await served.post({"instances": ["a"]}))[0] == 200
                received, _ = await closed_after(silent)
                assert received.startswith(b"HTTP/1.1 503 ")
                # The connection of the request is closed.
                await served.connect()
            used_writer.write(HEALTH)
            assert (await used.readline()).startswith(b"HTTP/1.1 200 ")

    asyncio.run(check())


def test_silent_connections_and_slow_headers_are_closed_in_time():
    async def check():
        async with in_process(header_seconds=0.4) as served:
            silent, _ = await served.connect()
            slow, slow_writer = await served.connect()
            slow_writer.write(b"GET /health HTTP/1.1\r\nX: ")
            # The second request of a connection has the same time.
            second, second_writer = await served.connect()
            second_writer.write(HEALTH + b"GET ")
            tasks = [asyncio.create_task(trickle(w)) for w in (slow_writer, second_writer)]
            results = await asyncio.gather(*map(closed_after, (silent, slow, second)))
            for task in tasks:
                task.cancel()
            assert [received[:13] for received, _ in results] == [b"", b"", b"HTTP/1.1 200 "]
            assert all(0.3 < seconds < 2 for _, seconds in results), results

    asyncio.run(check())


def test_idle_connections_and_slow_models_are_not_cut_by_the_header_limit():
    async def check():
        async with in_process(header_seconds=0.2) as served:
            reader, writer = await served.connect()
            for _ in range(2):
                writer.write(HEALTH)
                assert (await reader.readuntil(b'{"status":"ok"}')).startswith(b"HTTP/1.1 200 ")
                await asyncio.sleep(0.6)
            # A body may take longer than the headers.
            request = post_request({"instances": ["a"]})
            writer.write(request[:-5])
            await asyncio.sleep(0.6)
            writer.write(request[-5:])
            assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")
            writer.close()

    asyncio.run(check())


def test_body_that_trickles_in_after_the_response_is_cut():
    async def check():
        async with in_process(header_seconds=0.4) as served:
            reader, writer = await served.connect()
            writer.write(post_request(b"", "Transfer-Encoding: chunked", path="/nothing"))
            writer.write(
                b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\n"
            )
            task = asyncio.create_task(trickle(writer))
            received, seconds = await closed_after(reader)
            task.cancel()
            assert b"HTTP/1.1 40" in received and seconds < 2

    asyncio.run(check())


async def unread_response(served):
    """Returns the connection of a client that does not read a large response."""
    _, writer = await served.connect()
    writer.write(post_request({"instances": ["a" * 7_000_000]}))
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        for connection in served.server.server_state.connections:
            if connection.transport.get_write_buffer_size():
                return connection
        await asyncio.sleep(0.01)
    raise TimeoutError


def test_client_that_does_not_read_its_response_is_cut():
    async def check():
        async with in_process(write_seconds=0.3, header_seconds=0.4) as served:
            connection = await unread_response(served)
            await asyncio.sleep(1)
            assert connection not in served.server.server_state.connections

    asyncio.run(check())


def test_client_that_does_not_read_its_response_does_not_delay_the_stop(capfd):
    async def check():
        async with in_process(stop_client_seconds=0.3, header_seconds=0.4) as served:
            await unread_response(served)
            start = time.monotonic()
            served.server.should_exit = True
            await served.running
            assert time.monotonic() - start < 5

    asyncio.run(check())
    assert capfd.readouterr().err == ""


def test_invalid_chunks_after_the_response_do_not_reach_the_log(capfd):
    async def check():
        async with in_process() as served:
            reader, writer = await served.connect()
            writer.write(
                b"POST /nothing HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
            )
            assert (await reader.readline()).startswith(b"HTTP/1.1 404 ")
            writer.write(b"no size\r\n")
            received, _ = await closed_after(reader)
            # No second response to the same request.
            assert b"HTTP/1.1" not in received
            assert served.server.num_connections == 0
            answer = await served.send(b"\x00\r\n\r\n")
            assert answer.startswith(b"HTTP/1.1 400 ")
            assert b"X-Content-Type-Options: nosniff" in answer

    asyncio.run(check())
    assert capfd.readouterr().err == ""


def test_log_has_one_line_when_descriptors_run_out(capfd):
    async def check():
        async with in_process() as served:
            loop = asyncio.get_running_loop()
            error = OSError(errno.EMFILE, "Too many open files")
            for _ in range(100):
                loop.call_exception_handler({"message": "accept", "exception": error})
            assert served.printed == ["a connection could not be accepted: Too many open files"]

    asyncio.run(check())
    assert capfd.readouterr().err == ""


def test_notice_is_repeated_after_a_minute(monkeypatch):
    now, lines = [0.0], []
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    notice = RareNotice(lines.append)
    for now[0] in (0, 59, 61, 62, 121.5):
        notice("full")
    notice("other")
    assert lines == ["full", "full", "full", "other"]


def test_number_of_connections_follows_from_the_limit_on_open_files():
    assert connection_limit(65_536) == 4096
    assert connection_limit(1024) == 512
    assert connection_limit(256) == 128
    assert connection_limit(65_536, 10_000) == 10_000
    with pytest.raises(InputError, match="received 600, expected at most 512"):
        connection_limit(1024, 600)


def test_limit_on_open_files_is_raised_to_the_hard_limit():
    code = (
        "import resource; from keras_seq.operating_system import raise_open_file_limit as up; "
        "n = resource.RLIMIT_NOFILE; resource.setrlimit(n, (100, 300)); "
        "print(up(200), resource.getrlimit(n), up(1000), resource.getrlimit(n), up(50))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert result.stdout.decode().strip() == "200 (200, 300) 300 (300, 300) 50"
