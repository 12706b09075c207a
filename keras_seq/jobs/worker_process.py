"""A worker on this machine: a process that gets chunks on stdin and gives results on stdout.

Started by `keras_seq.jobs.local_workers`. What goes through the pipes is pickled: both ends are
the same program, and nobody else has hold of them.
"""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from typing import IO, Any

from keras_seq.jobs.failures import explained

_LENGTH_BYTES = 8


def main() -> None:
    """Works until nothing more comes on stdin, which is also how the starter's end is noticed."""
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    # Whoever prints, prints to stderr: stdout is for results alone.
    os.dup2(2, 1)
    sys.stdin = open(os.devnull, encoding="utf-8")
    task, threads = receive(requests)
    work = task.start(threads)
    try:
        while True:
            chunk = receive(requests)
            try:
                reply: Any = work(chunk)
            except Exception as error:
                traceback.print_exc()
                reply = explained(error, chunk.where)
            send(replies, reply)
    except (EOFError, BrokenPipeError):
        # Without the clean-up of libraries, which can take seconds and has nothing to clean.
        os._exit(0)


def send(stream: IO[bytes], message: Any) -> None:
    """Writes a message."""
    content = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(len(content).to_bytes(_LENGTH_BYTES, "big"))
    stream.write(content)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Reads a message; EOFError where the other end has gone."""
    length = _exactly(stream, _LENGTH_BYTES)
    return pickle.loads(_exactly(stream, int.from_bytes(length, "big")))


def _exactly(stream: IO[bytes], count: int) -> bytes:
    content = stream.read(count)
    if len(content) < count:
        raise EOFError
    return content
