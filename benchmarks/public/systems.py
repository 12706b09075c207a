"""Trains keras-seq and its peers on a task, and predicts its validation or test file."""

from __future__ import annotations

import json
import math
import pathlib
import resource
import subprocess
import sys
from typing import NamedTuple

import environments
import recordings
import translations
from peers import PEERS
from tasks import PublicTask, read, read_lines, read_text, train_options

HERE = pathlib.Path(__file__).resolve().parent
OURS = "keras-seq"
# Options of the variants of keras-seq, besides those of the task. The peer reads blocks of 64.
VARIANTS: dict[str, tuple[str, ...]] = {
    OURS: (),
    "keras-seq, blocks of 128": (),
    "keras-seq, blocks of 64": ("--set", "data.max_target_length=64"),
}
# Two updates of one small model instead of an ensemble, for `--smoke`.
TWO_UPDATES = (
    *("--set", "training.max_steps=2", "--set", "training.validate_every=2"),
    *("--set", "training.checkpoint_every=2", "--set", "training.sample_count=0"),
)
SMALL = {
    "classify": ("--set", "model.members=1"),
    "transduce": ("--set", "model.members=1"),
    "translate": (
        *("--set", "tokenizer.size=280", "--set", "model.units=16", "--set", "model.num_heads=2"),
    ),
}


class FailedError(Exception):
    """Raised with the reason if a system takes part, but its training or prediction fails."""


class Predictions(NamedTuple):
    """Predictions of a system for a file.

    Attributes:
        lines: Predicted lines; none if the system scores the text itself.
        seconds: Processor time of the training.
        score: The metric, for tasks of the kinds "write" and "listen".
    """

    lines: list[str]
    seconds: float
    score: float | None = None


def predict(
    system: str,
    task: PublicTask,
    data: pathlib.Path,
    work: pathlib.Path,
    part: str,
    seed: int,
    smoke: bool,
) -> Predictions:
    """Predicts the part "dev" or "test" of a task, after training unless the system is trained.

    `work` is the folder of the system with this seed; the folders of other systems are next to it.
    Raises `environments.SkippedError` if the system cannot take part, and `FailedError` if its
    training or prediction fails.
    """
    work.mkdir(parents=True, exist_ok=True)
    ours = work.with_name(folder(task, task.ours[0], seed))
    if system in VARIANTS:
        _train(system, task, data, work, seed, smoke)
    else:
        _train_peer(system, task, data, work, ours, seed, smoke)
    seconds = json.loads((work / "seconds.json").read_text())
    file = task.file(part)
    if task.kind == "listen":
        return Predictions([], seconds, _score_of_recordings(task, work, file, seed))
    if task.kind == "write":
        if system not in VARIANTS:
            return Predictions([], seconds, float((work / f"score-{part}.txt").read_text()))
        text = str(data / f"{file}.gz")
        bits = _evaluate(work, "bits_per_character", "--text", text)
        return Predictions([], seconds, bits * math.log(2))
    output = work / f"predicted-{part}.txt"
    if system in VARIANTS and not output.exists():
        _predict(task, work, texts(task, data, file), output)
    lines = output.read_text("utf-8").split("\n")[:-1]
    if system not in VARIANTS and task.kind == "translate":
        lines = translations.text_of_tokens(ours / "run", lines)
    return Predictions(lines, seconds)


def folder(task: PublicTask, system: str, seed: int) -> str:
    """Returns the name of the folder of a system; tasks with the same model share it."""
    return "-".join(f"{task.folder} {system} {seed}".split())


def texts(task: PublicTask, data: pathlib.Path, file: str) -> list[str]:
    """Returns the lines to predict from, with their features."""
    if task.kind == "translate":
        return read_lines(data, f"{file}.{task.languages[0]}")
    return [f"{row[0]}\t{row[2]}" if task.has_features else row[0] for row in read(data, file)]


def _train(
    system: str, task: PublicTask, data: pathlib.Path, work: pathlib.Path, seed: int, smoke: bool
) -> None:
    """Trains keras-seq; an interrupted training starts again, so that all its time is counted."""
    note = work / "seconds.json"
    if note.exists():
        return
    if task.kind == "listen":
        recordings.unpack(data / "digits.zip", work)
    options = [*train_options(task, data, work), *VARIANTS[system], "--seed", str(seed)]
    options.append("--overwrite")
    if smoke:
        options += (*SMALL.get(task.kind, ()), *TWO_UPDATES)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        environments.ours("train", work / "run", *options)
    except environments.SkippedError as error:
        raise FailedError(str(error)) from None
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    note.write_text(json.dumps(seconds))


def _predict(task: PublicTask, work: pathlib.Path, lines: list[str], output: pathlib.Path) -> None:
    command = {"classify": "classify", "tag": "tag"}.get(task.kind, "translate")
    text = "".join(f"{line}\n" for line in lines)
    output.write_bytes(_output_of(command, str(work / "run"), text=text))


def _evaluate(work: pathlib.Path, metric: str, *options: str) -> float:
    answer = _output_of("evaluate", str(work / "run"), *options, "-m", metric, "--json")
    return json.loads(answer)["metrics"][metric]["value"]


def _output_of(command: str, *options: str, text: str = "") -> bytes:
    """Returns what a command of keras-seq prints; raises `FailedError` with its last message."""
    done = subprocess.run(
        [sys.executable, "-m", "keras_seq", command, *options],
        input=text.encode(),
        capture_output=True,
    )
    if done.returncode:
        words = done.stderr.decode("utf-8", "replace").strip().splitlines()
        reason = words[-1] if words else f"exit {done.returncode}"
        raise FailedError(f"keras-seq {command} failed: {reason}")
    return done.stdout


def _score_of_recordings(task: PublicTask, work: pathlib.Path, file: str, seed: int) -> float:
    if "wake-word" in task.options:
        streams, others = recordings.write_streams(work, file, seed)
        test = others if task.metric == "false alarms per hour" else streams
    elif task.name == "digit strings":
        test = recordings.write_strings(work, file, seed)
    else:
        test = work / f"{file}.tsv"
    metric = {"F1": "f1", "exact": "exact"}.get(task.metric, "false_alarms")
    value = _evaluate(work, metric, "--pairs", str(test))
    return 100 * value if metric == "f1" else value


def _train_peer(
    system: str,
    task: PublicTask,
    data: pathlib.Path,
    work: pathlib.Path,
    ours: pathlib.Path,
    seed: int,
    smoke: bool,
) -> None:
    """Runs the script of a peer, which writes `seconds.json` and its predictions or scores."""
    kind = "score" if task.kind == "write" else "predicted"
    if (work / f"{kind}-test.txt").exists():
        return
    peer = PEERS[system]
    arguments = [task.kind, str(work), str(seed), *peer.arguments]
    if peer.timed:
        if not (ours / "seconds.json").exists():
            raise environments.SkippedError(f"it needs the time of {task.ours[0]}")
        minutes = json.loads((ours / "seconds.json").read_text()) / 60
        arguments.append(str(0.01 if smoke else minutes))
    if task.kind == "translate":
        translations.write_tokens(task, data, ours / "run", work)
    else:
        for part, file in zip(("train", "dev", "test"), task.files, strict=True):
            if task.kind == "write":
                (work / f"{part}.txt").write_text(read_text(data, file), encoding="utf-8")
            else:
                rows = "".join("\t".join(row) + "\n" for row in read(data, file))
                (work / f"{part}.tsv").write_text(rows, encoding="utf-8", newline="\n")
    command = [str(HERE / f"{peer.script}.py"), *arguments]
    if smoke:
        # A peer that is not installed here is skipped.
        environments.run([sys.executable, *command], system)
        return
    python = environments.environment(work.parent / "environments", peer.environment)
    try:
        environments.run([python, *command], system)
    except environments.SkippedError as error:
        raise FailedError(str(error)) from None
