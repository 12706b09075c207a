"""Trains keras-seq and its peers on a task and returns their predictions and processor times."""

from __future__ import annotations

import json
import math
import pathlib
import resource
import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple

import environments
import recordings
import translations
from peers import PEERS
from tasks import PublicTask, Row, read, read_lines, read_text, train_options

HERE = pathlib.Path(__file__).resolve().parent
OURS = "keras-seq"
# Two updates of one model instead of an ensemble, for `--smoke`.
SMALL = (
    *("--set", "model.members=1"),
    *("--set", "training.max_steps=2", "--set", "training.validate_every=2"),
    *("--set", "training.checkpoint_every=2", "--set", "training.sample_count=0"),
)
SMALL_TRANSLATOR = (
    *("--set", "tokenizer.size=280", "--set", "model.units=16", "--set", "model.num_heads=2"),
    *SMALL[2:],
)


class Predictions(NamedTuple):
    """The result of a system on a test file.

    Attributes:
        lines: Predicted lines; none if the system scores the text itself.
        seconds: Processor time of the training.
        score: The metric, for tasks of the kinds "write" and "listen".
    """

    lines: list[str]
    seconds: float
    score: float | None = None


def predict(
    system: str, task: PublicTask, data: pathlib.Path, work: pathlib.Path, seed: int, smoke: bool
) -> Predictions:
    """Trains a system on a task and predicts the last of its files.

    Raises `environments.SkippedError` if the system cannot take part.
    """
    work.mkdir(parents=True, exist_ok=True)
    if task.kind == "translate":
        return _translated(system, task, data, work, seed, smoke)
    if system == OURS:
        if task.kind == "write":
            return _our_model_of_text(task, data, work, seed)
        if task.kind == "listen":
            return _our_listener(task, data, work, seed)
        return _ours(task, data, work, seed, smoke)
    for name, file in zip(("train", "dev", "test"), task.files, strict=True):
        if task.kind == "write":
            (work / f"{name}.txt").write_text(read_text(data, file), encoding="utf-8")
        else:
            _write(work / f"{name}.tsv", ["\t".join(row) for row in read(data, file)])
    seconds = _seconds(_peer_command(system, task, work, seed, smoke))
    if task.kind == "write":
        return Predictions([], seconds, float((work / "score.txt").read_text()))
    return Predictions((work / "predicted.txt").read_text("utf-8").split("\n")[:-1], seconds)


def _ours(
    task: PublicTask, data: pathlib.Path, work: pathlib.Path, seed: int, smoke: bool
) -> Predictions:
    run = work / "run"
    keras_seq = [sys.executable, "-m", "keras_seq"]
    train = [*keras_seq, "train", str(run), *train_options(task, data, work)]
    seconds = _seconds([*train, "--seed", str(seed), *(SMALL if smoke else ())])
    texts, output = work / "texts.txt", work / "predicted.txt"
    _write(texts, [_text(task, row) for row in read(data, task.files[2])])
    command = {"classify": "classify", "tag": "tag", "transduce": "translate"}[task.kind]
    with output.open("wb") as file:
        arguments = [*keras_seq, command, str(run), str(texts)]
        subprocess.run(arguments, stdout=file, stderr=subprocess.DEVNULL, check=True)
    return Predictions(output.read_text("utf-8").split("\n")[:-1], seconds)


def _translated(
    system: str, task: PublicTask, data: pathlib.Path, work: pathlib.Path, seed: int, smoke: bool
) -> Predictions:
    """Trains a translator; a peer gets the tokens and the processor time of ours."""
    note, output = work / "seconds.json", work / "predicted.txt"
    if not note.exists():
        ours = work.with_name(f"{task.folder}-{OURS}-{seed}")
        if system == OURS:
            command = translations.train_command(task, data, work / "run", seed)
            seconds = _seconds([*command, *(SMALL_TRANSLATOR if smoke else ())])
            texts = read_lines(data, f"{task.files[2]}.{task.languages[0]}")
            lines = translations.translate(work / "run", texts)
        elif not (ours / "seconds.json").exists():
            raise environments.SkippedError(f"it needs the tokens of {OURS}")
        else:
            minutes = 0.01 if smoke else json.loads((ours / "seconds.json").read_text()) / 60
            translations.write_tokens(task, data, ours / "run", work)
            seconds = _seconds(_peer_command(system, task, work, seed, smoke) + [str(minutes)])
            lines = translations.text_of_tokens(ours / "run", work)
        _write(output, lines)
        note.write_text(json.dumps(seconds))
    return Predictions(output.read_text("utf-8").split("\n")[:-1], json.loads(note.read_text()))


def _peer_command(
    system: str, task: PublicTask, work: pathlib.Path, seed: int, smoke: bool
) -> list[str]:
    peer = PEERS[system]
    if smoke:
        python = sys.executable
    else:
        python = environments.environment(work.parents[1] / "environments", peer.environment)
    script = str(HERE / f"{peer.script}.py")
    return [python, script, task.kind, str(work), str(seed), *peer.arguments]


def _our_model_of_text(
    task: PublicTask, data: pathlib.Path, work: pathlib.Path, seed: int
) -> Predictions:
    run, test = str(work / "run"), str(data / f"{task.files[2]}.gz")
    keras_seq = [sys.executable, "-m", "keras_seq"]
    train = [*keras_seq, "train", run, *train_options(task, data, work)]
    seconds = _seconds([*train, "--seed", str(seed)])
    evaluate = [*keras_seq, "evaluate", run, "--text", test, "-m", "bits_per_character", "--json"]
    answer = subprocess.run(evaluate, capture_output=True, check=True)
    bits = json.loads(answer.stdout)["metrics"]["bits_per_character"]["value"]
    return Predictions([], seconds, bits * math.log(2))


def _our_listener(
    task: PublicTask, data: pathlib.Path, work: pathlib.Path, seed: int
) -> Predictions:
    # Both tasks with the same options use one run.
    folder = work.parent / f"recordings-{task.options[1]}-{seed}"
    note = folder / "seconds.json"
    wake = task.options[1] == "wake-word"
    if not note.exists():
        recordings.unpack(data / "digits.zip", folder)
        train = [sys.executable, "-m", "keras_seq", "train", str(folder / "run")]
        options = [*train_options(task, data, folder), "--seed", str(seed)]
        note.write_text(json.dumps(_seconds([*train, *options])))
    part = task.files[2]
    if wake:
        streams, others = recordings.write_streams(folder, part, seed)
        test = others if task.metric == "false alarms per hour" else streams
    else:
        test = folder / f"{part}.tsv"
        if task.name == "digit strings":
            test = recordings.write_strings(folder, part, seed)
    metric = {"F1": "f1", "exact": "exact"}.get(task.metric, "false_alarms")
    evaluate = [sys.executable, "-m", "keras_seq", "evaluate", str(folder / "run")]
    answer = subprocess.run(
        [*evaluate, "--pairs", str(test), "-m", metric, "--json"], capture_output=True, check=True
    )
    value = json.loads(answer.stdout)["metrics"][metric]["value"]
    score = 100 * value if metric == "f1" else value
    return Predictions([], json.loads(note.read_text()), score)


def _text(task: PublicTask, row: Row) -> str:
    return f"{row[0]}\t{row[2]}" if task.has_features else row[0]


def _write(path: pathlib.Path, lines: Sequence[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def _seconds(command: list[str]) -> float:
    """Runs a command; returns the processor time of the command and of the processes it starts."""
    before = _children()
    environments.run(command, " ".join(command[1:4]))
    return _children() - before


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
