"""Fuzzes every target for a given time, and shows how many files were tried and what failed.

    python tests/fuzzing/fuzz.py --minutes 60

With Atheris (`python -m pip install atheris`) the library is instrumented, and input that reaches
new code is changed further. Without it, files are drawn at random. Each target runs in a process of
its own, so a crash of a native library is a finding like any other. `--crashes` receives the file
of each finding; put it into `corpus/TARGET/` when it is mended.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
# Each is a function of `targets`, which imports what Atheris must instrument.
NAMES = (
    "settings",
    "tensor_files",
    "run_directories",
    "tokenizers",
    "imported_tokenizers",
    "text_files",
    "saved_models",
    "http_requests",
    "commands",
)
# The longest input that a file is drawn from.
_INPUT_BYTES = 4096
# Seconds for the start of a process and for its last file.
_PATIENCE = 300


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=60.0, help="for all targets together")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, metavar="TARGET")
    parser.add_argument("--crashes", type=Path, default=Path("fuzzing-crashes"))
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    seconds = 60 * arguments.minutes / len(arguments.only)
    if arguments.folder is not None:
        fuzz_target(arguments.only[0], seconds, arguments.folder)
        return 0
    findings = 0
    for name in arguments.only:
        with tempfile.TemporaryDirectory() as folder:
            findings += fuzz_in_process(name, seconds, Path(folder), arguments.crashes)
    return 1 if findings else 0


def fuzz_in_process(name: str, seconds: float, folder: Path, crashes: Path) -> int:
    """Fuzzes one target in a process, shows the outcome and returns the number of findings."""
    start = time.monotonic()
    command = [sys.executable, __file__, "--minutes", str(seconds / 60), "--only", name]
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
    path = [str(TESTS), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    ended = _outcome([*command, "--folder", str(folder)], environment, seconds, folder)
    record = folder / "record.json"
    executions, found = json.loads(record.read_text()) if record.exists() else (0, {})
    if ended:
        current = folder / "current"
        if not current.exists():
            raise SystemExit(f"{name}: {ended} before it tried a file:\n{_errors(folder)}")
        found[ended] = ("", current.read_bytes().hex())
    seconds = time.monotonic() - start
    _say(f"{name:20} {executions:9,} files {seconds:7.0f} s {len(found):3} findings")
    for what, (message, content) in found.items():
        data = bytes.fromhex(content)
        path_of_crash = crashes / name / hashlib.sha256(data).hexdigest()[:16]
        path_of_crash.parent.mkdir(parents=True, exist_ok=True)
        path_of_crash.write_bytes(data)
        _say(f"    {path_of_crash}: {what} {message}")
    return len(found)


def _outcome(command: list[str], environment: dict[str, str], seconds: float, folder: Path) -> str:
    """Runs the process of a target; returns "" or how it failed."""
    with open(folder / "errors.txt", "wb") as errors:
        try:
            code = subprocess.run(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=errors,
                stderr=errors,
                timeout=seconds + _PATIENCE,
            ).returncode
        except subprocess.TimeoutExpired:
            return "the process did not end"
    return f"the process ended with {code}" if code else ""


def _errors(folder: Path) -> str:
    return (folder / "errors.txt").read_text(errors="replace")[-2000:]


def fuzz_target(name: str, seconds: float, folder: Path) -> None:
    """Fuzzes one target in this process; writes the number of files and the findings."""
    is_guided = importlib.util.find_spec("atheris") is not None
    context = nullcontext()
    if is_guided:
        import atheris

        context = atheris.instrument_imports(include=["keras_seq", "keras_seq_cli"])
    with context:
        from fuzzing.targets import TARGETS
    import hypothesis

    (folder / "target").mkdir()
    target = TARGETS[name](folder / "target")
    current, record = folder / "current", folder / "record.json"
    executions, found, written = 0, {}, 0.0

    def check(content: bytes) -> None:
        nonlocal executions, written
        executions += 1
        # A native library may end the process.
        current.write_bytes(content)
        try:
            target.check(content)
        except Exception as error:
            if (place := _place(error)) not in found:
                found[place], written = (str(error)[:200], content.hex()), 0.0
        if time.monotonic() - written > 1:
            record.write_text(json.dumps([executions, found]))
            written = time.monotonic()

    run = hypothesis.settings(database=None)(hypothesis.given(target.files)(check))
    run_input = run.hypothesis.fuzz_one_input
    if is_guided:
        options = [f"-max_total_time={seconds:.0f}", f"-max_len={_INPUT_BYTES}", "-timeout=60"]
        atheris.Setup([sys.argv[0], *options, f"-artifact_prefix={folder}/"], run_input)
        atheris.Fuzz()
        return
    _draw_inputs(run_input, seconds)
    record.write_text(json.dumps([executions, found]))


def _draw_inputs(run_input: Callable[[bytes], object], seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        run_input(os.urandom(_INPUT_BYTES))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _place(error: Exception) -> str:
    """Returns the kind of an error and the line that raised it, which tell findings apart."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {Path(frame.filename).name}:{frame.lineno}"


if __name__ == "__main__":
    sys.exit(main())
