"""A task whose chunks make workers fail; a separate module, so that workers can import it."""

import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from keras_seq.jobs.chunks import Chunk, Result
from keras_seq.text import InputError


@dataclass(frozen=True)
class Shout:
    """Returns each chunk in capitals; special chunks crash, fail, sleep or print.

    Args:
        folder: Directory for notes on which process started and worked on which chunk.
    """

    folder: str
    is_portable: bool = False

    def portable(self) -> "Shout":
        return Shout(self.folder, True)

    def start(self, threads: int) -> Callable[[Chunk], Result]:
        Path(self.folder, f"start-{os.getpid()}").write_text(f"{threads} {self.is_portable}")

        def work(chunk: Chunk) -> Result:
            note = Path(self.folder, f"did-{chunk.number}")
            with note.open("a") as stream:
                stream.write(f"{os.getpid()}\n")
            match chunk.body.split():
                case [b"die", times] if len(note.read_text().split()) <= int(times):
                    os.kill(os.getpid(), signal.SIGKILL)
                case [b"exit"]:
                    os._exit(7)
                case [b"wrong"]:
                    raise ValueError("no such word")
                case [b"input"]:
                    raise InputError("the file: is wrong")
                case [b"memory"]:
                    raise MemoryError
                case [b"sleep", seconds]:
                    time.sleep(float(seconds))
                case [b"print"]:
                    sys.stdout.write("noise\n")
                    os.write(1, b"more noise\n")
            return Result(chunk.body.upper(), ("said",) if chunk.body == b"say" else ())

        return work
