"""The main function of a worker process, started by `keras_seq.jobs.local_workers`."""

from __future__ import annotations

import os
import pickle
import sys
import traceback
from typing import IO, Any

from keras_seq.jobs.failures import explained

_LENGTH_BYTES = 8


def main() -> None:
    """Processes chunks until end-of-file on stdin, for example if the parent process ends."""
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    # Redirect the output of libraries to stderr, because stdout is the pipe for results.
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
        # Exit without the cleanup of libraries, which can take seconds.
        os._exit(0)


def send(stream: IO[bytes], message: Any) -> None:
    # Pickle is safe here, because only this program has access to the pipes.
    content = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(len(content).to_bytes(_LENGTH_BYTES, "big"))
    stream.write(content)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Receives a message; raises EOFError if the sender has closed the stream."""
    length = _exactly(stream, _LENGTH_BYTES)
    return pickle.loads(_exactly(stream, int.from_bytes(length, "big")))


def _exactly(stream: IO[bytes], count: int) -> bytes:
    content = stream.read(count)
    if len(content) < count:
        raise EOFError
    return content
