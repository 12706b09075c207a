"""Kills processes that save checkpoints: random KILLS DIRECTORY, or lines DIRECTORY.

The script forks each process, checks the files that the process left and prints a line of JSON.
"""

import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

import numpy as np

import keras_seq.storage.atomic
import keras_seq.storage.checkpoints.directory
import keras_seq.storage.checkpoints.store
import keras_seq.storage.checkpoints.tensor_file
import keras_seq.storage.reading
from keras_seq.storage.checkpoints import CheckpointStore

TRACED = {
    module.__file__
    for module in (
        keras_seq.storage.checkpoints.directory,
        keras_seq.storage.checkpoints.store,
        keras_seq.storage.atomic,
        keras_seq.storage.reading,
        keras_seq.storage.checkpoints.tensor_file,
        shutil,
    )
}


def say(values):
    sys.stdout.write(f"{json.dumps(values)}\n")
    sys.stdout.flush()


def save(store, step, size):
    tensors = {part: {"array": np.full(size, step, np.float32)} for part in ("weights", "training")}
    store.save(step, tensors, {"step": step})


def forked(act):
    """Runs `act` in a forked process, which then exits, and returns the process ID."""
    child = os.fork()
    if not child:
        code = 1
        try:
            act()
            code = 0
        finally:
            os._exit(code)
    return child


def look(directory, size, **more):
    """Loads the checkpoints that a killed process left, and prints which of them are intact."""
    notices = []
    store = CheckpointStore(directory, keep=2, notice=notices.append)
    specs = {part: {"array": ((size,), "float32")} for part in ("weights", "training")}
    found = {"writing": any(directory.glob(".tmp-step-*")), "old": any(directory.glob(".tmp-old*"))}
    for which in ("latest", "best"):
        loaded = store.load(specs, which)
        values = {float(v) for part in loaded.tensors.values() for v in set(part["array"].tolist())}
        found[which] = loaded.step if values == {loaded.step} == {loaded.state["step"]} else None
    say(found | {"notices": notices} | more)
    return store


def kill_at_random(directory, kills):
    """Kills each process at a random time while the process saves as fast as it can."""
    size = 300_000
    generator = random.Random(3)
    done = 0
    for _ in range(kills):
        store = CheckpointStore(directory, keep=2)
        reader, writer = os.pipe()

        def act(store=store, writer=writer):
            step = max(store.steps, default=0)
            while True:
                step += 1
                save(store, step, size)
                store.mark_best(step)
                os.write(writer, f"{step}\n".encode())

        child = forked(act)
        os.close(writer)
        said = os.read(reader, 1 << 16)
        time.sleep(generator.uniform(0, 0.05))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        while more := os.read(reader, 1 << 16):
            said += more
        os.close(reader)
        done = max(done, *map(int, said.split()))
        look(directory, size, done=done, killed=os.WTERMSIG(status) == signal.SIGKILL)


def kill_at_every_line(directory):
    """Kills one process at each executed line of a save and of `mark_best`."""
    size = 50
    base = directory / "base"
    store = CheckpointStore(base, keep=2)
    for step in (1, 2, 3):
        save(store, step, size)
        store.mark_best(min(step, 1))
    line, killed = 0, True
    while killed:
        line += 1
        copy = directory / "copy"
        shutil.copytree(base, copy)

        def act(line=line, copy=copy):
            left = line

            def trace(frame, event, argument):
                nonlocal left
                if frame.f_code.co_filename not in TRACED:
                    return None
                left -= event == "line"
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)
                return trace

            store = CheckpointStore(copy, keep=2)
            sys.settrace(trace)
            save(store, 4, size)
            store.mark_best(4)

        _, status = os.waitpid(forked(act), 0)
        killed = os.WIFSIGNALED(status)
        after = look(copy, size, killed=killed, ended_well=status == 0)
        # The next save removes temporary files.
        save(after, 5, size)
        left = [path.name for path in copy.glob(".tmp-*")]
        say({"left": left, "steps": after.steps})
        shutil.rmtree(copy)


if __name__ == "__main__":
    if sys.argv[1] == "random":
        kill_at_random(Path(sys.argv[3]), int(sys.argv[2]))
    else:
        kill_at_every_line(Path(sys.argv[2]))
