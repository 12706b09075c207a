"""Bounds on bodies: their time, their bytes together, and the size of their JSON."""

import asyncio
import json
import threading
import time

import pytest
from http_in_process import in_process, post_request, read_all
from hypothesis import given
from hypothesis import strategies as st

from keras_seq.serving.http.bodies import Bodies
from keras_seq.serving.http.errors import RequestError
from keras_seq.serving.http.json_size import check_json_size
from keras_seq.serving.http.limits import Limits
from keras_seq.serving.http.tensors import parse_body


def head(size, *lines):
    text = ["POST /v1/models/ende:predict HTTP/1.1", "Host: localhost", f"Content-Length: {size}"]
    return "\r\n".join([*text, *lines, "", ""]).encode()


def test_bodies_that_are_too_large_together_get_503_and_small_ones_are_still_answered():
    async def check():
        async with in_process(total_body_bytes=400_000, small_body_bytes=1000) as served:
            # Two unfinished bodies take all of the 300,000 bytes for large bodies.
            held = [await served.connect() for _ in range(2)]
            for _, writer in held:
                writer.write(head(160_000) + b" " * 150_000)
            await asyncio.sleep(0.2)
            status, answer = await served.post({"instances": ["a" * 100_000]})
            assert status == 503 and b"retry-after: 1\r\n" in answer
            assert answer.endswith(b'{"error":"too many requests with large bodies"}')
            assert (await served.post({"instances": ["a"]}))[0] == 200
            # Bodies that end or break off no longer count.
            held[0][1].close()
            await asyncio.sleep(0.2)
            body = json.dumps({"instances": ["a"]}).encode()
            held[1][1].write(body + b" " * (10_000 - len(body)))
            assert (await held[1][0].readline()).startswith(b"HTTP/1.1 200 ")
            held[1][1].close()
            await asyncio.sleep(0.1)
            assert (await served.post({"instances": ["a" * 250_000]}))[0] == 200
            assert (await served.post({"instances": ["a" * 250_000]}))[0] == 200

    asyncio.run(check())


def test_endless_body_gets_413_and_is_cut():
    async def check():
        async with in_process(body_bytes=100_000) as served:
            reader, writer = await served.connect()
            writer.write(head(10**12))
            reading = asyncio.create_task(read_all(reader))
            while not reading.done():
                writer.write(b"a" * 10_000)
                await asyncio.sleep(0)
            assert reading.result().startswith(b"HTTP/1.1 413 ")

    asyncio.run(asyncio.wait_for(check(), 10))


def test_slow_body_gets_408():
    async def check():
        async with in_process(body_seconds=0.2) as served:
            answer = await served.send(head(100) + b"{")
            assert answer.startswith(b"HTTP/1.1 408 ")

    asyncio.run(check())


def test_stop_cuts_a_body_that_trickles_in_without_a_traceback(capfd):
    async def check():
        async with in_process(stop_client_seconds=0.3) as served:
            reader, writer = await served.connect()
            writer.write(head(1000))
            finishing, finishing_writer = await served.connect()
            body = post_request({"instances": ["a"]})
            finishing_writer.write(body[:-1])
            await asyncio.sleep(0.1)
            start = time.monotonic()
            served.server.should_exit = True
            await asyncio.sleep(0.2)
            finishing_writer.write(body[-1:])
            assert (await read_all(finishing)).startswith(b"HTTP/1.1 200 ")
            answer = await read_all(reader)
            assert answer.startswith(b"HTTP/1.1 503 ")
            assert answer.endswith(b'{"error":"the server is stopping"}')
            await served.running
            assert time.monotonic() - start < 3

    asyncio.run(check())
    assert capfd.readouterr().err == ""


def test_request_that_outlasts_the_stop_gets_503_without_a_traceback(capfd):
    async def check():
        async with in_process(stop_client_seconds=60, stop_seconds=1) as served:
            reader, writer = await served.connect()
            writer.write(head(1000))
            await asyncio.sleep(0.1)
            served.server.should_exit = True
            assert (await read_all(reader)).startswith(b"HTTP/1.1 503 ")
            await served.running

    asyncio.run(check())
    assert "Traceback" not in capfd.readouterr().err


def test_other_requests_are_answered_while_large_bodies_are_parsed():
    # Before, ten such bodies blocked the server for 12 seconds.
    body = b'{"instances": [' + b"[]," * 2_600_000 + b"[]]}"

    async def check():
        async with in_process() as served:
            large = [asyncio.create_task(served.post(body)) for _ in range(3)]
            longest = 0.0
            while not all(task.done() for task in large):
                start = time.monotonic()
                assert (await served.post({"instances": ["a"]}))[0] == 200
                longest = max(longest, time.monotonic() - start)
            for task in large:
                status, answer = task.result()
                assert status == 400 and b"lists and objects, at most 100,000 are read" in answer
            return longest

    assert asyncio.run(check()) < 2


def test_large_bodies_are_parsed_by_one_thread_of_their_own():
    async def check():
        bodies = Bodies(Limits())
        assert await bodies.parse(100, threading.current_thread) is threading.main_thread()
        threads = await asyncio.gather(
            *(bodies.parse(100_000, threading.current_thread) for _ in range(3))
        )
        assert len(set(threads)) == 1 and threads[0] is not threading.main_thread()

    asyncio.run(check())


def test_large_and_small_bodies_have_the_same_answers():
    rows = [[number, 1] for number in range(200)]
    padded = {"signature_name": "ids", "instances": rows, "x": "y" * 50_000}

    async def check():
        async with in_process() as served:
            small = await served.post({"signature_name": "ids", "instances": rows})
            large = await served.post(padded)
            assert small[0] == large[0] == 200
            assert small[1].split(b"\r\n\r\n")[1] == large[1].split(b"\r\n\r\n")[1]

    asyncio.run(check())


def size_of(value, level=1):
    """Returns the lists, values and levels of a document, computed from the parsed document."""
    if not isinstance(value, (list, dict)):
        return 0, 0, level - 1
    children = list(value.values()) if isinstance(value, dict) else value
    sizes = [size_of(child, level + 1) for child in children]
    return (
        1 + sum(size[0] for size in sizes),
        len(children) + sum(size[1] for size in sizes),
        max([level, *(size[2] for size in sizes)]),
    )


documents = st.recursive(
    st.text('[]{},"\\a', max_size=6) | st.integers(-5, 5) | st.none(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text('[{,"\\', max_size=3), inner),
    max_leaves=20,
)


@given(documents)
def test_size_of_json_is_that_of_the_parsed_document(document):
    body = json.dumps(document).encode()
    lists, values, depth = size_of([document])
    body = b"[" + body + b"]"
    check_json_size(body, Limits(lists=lists, values=10_000, depth=depth))
    for limits in (Limits(lists=lists - 1), Limits(depth=depth - 1)):
        with pytest.raises(RequestError):
            check_json_size(body, limits)
    # An empty list counts as one value.
    check_json_size(body, Limits(values=values + lists + 1))
    with pytest.raises(RequestError):
        check_json_size(body, Limits(values=values - 1))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"[" * 17, "nested too deep, at most 16 levels"),
        (b'{"a":' * 17, "nested too deep, at most 16 levels"),
        (b'"\\"' + b"[" * 17 + b'"' + b"[" * 17, "nested too deep"),
        (b"[" + b"{}," * 100_000, "100,001 lists and objects, at most 100,000"),
        (b"[" + b"0," * 1_000_000, "1,000,002 values, at most 1,000,000"),
    ],
)
def test_large_json_is_refused_before_it_is_parsed(body, words):
    with pytest.raises(RequestError, match=words):
        parse_body(body, Limits())


def test_text_may_contain_any_number_of_brackets_and_commas():
    text = '[{"\\,' * 300_000
    assert parse_body(json.dumps({"instances": [text]}).encode(), Limits()) == {"instances": [text]}
