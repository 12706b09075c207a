"""A corpus prepared by several workers, whatever is killed on the way."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from keras_seq.jobs.chunks import Chunk, Notice, Runner
from keras_seq.jobs.corpus_task import EncodingTask, pair_chunks, unpack
from keras_seq.jobs.kept_results import KeptResults, remove_others
from keras_seq.jobs.local_workers import run_locally
from keras_seq.preparation.encoding import Encoded, PairEncoder
from keras_seq.preparation.preparing import Tokenizers
from keras_seq.preparation.pretrained import pretrained_pieces
from keras_seq.preparation.record import imported_hashes, text_hashes
from keras_seq.run.checks import WORK
from keras_seq.settings import SIDES, Settings
from keras_seq.storage import check_tree, make_directory, read_file, remove, write_file
from keras_seq.text import Example, tokenizer_from_bytes

# Of a vocabulary.
_MAX_BYTES = 64 << 20


class SharedLabour:
    """The long parts of a preparation, for `keras_seq.preparation.prepare_run`.

    Token ids are made by workers, and kept chunk by chunk until all is written; so are the
    tokenizers. What is kept goes by the content of the text and the settings that decide on it,
    so that after a kill nothing is taken for what it is not.

    Args:
        directory: That of the run to prepare.
        workers: How many; by default one for each four cores.
        runner: Where they are: `run_locally` or `run_on_ray`.
        notice: Called with a line for each thing that was done before.
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
        self._say = notice or (lambda line: None)

    def tokenizers(self, settings: Settings, learn: Callable[[], Tokenizers]) -> Tokenizers:
        """The tokenizers of source and target, learned or kept from before."""
        check_tree(self._directory, limit=None)
        made_with = {
            "text": text_hashes(settings.data),
            "columns": settings.data.columns,
            "weights": settings.data.file_weights,
            "tokenizer": settings.tokenizer.model_dump(),
            "asked": [settings.tokenizer.asks_for_size(side) for side in SIDES],
            "imported": imported_hashes(settings.tokenizer),
            "seed": settings.seed,
            "pretrained": pretrained_pieces(settings),
        }
        digest = hashlib.sha256(json.dumps(made_with).encode()).hexdigest()[:16]
        folder = self._directory / f"vocabulary-{digest}"
        files = [folder / "source.model", folder / "target.model"]
        if files[1].exists():
            self._say("vocabulary learned already")
            source = tokenizer_from_bytes(read_file(files[0], _MAX_BYTES))
            if settings.tokenizer.joint:
                return source, source
            return source, tokenizer_from_bytes(read_file(files[1], _MAX_BYTES))
        found = learn()
        make_directory(self._directory)
        remove_others(self._directory, ())
        folder.mkdir()
        for file, tokenizer in zip(files, found, strict=True):
            write_file(file, tokenizer.to_bytes())
        return found

    def encode(self, encoder: PairEncoder, pairs: Iterator[Example]) -> Iterator[Encoded]:
        """The ids of all pairs, in their order."""
        check_tree(self._directory, limit=None)
        task = EncodingTask.of(encoder)
        digest = hashlib.sha256(repr(task.longest).encode() + task.source)
        digest.update(task.target or b"")
        kept = KeptResults(self._directory / f"ids-{digest.hexdigest()[:16]}")
        keys: list[str] = []
        before = 0

        def left() -> Iterator[Chunk]:
            nonlocal before
            for chunk in pair_chunks(pairs):
                keys.append(chunk.key)
                if kept.has(chunk):
                    before += 1
                else:
                    yield chunk

        with closing(
            self._runner(task, left(), workers=self._workers, notice=self._say)
        ) as results:
            for chunk, result in results:
                kept.keep(chunk, result.body)
        if before:
            self._say(f"{before:,} of {len(keys):,} chunks of token ids were done already")
        return map(unpack, kept.read(keys))

    def finish(self) -> None:
        """Deletes what was kept, because all is written."""
        remove(self._directory)
