"""Runs a command once for each call that changes or reads a file, and fails this call.

The script runs with the library of failing_calls.c preloaded. Its arguments are the library, a
folder with the files that the command reads, "writes" or "reads", the error number, "later" to
fail all later calls as well, the number of the first call, the difference to the next, and the
command. The command writes to `out/` in a copy of the folder. Only these writes can fail, and all
reads in the folder. The script prints a line of JSON for each call.
"""

import ctypes
import importlib
import itertools
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

from keras_seq_cli.main import main

# The forks need not import what takes seconds.
for name in ("keras_seq.inference.translator", "keras_seq.training"):
    importlib.import_module(name)


def run(library, folder, arguments, call, reads=False, error=0, later=False):
    """Runs a command in a fork; returns its exit code, standard error, calls and the failed call.

    The exit code is None if a signal ended the process.
    """
    reader, writer = os.pipe()
    with tempfile.TemporaryFile() as said:
        child = os.fork()
        if not child:
            code = 1
            try:
                os.chdir(folder)
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                os.dup2(said.fileno(), 2)
                below = folder if reads else folder / "out"
                library.fail_call(os.fsencode(below), call, error, later, reads)
                code = main(arguments)
            finally:
                os.write(writer, b"%d %s" % (library.calls_made(), library.failed_call()))
                os._exit(code)
        os.close(writer)
        _, status = os.waitpid(child, 0)
        calls, _, failed = (os.read(reader, 5000) or b"0").decode().partition(" ")
        os.close(reader)
        said.seek(0)
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
        said = said.read().decode()
        return {"code": code, "said": said, "calls": int(calls), "failed": failed}


def sweep(library, folder, arguments, numbers, **failure):
    """Fails the calls `numbers`, until the command makes fewer calls than that."""
    for call in numbers:
        copy = folder.parent / f"{folder.name}-{call}"
        shutil.copytree(folder, copy)
        first = run(library, copy, arguments, call, **failure)
        left = sorted(str(path.relative_to(copy)) for path in copy.rglob(".tmp-*"))
        again = run(library, copy, arguments, 0)
        shutil.rmtree(copy)
        sys.stdout.write(json.dumps({"call": call, **first, "left": left, "again": again}) + "\n")
        sys.stdout.flush()
        if first["calls"] < call:
            break


if __name__ == "__main__":
    path, folder, kind, error, later, start, step, *arguments = sys.argv[1:]
    numbers = itertools.count(int(start), int(step))
    library = ctypes.CDLL(path)
    library.failed_call.restype = ctypes.c_char_p
    failure = {"reads": kind == "reads", "error": int(error), "later": later == "later"}
    sweep(library, Path(folder).resolve(), arguments, numbers, **failure)
