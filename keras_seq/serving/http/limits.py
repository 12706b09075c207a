"""Bounds on what clients may send and on how long the server waits for them."""

from __future__ import annotations

from dataclasses import dataclass

from keras_seq.text import InputError

# Files that the process may open at most. More would only help an attacker to fill the memory.
MAX_OPEN_FILES = 2**16
# Connections that the server accepts before it looks at any of them. asyncio holds the descriptors
# of a few such groups, even if the server closes the connections at once.
ACCEPTED_AT_ONCE = 64
# Connections that the system keeps until the server accepts them.
WAITING_TO_BE_ACCEPTED = 1024
# Bodies of at most this many bytes are parsed without a thread, because a thread takes longer.
PARSED_AT_ONCE = 2**14

_MAX_CONNECTIONS = 4096
# Descriptors for the model, TensorFlow, the log, and connections that are being refused.
_OTHER_FILES = 512


@dataclass(frozen=True)
class Limits:
    """Bounds of the server. The page docs/serving.md lists them.

    Args:
        connections: Open connections. The server closes further ones with status 503.
        header_seconds: Time for the headers of a request, from the connection or the first byte.
            After an early response, the client has the same time for the rest of its request.
        idle_seconds: Time between two requests of a connection. Long enough for clients that send
            one request per minute.
        body_seconds: Time for a body.
        write_seconds: Time in which the client must read a response.
        stop_client_seconds: Time for a body, and for reading a response, after the stop signal.
        stop_seconds: Time between the stop signal and the end of the server.
        body_bytes: Size of a body: enough for 1 MB of text in which every character is escaped.
        total_body_bytes: Size of all bodies that are received, parsed and answered at a time.
        small_body_bytes: A quarter of `total_body_bytes` is reserved for bodies of at most this
            size, so that a few clients with large bodies do not block all others.
        sound_values: Samples of the recordings of a request, in all channels and at the rates of
            the files. 600 s of stereo at 96 kHz have 115 million, which take some seconds.
        total_sound_values: The same of all requests whose recordings wait to be decoded.
        sound_bytes: Size of the decoded recordings of all requests that are answered at a time.
            One of 600 s at 192 kHz, the highest rate of an export, takes 440 MiB.
        values: Values in the JSON of a body. A minute of samples at 16 kHz has 960,000.
        lists: Lists and objects in the JSON of a body. They take far more time than numbers.
        depth: Depth of the lists and objects.
    """

    connections: int = 1024
    header_seconds: float = 10.0
    idle_seconds: int = 75
    body_seconds: float = 60.0
    write_seconds: float = 60.0
    stop_client_seconds: float = 5.0
    stop_seconds: int = 30
    body_bytes: int = 8 * 2**20
    total_body_bytes: int = 64 * 2**20
    small_body_bytes: int = 2**16
    sound_values: int = 2**27
    total_sound_values: int = 2**29
    sound_bytes: int = 512 * 2**20
    values: int = 1_000_000
    lists: int = 100_000
    depth: int = 16


def connection_limit(open_files: int, wanted: int | None = None) -> int:
    """Returns the number of connections that a process with `open_files` descriptors may hold.

    Raises InputError if `wanted`, the value of `--max-connections`, is larger than that.
    """
    possible = max(open_files - _OTHER_FILES, open_files // 2)
    if wanted is None:
        return min(possible, _MAX_CONNECTIONS)
    if wanted > possible:
        raise InputError(
            f"--max-connections: received {wanted:,}, expected at most {possible:,}, because this "
            f"process may open {open_files:,} files; raise that limit with ulimit -n"
        )
    return wanted
