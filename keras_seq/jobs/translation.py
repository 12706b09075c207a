"""Many files translated: one output for each, whatever is killed on the way."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from keras_seq.jobs.chunks import Chunk, Notice, Runner, line_chunks
from keras_seq.jobs.kept_results import KeptResults, remove_others
from keras_seq.jobs.local_workers import run_locally
from keras_seq.jobs.records import check_same_job, read_record
from keras_seq.jobs.translation_task import Engine, TranslationTask
from keras_seq.run import Run
from keras_seq.settings import Settings, load_settings
from keras_seq.storage import (
    LOCK,
    DirectoryLock,
    atomic_file,
    check_tree,
    hash_file,
    make_directory,
    reason,
    remove,
    remove_temporaries,
    write_file,
)
from keras_seq.text import InputError, check_readable, expand_names

# Many batches at a time, so that lines of like length share one; as `keras-seq translate` has it.
BATCHES_IN_A_CHUNK = 64
# In the directory of the outputs.
JOB = ".keras-seq"
_FROZEN = "run"


class TranslationCounts(NamedTuple):
    """What a job came to.

    Attributes:
        files: All files.
        lines: Their lines.
        files_before: Files that were done already.
        chunks_before: Chunks of the others that were done already.
    """

    files: int
    lines: int
    files_before: int
    chunks_before: int


def translate_files(
    run: str | os.PathLike[str],
    inputs: str | Sequence[str],
    directory: str | os.PathLike[str],
    *,
    which: str | int = "best",
    search: Mapping[str, Any] | None = None,
    engine: Engine = "tensorflow",
    quantize: str = "float32",
    scores: bool = False,
    workers: int | None = None,
    runner: Runner = run_locally,
    overwrite: bool = False,
    notice: Notice | None = None,
) -> TranslationCounts:
    """Translates files into files of the same names, by several workers.

    An output appears when it is whole. What is done is kept in `.keras-seq` in the directory:
    the same call again goes on where the last one was stopped or killed.

    Args:
        run: The run directory.
        inputs: Names or patterns, as `expand_names` takes them. No two may have the same base
            name; a `.gz` at its end is left out in the output, which is not compressed.
        directory: For the outputs.
        which: Checkpoint: `"best"`, `"latest"`, or the step of a stored one.
        search: Settings of the search to use in place of the run's.
        engine: What computes: `"tensorflow"` or `"ctranslate2"`.
        quantize: Arithmetic of ctranslate2.
        scores: Whether scores are written, too.
        workers: How many; by default one for each four cores.
        runner: Where the workers are: `run_locally` or `run_on_ray`.
        overwrite: Whether what another job left in the directory, with its outputs, is deleted.
        notice: Called with a line for each thing done.

    Returns:
        `TranslationCounts`.

    Raises:
        InputError: Wrong files, no run with weights, or a directory with outputs of another job.
        JobError: A line that cannot be translated, or no worker.
    """
    say = notice or (lambda line: None)
    opened = Run.open(run, notice=notice)
    opened.require_task("translate")
    opened.require_weights(which)
    settings = load_settings(
        base=opened.settings.to_dict(),
        overrides={f"search.{key}": value for key, value in (search or {}).items()},
    )
    out = Path(directory)
    names = _outputs(expand_names(inputs), out)
    count = BATCHES_IN_A_CHUNK * settings.search.batch_size
    # Reads all once, so that what is wrong with a file is said before hours of work.
    files = [
        _read(number, path, out / name, count, say)
        for number, (name, path) in enumerate(names.items())
    ]
    lock = _open_directory(out)
    try:
        frozen = out / JOB / _FROZEN
        remove(frozen)
        # A training may find a better checkpoint, or delete this one, in the meantime.
        opened.copy_checkpoint(frozen, which)
        task = TranslationTask(str(frozen), settings.search.model_dump(), engine, quantize, scores)
        made_with = _made_with(frozen, settings, task)
        try:
            job = _Job(out, files, count, say)
            job.begin(made_with, overwrite=overwrite)
            job.do(task, runner, workers)
            return job.counts()
        finally:
            remove(frozen)
    finally:
        lock.release()


@dataclass
class _File:
    """An input: what was read of it before the work began."""

    number: int
    path: str
    output: Path
    keys: list[str]
    digest: str
    lines: int
    done: bool = False
    left: int = 0


class _Job:
    """The directory of the outputs, and what of it is done."""

    def __init__(self, out: Path, files: Sequence[_File], count: int, say: Notice) -> None:
        self._out = out
        self._files = files
        self._count = count
        self._say = say
        self._kept: dict[int, KeptResults] = {}
        self._files_before = self._chunks_before = 0

    def begin(self, made_with: Mapping[str, Any], *, overwrite: bool) -> None:
        """Finds out what is done; refuses outputs of others."""
        record = self._out / JOB / "job.json"
        if overwrite:
            for file in self._files:
                if file.output.is_dir() and not file.output.is_symlink():
                    raise InputError(f"{file.output}: a directory, expected a file or nothing")
            for file in self._files:
                remove(file.output)
            remove(record)
        remove_temporaries(self._out, [file.output.name for file in self._files])
        noted = read_record(record)
        if noted is None:
            remove_others(self._out / JOB, {LOCK, _FROZEN})
        else:
            check_same_job(noted, made_with, self._out)
        for file in self._files:
            file.done = self._is_done(file)
        if noted is None:
            write_file(record, json.dumps(made_with, indent=1).encode())
        remove_others(self._out / JOB / "parts", {file.output.name for file in self._files})
        for file in self._files:
            self._kept[file.number] = kept = KeptResults(
                self._out / JOB / "parts" / file.output.name
            )
            if file.done:
                kept.remove()
                self._files_before += 1
            else:
                before = kept.count(file.keys)
                file.left = len(file.keys) - before
                self._chunks_before += before
        if self._files_before or self._chunks_before:
            chunks = f", and {self._chunks_before:,} chunks" if self._chunks_before else ""
            self._say(
                f"{self._out}: {self._files_before:,} of {len(self._files):,} files{chunks} are "
                "done already"
            )

    def do(self, task: TranslationTask, runner: Runner, workers: int | None) -> None:
        """Does what is left."""
        for file in self._files:
            if not file.done and not file.left:
                self._finish(file)
        with closing(runner(task, self._left(), workers=workers, notice=self._say)) as results:
            for chunk, result in results:
                file = self._files[chunk.file]
                self._kept[chunk.file].keep(chunk, result.body)
                for line in result.notices:
                    self._say(line)
                file.left -= 1
                if not file.left:
                    self._finish(file)

    def counts(self) -> TranslationCounts:
        lines = sum(file.lines for file in self._files)
        return TranslationCounts(len(self._files), lines, self._files_before, self._chunks_before)

    def _is_done(self, file: _File) -> bool:
        path = self._note(file)
        note = read_record(path)
        if not file.output.exists():
            return False
        if note is None:
            raise InputError(
                f"{file.output}: exists already, and is not of this job: name another --output-dir"
                ", or have it replaced by --overwrite"
            )
        if note.get("output") != hash_file(file.output):
            raise InputError(
                f"{file.output}: changed since it was written: delete it to have it made again"
            )
        if note.get("input") == file.digest:
            return True
        self._say(f"{file.path}: changed since it was translated: what is new in it is done")
        # In this order, so that whatever is killed between the two is known as ours.
        remove(file.output)
        remove(path)
        return False

    def _left(self) -> Iterator[Chunk]:
        for file in self._files:
            if file.done or not file.left:
                continue
            kept = self._kept[file.number]
            number = 0
            for chunk in line_chunks(file.number, file.path, self._count):
                if number >= len(file.keys) or chunk.key != file.keys[number]:
                    raise InputError(f"{chunk.where}: changed while the job was at work")
                number += 1
                if not kept.has(chunk):
                    yield chunk
            if number < len(file.keys):
                raise InputError(f"{file.path}: became shorter while the job was at work")

    def _finish(self, file: _File) -> None:
        """Puts an output together from its chunks."""
        kept = self._kept[file.number]
        digest = hashlib.sha256()
        with atomic_file(file.output) as stream:
            for body in kept.read(file.keys):
                stream.write(body)
                digest.update(body)
            path = self._note(file)
            make_directory(path.parent)
            note = {"input": file.digest, "output": digest.hexdigest(), "lines": file.lines}
            # Before the output appears: one without a note would be taken for somebody else's.
            write_file(path, json.dumps(note).encode())
        kept.remove()
        self._say(f"{file.output}: {file.lines:,} lines")

    def _note(self, file: _File) -> Path:
        return self._out / JOB / "done" / f"{file.output.name}.json"


def _outputs(paths: Iterable[str], out: Path) -> dict[str, str]:
    """The name of each output with the path of its input."""
    found: dict[str, str] = {}
    for path in paths:
        check_readable(path)
        if path == "-" or not stat.S_ISREG(os.stat(path).st_mode):
            raise InputError(f"{path}: its text is read more than once: name a file")
        name = os.path.basename(path).removesuffix(".gz")
        if name in found:
            raise InputError(
                f"{path}: would have the same output as {found[name]}, {out / name}: translate "
                "them into two directories"
            )
        if (out / name).exists() and os.path.samefile(path, out / name):
            raise InputError(f"{path}: its output would take its place: name another --output-dir")
        found[name] = path
    return found


def _read(number: int, path: str, output: Path, count: int, say: Notice) -> _File:
    digest = hashlib.sha256()
    keys, lines = [], 0
    for chunk in line_chunks(number, path, count, say):
        keys.append(chunk.key)
        digest.update(chunk.body + b"\n")
        lines += chunk.body.count(b"\n") + 1
    return _File(number, path, output, keys, digest.hexdigest(), lines)


def _open_directory(out: Path) -> DirectoryLock:
    if out.exists() and not out.is_dir():
        raise InputError(f"{out}: a file, expected a directory for the outputs")
    try:
        make_directory(out / JOB, parents=True)
    except OSError as error:
        raise InputError(f"{out}: cannot be written: {reason(error)}") from None
    lock = DirectoryLock(out / JOB, "job")
    check_tree(out / JOB, limit=None)
    return lock


def _made_with(run: Path, settings: Settings, task: TranslationTask) -> dict[str, Any]:
    """What decides on the translations, besides the text."""
    names = {
        path.name: path for path in run.rglob("*") if path.suffix in (".safetensors", ".model")
    }
    # Of the batch size a translation does not depend, and who runs out of memory lowers it.
    search = {f"search.{key}": task.search[key] for key in task.search if key != "batch_size"}
    return {
        "format": 1,
        **{name: f"sha256:{hash_file(names[name])}" for name in sorted(names)},
        **{f"model.{key}": value for key, value in settings.model.model_dump().items()},
        "data.max_source_length": settings.data.max_source_length,
        **search,
        "engine": task.engine,
        "quantize": task.quantize,
        "scores": task.scores,
    }
