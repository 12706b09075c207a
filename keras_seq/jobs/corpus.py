"""Fault-tolerant preparation of a corpus by several workers."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from keras_seq.jobs.chunks import Chunk, Runner
from keras_seq.jobs.corpus_task import EncodingTask, pair_chunks, unpack
from keras_seq.jobs.local_workers import run_locally
from keras_seq.jobs.stored_results import StoredResults, remove_others
from keras_seq.preparation.encoding import Encoded, PairEncoder
from keras_seq.preparation.preparing import Tokenizers
from keras_seq.preparation.pretrained import pretrained_pieces
from keras_seq.preparation.record import imported_hashes, text_hashes
from keras_seq.run.checks import WORK
from keras_seq.settings import SIDES, Settings
from keras_seq.storage import check_tree, make_directory, read_file, remove, write_file
from keras_seq.storage.limits import MAX_VOCABULARY_BYTES
from keras_seq.text import Example, Notice, tokenizer_from_bytes


class WorkerExecutor:
    """Executor for `keras_seq.preparation.prepare_run` that encodes text in several workers.

    Tokenizers and chunks of token ids are stored on disk until the preparation is complete, so an
    interrupted preparation can resume. Each stored result has a hash of the text and the settings
    that the result depends on, so results of other inputs are never reused.

    Args:
        directory: The directory of the run to prepare.
        workers: Number of workers; by default one per four cores.
        runner: `run_locally` or `run_on_ray`.
        notice: Function that receives a message for each step that an earlier process completed.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        workers: int | None = None,
        runner: Runner = run_locally,
        notice: Notice | None = None,
    ) -> None:
        self._directory = Path(directory) / WORK
        self._workers = workers
        self._runner = runner
        self._notice = notice or (lambda line: None)

    def tokenizers(self, settings: Settings, learn: Callable[[], Tokenizers]) -> Tokenizers:
        """Returns the source and target tokenizers, from disk or else from `learn`."""
        check_tree(self._directory, limit=None)
        inputs = {
            "text": text_hashes(settings.data),
            "columns": settings.data.columns,
            "weights": settings.data.file_weights,
            "tokenizer": settings.tokenizer.model_dump(),
            "asked": [settings.tokenizer.asks_for_size(side) for side in SIDES],
            "imported": imported_hashes(settings.tokenizer),
            "seed": settings.seed,
            "pretrained": pretrained_pieces(settings),
        }
        digest = hashlib.sha256(json.dumps(inputs).encode()).hexdigest()[:16]
        folder = self._directory / f"vocabulary-{digest}"
        files = [folder / "source.model", folder / "target.model"]
        if files[1].exists():
            self._notice("vocabulary learned already")
            contents = [read_file(file, MAX_VOCABULARY_BYTES) for file in files]
            source, target = map(tokenizer_from_bytes, contents)
            return source, source if settings.tokenizer.joint else target
        learned = learn()
        make_directory(self._directory)
        remove_others(self._directory, ())
        folder.mkdir()
        for file, tokenizer in zip(files, learned, strict=True):
            write_file(file, tokenizer.to_bytes())
        return learned

    def encode(self, encoder: PairEncoder, pairs: Iterator[Example]) -> Iterator[Encoded]:
        """Encodes all pairs in chunks; returns an iterator over the encoded chunks, in order."""
        check_tree(self._directory, limit=None)
        task = EncodingTask.of(encoder)
        digest = hashlib.sha256(repr(task.max_lengths).encode() + task.source)
        digest.update(task.target or b"")
        stored = StoredResults(self._directory / f"ids-{digest.hexdigest()[:16]}")
        keys: list[str] = []
        completed = 0

        def remaining() -> Iterator[Chunk]:
            nonlocal completed
            for chunk in pair_chunks(pairs):
                keys.append(chunk.key)
                if stored.has(chunk):
                    completed += 1
                else:
                    yield chunk

        results = self._runner(task, remaining(), workers=self._workers, notice=self._notice)
        with closing(results):
            for chunk, result in results:
                stored.write(chunk, result.body)
        if completed:
            self._notice(f"{completed:,} of {len(keys):,} chunks of token ids were done already")
        return map(unpack, stored.read(keys))

    def finish(self) -> None:
        """Deletes the stored results after the preparation is complete."""
        remove(self._directory)
