"""Translations: our command, tokens for the peers, and text from their tokens."""

from __future__ import annotations

import pathlib
import subprocess
import sys

from tasks import PublicTask, read_lines, train_options


def train_command(task: PublicTask, data: pathlib.Path, run: pathlib.Path, seed: int) -> list[str]:
    command = [sys.executable, "-m", "keras_seq", "train", str(run)]
    return [*command, *train_options(task, data, run), "--seed", str(seed)]


def write_tokens(
    task: PublicTask, data: pathlib.Path, run: pathlib.Path, work: pathlib.Path
) -> None:
    """Writes `{train,dev,test}.tsv` with the token ids of our run, and `{source,target}.words`."""
    from keras_seq.run import Run

    vocabularies = Run.open(run).vocabularies
    for part, file in zip(("train", "dev", "test"), task.files, strict=True):
        columns = [
            [" ".join(map(str, ids)) for ids in one.encode(read_lines(data, f"{file}.{language}"))]
            for one, language in zip(vocabularies, task.languages, strict=True)
        ]
        lines = [f"{a}\t{b}\n" for a, b in zip(*columns, strict=True)]
        (work / f"{part}.tsv").write_text("".join(lines))
    for side, vocabulary in zip(("source", "target"), vocabularies, strict=True):
        words = "".join(f"{token}\n" for token in range(vocabulary.vocabulary_size))
        (work / f"{side}.words").write_text(words)


def translate(run: pathlib.Path, texts: list[str]) -> list[str]:
    command = [sys.executable, "-m", "keras_seq", "translate", str(run)]
    text = "".join(f"{line}\n" for line in texts)
    answer = subprocess.run(command, input=text.encode(), capture_output=True, check=True)
    return answer.stdout.decode().split("\n")[:-1]


def text_of_tokens(run: pathlib.Path, work: pathlib.Path) -> list[str]:
    """Decodes the token ids that a peer wrote into `tokens.txt`, by the vocabulary of our run."""
    from keras_seq.run import Run

    _, target = Run.open(run).vocabularies
    lines = (work / "tokens.txt").read_text().split("\n")[:-1]
    # OpenNMT-tf may write `<unk>`.
    return target.decode(
        [[int(token) for token in line.split() if token.isdecimal()] for line in lines]
    )
