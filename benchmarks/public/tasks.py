"""The public tasks: their files, the options of keras-seq, the metric and the peers."""

from __future__ import annotations

import gzip
import pathlib
from collections.abc import Sequence
from typing import Literal, NamedTuple

import recordings

Kind = Literal["classify", "tag", "transduce", "write", "listen", "translate"]
Row = Sequence[str]


class PublicTask(NamedTuple):
    """One task.

    Attributes:
        name: The name in the table.
        kind: What is predicted: a label of a text, a tag of each word, a string, the next
            character, the words of a recording, or a translation.
        files: Training, validation and test file in the folder of data, without `.tsv.gz`; with
            `.txt` in the name, without `.gz`; of recordings, parts of `digits.zip`; of
            translations, without the language.
        options: Options of `keras-seq train` besides the data.
        metric: "accuracy", "entity F1", "F1" or "exact", in percent; "chrF" or "BLEU"; or "nats per
            character" or "false alarms per hour", of which less is better.
        peers: Names in `peers.PEERS`.
        languages: Suffixes of the files of a translation.
        ours: Names in `systems.VARIANTS`; timed peers get the time of the first.
    """

    name: str
    kind: Kind
    files: tuple[str, str, str]
    options: tuple[str, ...]
    metric: str
    peers: tuple[str, ...]
    languages: tuple[str, str] = ("", "")
    ours: tuple[str, ...] = ("keras-seq",)

    @property
    def has_features(self) -> bool:
        return "--columns" in self.options

    @property
    def folder(self) -> str:
        """The name of the folder of results; tasks with the same models share it."""
        if self.kind == "listen":
            return self.options[1]
        return self.name if self.kind != "translate" else "".join(self.languages)

    def file(self, part: str) -> str:
        """Returns the validation file, "dev", or the test file."""
        return self.files[1 if part == "dev" else 2]


YOYODYNE = (
    "yoyodyne attentive LSTM",
    "yoyodyne pointer-generator LSTM",
    "yoyodyne rotary Transformer",
    "yoyodyne rotary pointer-generator Transformer",
)


def labels(name: str) -> PublicTask:
    files = (f"{name}/train", f"{name}/valid", f"{name}/test")
    options = ("--task", "classify")
    return PublicTask(
        name, "classify", files, options, "accuracy", ("logistic regression", "fastText")
    )


def tags(name: str, metric: str) -> PublicTask:
    files = (f"{name}/train", f"{name}/valid", f"{name}/test")
    options = ("--task", "tag")
    return PublicTask(name, "tag", files, options, metric, ("crfsuite",))


def pronunciation(language: str) -> PublicTask:
    files = tuple(f"g2p/{language}.{part}" for part in ("train", "dev", "test"))
    return PublicTask(f"g2p {language}", "transduce", files, (), "exact", YOYODYNE)


def inflection(language: str, size: str) -> PublicTask:
    parts = (f"train-{size}", "dev", "test")
    files = tuple(f"inflection/{language}.{part}" for part in parts)
    options = ("--columns", "source=1,target=2,features=3")
    return PublicTask(
        f"inflection {language} {size}", "transduce", files, options, "exact", YOYODYNE
    )


def digits(name: str, metric: str) -> PublicTask:
    task = "wake-word" if name.startswith("wake word") else "speech"
    return PublicTask(name, "listen", ("train", "valid", "test"), ("--task", task), metric, ())


def characters(name: str) -> PublicTask:
    # There is no test file.
    files = (f"{name}/train.txt", f"{name}/valid.txt", f"{name}/valid.txt")
    options = ("--task", "language-model", "--preset", "lm-characters", "--max-minutes", "10")
    # The preset has blocks of 128, twice those of the peer.
    ours = ("keras-seq, blocks of 128", "keras-seq, blocks of 64")
    return PublicTask(
        name, "write", files, options, "nats per character", ("torch GPT",), ours=ours
    )


def translation(source: str, target: str, metric: str) -> PublicTask:
    files = ("enja/train", "enja/dev", "enja/test")
    name = f"{source}{target}" if metric == "chrF" else f"{source}{target}, {metric}"
    peers = ("torch Transformer", "OpenNMT-tf Transformer")
    options = ("--max-minutes", "15")
    return PublicTask(name, "translate", files, options, metric, peers, (source, target))


TASKS = (
    labels("trec"),
    labels("sst2"),
    tags("pos", "accuracy"),
    tags("wnut17", "entity F1"),
    *map(pronunciation, ("ice-yoyodyne", "dut", "fre", "hin", "kor", "lit")),
    *(inflection(one, size) for one in ("finnish", "german") for size in ("medium", "high")),
    characters("shakespeare"),
    digits("digits", "exact"),
    digits("digit strings", "exact"),
    digits("wake word", "F1"),
    digits("wake word, others", "false alarms per hour"),
    *(
        translation(*languages, metric)
        for languages in (("en", "ja"), ("ja", "en"))
        for metric in ("chrF", "BLEU")
    ),
)


def train_options(task: PublicTask, data: pathlib.Path, sounds: pathlib.Path) -> list[str]:
    """Returns the options of `keras-seq train` for a task, with its files.

    `sounds` is the folder that `recordings.unpack` filled, for tasks of the kind "listen".
    """
    options = []
    for prefix, file in zip(("--", "--valid-"), task.files, strict=False):
        for name, path in file_options(task, file, data, sounds).items():
            options += [f"{prefix}{name}", str(path)]
    return [*options, *task.options]


def file_options(
    task: PublicTask, file: str, data: pathlib.Path, sounds: pathlib.Path
) -> dict[str, pathlib.Path]:
    """Returns one of the files of a task by the option of `keras-seq train` that takes it."""
    if task.kind == "translate":
        sides = zip(("source", "target"), task.languages, strict=True)
        return {side: data / f"{file}.{language}.gz" for side, language in sides}
    if task.kind == "write":
        return {"text": data / f"{file}.gz"}
    if task.kind == "listen":
        wake = "wake-" if "wake-word" in task.options else ""
        return {"data": sounds / f"{wake}{file}.tsv"}
    name = "pairs" if task.kind == "transduce" else "labeled"
    return {name: data / f"{file}.tsv.gz"}


def read_lines(data: pathlib.Path, name: str) -> list[str]:
    return read_text(data, name).split("\n")[:-1]


def read_text(data: pathlib.Path, name: str) -> str:
    with gzip.open(data / f"{name}.gz", "rt", encoding="utf-8", newline="\n") as file:
        return file.read()


def read(data: pathlib.Path, name: str) -> list[Row]:
    """Reads the rows of a file; blank lines and lines with a blank text are skipped."""
    with gzip.open(data / f"{name}.tsv.gz", "rt", encoding="utf-8", newline="\n") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    return [row for row in rows if row[0].strip()]


def write_small(data: pathlib.Path) -> tuple[PublicTask, ...]:
    """Writes tiny files of one task of each kind, for `--smoke`, and returns these tasks."""
    stems = ["walk", "talk", "look", "cook", "jump", "play", "call", "kick", "open", "form"]
    (data / "trec").mkdir(parents=True, exist_ok=True)
    for name in ("train", "valid", "test"):
        with gzip.open(data / "trec" / f"{name}.tsv.gz", "wt", encoding="utf-8") as file:
            file.writelines(
                f"where did {stem} {i} go ?\t{'XY'[i % 2]}\n" for i, stem in enumerate(stems * 3)
            )
    (data / "enja").mkdir(exist_ok=True)
    for name in ("train", "dev", "test"):
        for language, text in (("en", "i like the {} ."), ("ja", "{}が好きです。")):
            with gzip.open(data / "enja" / f"{name}.{language}.gz", "wt", encoding="utf-8") as file:
                # Few lines, because a model of two updates writes long translations.
                words = stems * 3 if name == "train" else stems[:3]
                file.writelines(f"{text.format(word)}\n" for word in words)
    for folder, first, line in (
        ("pos", "valid", "the dog {0}s\tDET NOUN VERB\n"),
        ("g2p", "dev", "{0}\t{1}\n"),
        ("shakespeare", "valid", "First Citizen:\nYou {0} all day.\n\n"),
    ):
        (data / folder).mkdir(exist_ok=True)
        lines = [line.format(stem, " ".join(stem)) for stem in stems * 3]
        for name in ("train", first, "test"):
            prefix = "ice-yoyodyne." if folder == "g2p" else ""
            suffix = "txt" if folder == "shakespeare" else "tsv"
            path = data / folder / f"{prefix}{name}.{suffix}.gz"
            with gzip.open(path, "wt", encoding="utf-8") as file:
                file.writelines(lines)
    recordings.write_small(data / "digits.zip")
    small = ("trec", "pos", "g2p ice-yoyodyne", "shakespeare", "digits", "enja")
    return tuple(task for task in TASKS if task.name in small)
