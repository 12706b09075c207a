"""Fault-tolerant translation of many files by several workers."""

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

from keras_seq.jobs.chunks import Chunk, Runner, line_chunks
from keras_seq.jobs.local_workers import run_locally
from keras_seq.jobs.stored_results import StoredResults, check_same_job, read_record, remove_others
from keras_seq.jobs.translation_task import Engine, TranslationTask
from keras_seq.operating_system import folded_name, keeps_name
from keras_seq.run import Run
from keras_seq.run.ensembles import open_ensemble
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
from keras_seq.text import InputError, Notice, check_readable, expand_names, with_languages

# Lines are sorted by length within a chunk, so large chunks reduce padding.
BATCHES_IN_A_CHUNK = 64
# Folder in the output directory for the stored results of the job.
JOB = ".keras-seq"
# A file name has at most 255 bytes, and the record of an output is named `NAME.json`.
_MAX_NAME_BYTES = 250
_COPY = "run"


class TranslationCounts(NamedTuple):
    """Number of files, lines and chunks of a completed translation job.

    `files_before` counts the files that an earlier process completed. `chunks_before` counts the
    chunks that the earlier process completed in unfinished files.
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
    ensemble: Sequence[str | os.PathLike[str]] = (),
    search: Mapping[str, Any] | None = None,
    engine: Engine = "tensorflow",
    quantize: str = "float32",
    scores: bool = False,
    to: str | None = None,
    workers: int | None = None,
    runner: Runner = run_locally,
    overwrite: bool = False,
    notice: Notice | None = None,
) -> TranslationCounts:
    """Translates files by several workers; output files have the names of the input files.

    Output files are written atomically. Completed chunks are stored in the folder `.keras-seq` of
    `directory`. If the job is interrupted, the same call resumes it from the stored chunks.

    Args:
        run: The run directory.
        inputs: Paths or patterns; see `expand_names`. No two files may have the same base name.
            The output of `a.gz` is named `a` and is not compressed.
        directory: The output directory.
        which: Checkpoint to load: `"best"`, `"latest"`, or the step of a stored checkpoint.
        ensemble: Other run directories with the same vocabularies, for an ensemble.
        search: Search settings that override the settings of the run.
        engine: `"tensorflow"` or `"ctranslate2"`.
        quantize: Quantization of CTranslate2, for example `"int8"`.
        scores: Boolean, whether to write scores.
        to: The target language, for a model with several.
        workers: Number of workers; by default one per four cores.
        runner: `run_locally` or `run_on_ray`.
        overwrite: Boolean, whether to delete the outputs of another job in the directory.
        notice: Function that receives a message for each completed file.

    Raises:
        InputError: If a file cannot be read, `run` has no weights, the target language is missing
            or unknown, or the directory has outputs of another job.
        JobError: If a line cannot be translated, or no worker starts.
    """
    notice = notice or (lambda line: None)
    opened, *others = open_ensemble(Run.open(run, notice=notice), ensemble, which, notice)
    opened.require_task("translate")
    opened.require_weights(which)
    with_languages((), opened.languages, to)
    if others and engine == "ctranslate2":
        raise InputError("ensemble: CTranslate2 translates with one run")
    overrides = {f"search.{key}": value for key, value in (search or {}).items()}
    settings = load_settings(base=opened.settings.to_dict(), overrides=overrides)
    out = Path(directory)
    names = _outputs(expand_names(inputs), out)
    count = BATCHES_IN_A_CHUNK * settings.search.batch_size
    # Read every file before the long work, to report errors early.
    numbered = enumerate(names.items())
    files = [_read(i, path, out / name, count, notice) for i, (name, path) in numbered]
    lock = _open_directory(out)
    try:
        copy = out / JOB / _COPY
        remove(copy)
        make_directory(copy)
        # Copy the checkpoints, because a training run may delete or replace them during the job.
        copies = [
            one.copy_checkpoint(copy / str(number), which).path
            for number, one in enumerate([opened, *others])
        ]
        task = TranslationTask(
            tuple(map(str, copies)), settings.search.model_dump(), engine, quantize, scores, to
        )
        job_inputs = _job_inputs(copy, settings, task)
        try:
            job = _Job(out, files, count, notice)
            job.begin(job_inputs, overwrite=overwrite)
            job.run(task, runner, workers)
            return job.counts()
        finally:
            remove(copy)
    finally:
        lock.release()


@dataclass
class _File:
    """An input file, the keys of its chunks, and the progress of its translation."""

    number: int
    path: str
    output: Path
    keys: list[str]
    digest: str
    lines: int
    is_done: bool = False
    remaining: int = 0


class _Job:
    """Writes the output files of a job, and tracks the completed files and chunks."""

    def __init__(self, out: Path, files: Sequence[_File], count: int, notice: Notice) -> None:
        self._out = out
        self._files = files
        self._count = count
        self._notice = notice
        self._stored: dict[int, StoredResults] = {}
        self._files_before = self._chunks_before = 0

    def begin(self, job_inputs: Mapping[str, Any], *, overwrite: bool) -> None:
        """Finds the completed files and chunks; raises InputError for outputs of other jobs."""
        record = self._out / JOB / "job.json"
        if overwrite:
            for file in self._files:
                if file.output.is_dir() and not file.output.is_symlink():
                    raise InputError(f"{file.output}: a directory, expected a file or nothing")
            for file in self._files:
                remove(file.output)
            remove(record)
        remove_temporaries(self._out, [file.output.name for file in self._files])
        stored_inputs = read_record(record)
        if stored_inputs is None:
            remove_others(self._out / JOB, {LOCK, _COPY})
        else:
            check_same_job(stored_inputs, job_inputs, self._out)
        for file in self._files:
            file.is_done = self._is_done(file)
        if stored_inputs is None:
            write_file(record, json.dumps(job_inputs, indent=1).encode())
        remove_others(self._out / JOB / "parts", {file.output.name for file in self._files})
        for file in self._files:
            stored = StoredResults(self._out / JOB / "parts" / file.output.name)
            self._stored[file.number] = stored
            if file.is_done:
                stored.remove()
                self._files_before += 1
            else:
                before = stored.count(file.keys)
                file.remaining = len(file.keys) - before
                self._chunks_before += before
        if self._files_before or self._chunks_before:
            chunks = f", and {self._chunks_before:,} chunks" if self._chunks_before else ""
            files = f"{self._files_before:,} of {len(self._files):,} files"
            self._notice(f"{self._out}: {files}{chunks} are done already")

    def run(self, task: TranslationTask, runner: Runner, workers: int | None) -> None:
        for file in self._files:
            if not file.is_done and not file.remaining:
                self._finish(file)
        results = runner(task, self._remaining_chunks(), workers=workers, notice=self._notice)
        with closing(results):
            for chunk, result in results:
                file = self._files[chunk.file]
                self._stored[chunk.file].write(chunk, result.body)
                for line in result.notices:
                    self._notice(line)
                file.remaining -= 1
                if not file.remaining:
                    self._finish(file)

    def counts(self) -> TranslationCounts:
        lines = sum(file.lines for file in self._files)
        return TranslationCounts(len(self._files), lines, self._files_before, self._chunks_before)

    def _is_done(self, file: _File) -> bool:
        path = self._record_of(file)
        record = read_record(path)
        if not file.output.exists():
            return False
        if record is None:
            raise InputError(
                f"{file.output}: exists already and belongs to no job here: name another "
                "--output-dir, or use --overwrite"
            )
        if record.get("output") != hash_file(file.output):
            raise InputError(
                f"{file.output}: changed since it was written: delete it to translate it again"
            )
        if record.get("input") == file.digest:
            return True
        self._notice(f"{file.path}: changed since it was translated: translating what is new")
        # Delete the output before the record, because an output without a record is rejected.
        remove(file.output)
        remove(path)
        return False

    def _remaining_chunks(self) -> Iterator[Chunk]:
        for file in self._files:
            if file.is_done or not file.remaining:
                continue
            stored = self._stored[file.number]
            keys = iter(file.keys)
            for chunk in line_chunks(file.number, file.path, self._count):
                if chunk.key != next(keys, None):
                    raise InputError(f"{chunk.where}: changed while the job was running")
                if not stored.has(chunk):
                    yield chunk
            if next(keys, None) is not None:
                raise InputError(f"{file.path}: became shorter while the job was running")

    def _finish(self, file: _File) -> None:
        """Joins the stored chunks of a translated file into the output file."""
        stored = self._stored[file.number]
        digest = hashlib.sha256()
        with atomic_file(file.output) as stream:
            for body in stored.read(file.keys):
                stream.write(body)
                digest.update(body)
            path = self._record_of(file)
            make_directory(path.parent)
            record = {"input": file.digest, "output": digest.hexdigest(), "lines": file.lines}
            # Write the record before the output, because an output without a record is rejected.
            write_file(path, json.dumps(record).encode())
        stored.remove()
        self._notice(f"{file.output}: {file.lines:,} lines")

    def _record_of(self, file: _File) -> Path:
        return self._out / JOB / "done" / f"{file.output.name}.json"


def _outputs(paths: Iterable[str], out: Path) -> dict[str, str]:
    """Returns a dict from the names of output files to the paths of input files."""
    outputs: dict[str, str] = {}
    folded: dict[str, str] = {}
    for path in paths:
        check_readable(path)
        if path == "-" or not stat.S_ISREG(os.stat(path).st_mode):
            raise InputError(f"{path}: the text is read more than once: name a regular file")
        name = os.path.basename(path).removesuffix(".gz")
        same = folded_name(name)
        if same in folded:
            raise InputError(
                f"{path}: would have the same output as {folded[same]}, {out / name}: translate "
                "them into two directories"
            )
        if same in ("", JOB) or len(os.fsencode(name)) > _MAX_NAME_BYTES or not keeps_name(name):
            raise InputError(f"{path}: {name!r} cannot name an output: rename the input")
        if (out / name).exists() and os.path.samefile(path, out / name):
            raise InputError(f"{path}: the output would replace it: name another --output-dir")
        outputs[name] = folded[same] = path
    return outputs


def _read(number: int, path: str, output: Path, count: int, notice: Notice) -> _File:
    digest = hashlib.sha256()
    keys, lines = [], 0
    for chunk in line_chunks(number, path, count, notice):
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


def _job_inputs(run: Path, settings: Settings, task: TranslationTask) -> dict[str, Any]:
    """Returns the settings and file hashes that determine the translations of a text."""
    suffixes = (".safetensors", ".model")
    names = {}
    for path in run.rglob("*"):
        if path.suffix in suffixes:
            number = path.relative_to(run).parts[0]
            names[path.name if number == "0" else f"{path.name} of --ensemble {number}"] = path
    # Omit the batch size, because it does not affect translations and users may lower it.
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
        # Absent without a language, so that jobs of earlier versions are resumed.
        **({} if task.to is None else {"to": task.to}),
    }
