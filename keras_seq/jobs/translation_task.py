"""Lines to translations, in a worker that loads the model once."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from keras_seq.inference.hypothesis import Hypothesis
from keras_seq.inference.output_formats import format_lines, truncation_notice
from keras_seq.jobs.chunks import Chunk, Result
from keras_seq.runtime.threads import configure_threads

Engine = Literal["tensorflow", "ctranslate2"]


@dataclass(frozen=True)
class TranslationTask:
    """What the workers of a translation are told.

    Args:
        run: The directory of the run.
        search: Settings of the search, all of them.
        engine: What computes.
        quantize: Arithmetic of ctranslate2.
        scores: Whether scores are written.
        files: The files of the run, by name, where its directory is on another machine.
    """

    run: str
    search: Mapping[str, Any]
    engine: Engine = "tensorflow"
    quantize: str = "float32"
    scores: bool = False
    files: Mapping[str, bytes] | None = None

    def portable(self) -> TranslationTask:
        """The same with the files of the run in itself."""
        root = Path(self.run)
        files = {
            path.relative_to(root).as_posix(): path.read_bytes()
            for path in root.rglob("*")
            if path.is_file()
        }
        return replace(self, files=files)

    def start(self, threads: int) -> Callable[[Chunk], Result]:
        """Makes ready for chunks; the model is loaded for the first line that is not blank."""
        # Read by TensorFlow and by what CTranslate2 computes with, when they are imported.
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        os.environ.setdefault("OMP_NUM_THREADS", str(threads))
        configure_threads(threads)
        translator: Any = None

        def work(chunk: Chunk) -> Result:
            nonlocal translator
            lines = chunk.body.decode().split("\n")
            found: list[list[Hypothesis]] = [[] for _ in lines]
            if any(line.strip() for line in lines):
                translator = translator or self._load()
                found = translator.translate(lines)
            n_best = self.search["n_best"]
            written = format_lines(found, chunk.first, n_best=n_best, scores=self.scores)
            body = "".join(f"{line}\n" for line in written).encode("utf-8", "replace")
            said = truncation_notice(found, chunk.where)
            return Result(body, (said,) if said else ())

        return work

    def _load(self) -> Any:
        if self.files is None:
            return self._load_from(self.run)
        with tempfile.TemporaryDirectory() as folder:
            for name, content in self.files.items():
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
            # Weights and vocabulary are in memory when this returns.
            return self._load_from(folder)

    def _load_from(self, directory: str) -> Any:
        if self.engine == "ctranslate2":
            from keras_seq.serving.ctranslate2_translator import CTranslate2Translator

            return CTranslate2Translator.load(directory, quantize=self.quantize, **self.search)
        from keras_seq.inference.translator import Translator

        return Translator.load(directory, **self.search)
