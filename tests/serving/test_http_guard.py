"""Hosts, origins and content types of requests: what a foreign web page could send is refused."""

import asyncio

import pytest
from http_in_process import in_process

from keras_seq.serving.http.hosts import allowed_hosts
from keras_seq.text import InputError

TEXT = {"instances": ["a"]}


def statuses(cases, *names):
    """Returns the status of a request with each list of headers; the first is that of none."""

    async def ask():
        async with in_process(*names) as served:
            return [await served.post(TEXT, *headers) for headers in cases]

    answers = asyncio.run(ask())
    assert all(b"x-content-type-options: nosniff" in answer for _, answer in answers)
    return [status for status, _ in answers]


def test_unknown_hosts_get_400_on_a_loopback_address():
    right = ("localhost", "localhost:8501", "127.0.0.1:99", "[::1]:8501", "LOCALHOST", "localhost.")
    wrong = ("evil.example", "localhost.evil.example", "evil.example:8501", "127.0.0.1.evil", "a b")
    assert statuses([[f"Host: {host}"] for host in right]) == [200] * len(right)
    assert statuses([[f"Host: {host}"] for host in wrong]) == [400] * len(wrong)
    assert statuses([["Host: Ende.Example:80"], ["Host: evil.example"]], "ende.example") == [
        200,
        400,
    ]


def test_hosts_are_not_checked_on_other_addresses_without_an_option():
    assert allowed_hosts("0.0.0.0", "0.0.0.0", ()) is None
    assert allowed_hosts("::", "::", ()) is None
    assert allowed_hosts("0.0.0.0", "0.0.0.0", ("ende.example",)) == {
        *("localhost", "127.0.0.1", "[::1]", "0.0.0.0", "ende.example")
    }
    assert "[::1]" in allowed_hosts("::1", "::1", ())
    assert "127.0.0.2" in allowed_hosts("127.0.0.2", "127.0.0.2", ())


@pytest.mark.parametrize("name", ["", "a:80", "http://a", "::1", "a b", "*/"])
def test_allowed_host_that_is_not_a_name_is_refused(name):
    with pytest.raises(InputError, match="--allowed-host: received"):
        allowed_hosts("127.0.0.1", "127.0.0.1", (name,))


def test_requests_from_pages_of_other_origins_get_403():
    same = "Sec-Fetch-Site: same-origin"
    cases = [
        ([], 200),
        (["Host: localhost:8501", "Origin: http://localhost:8501", same], 200),
        # Without the first header, the origin decides; a proxy may add HTTPS.
        (["Host: localhost:8501", "Origin: http://localhost:8501"], 200),
        (["Host: localhost:8501", "Origin: https://localhost:8501"], 200),
        # A proxy may change the host.
        (["Host: localhost:8501", "Origin: https://ende.example", same], 200),
        (["Sec-Fetch-Site: none"], 200),
        (["Sec-Fetch-Site: cross-site", "Origin: http://evil.example"], 403),
        # Another server on this computer.
        (
            ["Host: localhost:8501", "Sec-Fetch-Site: same-site", "Origin: http://localhost:3000"],
            403,
        ),
        (["Host: localhost:8501", "Origin: http://localhost:3000"], 403),
        (["Origin: null"], 403),
        (["Origin: http://evil.example"], 403),
    ]
    assert statuses([headers for headers, _ in cases]) == [status for _, status in cases]


def test_page_opens_from_a_link_on_another_site():
    async def ask():
        async with in_process() as served:
            return await served.send(
                b"GET / HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: cross-site\r\n"
                b"Connection: close\r\n\r\n"
            )

    answer = asyncio.run(ask())
    assert answer.startswith(b"HTTP/1.1 200 ")
    assert answer.count(b"x-content-type-options: nosniff") == 1


def test_types_that_pages_send_and_the_documentation_does_not_get_415():
    cases = [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        # Sent by `curl -d`.
        ("application/x-www-form-urlencoded", 200),
        ("application/octet-stream", 200),
        ("text/plain", 415),
        ("Text/Plain;charset=UTF-8", 415),
        ("multipart/form-data; boundary=x", 415),
    ]
    found = statuses([[f"Content-Type: {kind}"] for kind, _ in cases])
    assert found == [status for _, status in cases]


def test_request_with_two_lengths_gets_400_and_its_connection_is_closed():
    async def ask():
        async with in_process() as served:
            return await served.send(
                b"POST /v1/models/ende:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n"
                b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /health HTTP/1.1\r\n"
                b"Host: localhost\r\n\r\n"
            )

    answer = asyncio.run(ask())
    assert answer.startswith(b"HTTP/1.1 400 ") and answer.count(b"HTTP/1.1") == 1
