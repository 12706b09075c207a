"""Random requests, valid ones and damaged ones, never lead to an internal error."""

import asyncio
import json
import random
import re
import time

from http_in_process import PATH, in_process, read_all

SECONDS = 2.0
METHODS = ["GET", "POST", "POST", "POST", "HEAD", "PUT", "OPTIONS", "\x00", "get"]
PATHS = [
    *(PATH, PATH, PATH, "/", "/health", "/ready", "/metrics", "/v1/models/ende", "*", "//", "/%00"),
    *("/v1/models/ende/metadata", "/v1/models/%ff:predict", "/v1/models/ende/versions/9:predict"),
    *("http://evil/", "/../x", "/v1/models/ende/labels/\ud800", "/v1/" + "a" * 5000),
]
HEADERS = [
    *("Host: localhost", "Host: evil", "Host: [::1", "Host:", "Origin: null", "Origin: x"),
    *("Sec-Fetch-Site: cross-site", "Content-Type: text/plain", "Content-Type: application/json"),
    *("Content-Type: ;", "Content-Encoding: gzip", "Expect: 100-continue", "Upgrade: websocket"),
    *("Transfer-Encoding: chunked", "Content-Length: 3", "Content-Length: -1", "X: \xff", ": "),
    *("Connection: keep-alive", "Connection: Upgrade", "Content-Length: 99999999999999999999"),
]
VALUES = [
    *(
        None,
        True,
        0,
        -1.5,
        10**30,
        "",
        "a",
        "\ud800",
        "\x00",
        [],
        {},
        [[]],
        [["a"], 1],
        {"b64": "?"},
    ),
    *({"b64": "YQ"}, {"text": "a"}, [1, [2]], ["a"] * 300, [1e400], "x" * 20_000),
]
KEYS = ["instances", "inputs", "signature_name", "text", "ids", "b64", "audio", ""]


def value(rng, depth=0):
    kind = rng.random()
    if kind < 0.4 or depth == 3:
        return rng.choice(VALUES)
    if kind < 0.7:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {rng.choice(KEYS): value(rng, depth + 1) for _ in range(rng.randrange(3))}


def body(rng):
    kind = rng.random()
    if kind < 0.1:
        return rng.randbytes(rng.randrange(200))
    if kind < 0.2:
        return b"".join(rng.choices((b"[", b"]", b"{", b"}", b",", b'"', b"\\", b"1"), k=100))
    document = {key: value(rng) for key in rng.sample(KEYS, rng.randrange(4))}
    if kind < 0.6:
        document = {"instances": ["a"] * rng.randrange(1, 4)} | document
    return json.dumps(document).encode()


def request(rng):
    """Returns the bytes of a request, which is valid in about half of the cases."""
    content = body(rng)
    lines = [f"{rng.choice(METHODS)} {rng.choice(PATHS)} HTTP/1.{rng.choice('0111')}"]
    lines += ["Host: localhost"] * (rng.random() < 0.9)
    lines += [f"Content-Length: {len(content)}"] * (rng.random() < 0.9)
    lines += rng.sample(HEADERS, rng.choice((0, 0, 1, 1, 2)))
    if "Transfer-Encoding: chunked" in lines and rng.random() < 0.7:
        content = b"%x\r\n%s\r\n0\r\n\r\n" % (len(content), content)
    whole = "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + content
    if rng.random() < 0.2:
        whole = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            whole[rng.randrange(len(whole))] = rng.randrange(256)
    if rng.random() < 0.1:
        whole = whole[: rng.randrange(len(whole))]
    return bytes(whole)


def test_random_requests_get_no_internal_error(capfd):
    rng = random.Random(1)
    seen: dict[str, int] = {}

    async def ask(served):
        sent = b"".join(request(rng) for _ in range(rng.choice((1, 1, 1, 3))))
        reader, writer = await served.connect()
        writer.write(sent)
        writer.write_eof()
        answer = await asyncio.wait_for(read_all(reader), 10)
        codes = re.findall(rb"^HTTP/1.1 (\d+) ", answer, flags=re.MULTILINE)
        for code in map(bytes.decode, codes):
            seen[code] = seen.get(code, 0) + 1
            assert re.fullmatch("100|2..|4..|503", code), (sent, answer)
        assert b"Traceback" not in answer
        writer.close()

    async def check():
        bounds = {"body_bytes": 15_000, "total_body_bytes": 40_000, "header_seconds": 0.5}
        async with in_process(**bounds) as served:
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                await asyncio.gather(*(ask(served) for _ in range(8)))
            assert (await served.post({"instances": ["a"]}))[0] == 200
            assert served.printed == []

    asyncio.run(check())
    assert capfd.readouterr().err == ""
    # The requests reach the model. A slow machine may not see the rarer errors.
    assert set(seen) >= {"200", "400", "404"}, seen
