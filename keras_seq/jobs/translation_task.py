"""The translation task that each worker runs."""

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
from keras_seq.process.threads import configure_threads

Engine = Literal["tensorflow", "ctranslate2"]


@dataclass(frozen=True)
class TranslationTask:
    """Translates chunks of lines with the model of a run directory.

    `runs` are directories: of one run, or of the runs of an ensemble. `quantize` is the
    quantization of CTranslate2. `to` is the target language. `files` contains the files of each run
    by name if the worker cannot read the directories, otherwise it is None.
    """

    runs: tuple[str, ...]
    search: Mapping[str, Any]
    engine: Engine = "tensorflow"
    quantize: str = "float32"
    scores: bool = False
    to: str | None = None
    files: tuple[Mapping[str, bytes], ...] | None = None

    def portable(self) -> TranslationTask:
        return replace(self, files=tuple(_read_files(Path(run)) for run in self.runs))

    def start(self, threads: int) -> Callable[[Chunk], Result]:
        # Set these variables now, because TensorFlow and OpenMP read them only when they load.
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        os.environ.setdefault("OMP_NUM_THREADS", str(threads))
        configure_threads(threads)
        translator: Any = None

        def work(chunk: Chunk) -> Result:
            nonlocal translator
            lines = chunk.body.decode().split("\n")
            translations: list[list[Hypothesis]] = [[] for _ in lines]
            if any(line.strip() for line in lines):
                translator = translator or self._load()
                translations = translator.translate(lines, to=self.to)
            n_best = self.search["n_best"]
            output = format_lines(translations, chunk.first, n_best=n_best, scores=self.scores)
            body = "".join(f"{line}\n" for line in output).encode("utf-8", "replace")
            notice = truncation_notice(translations, chunk.where)
            return Result(body, (notice,) if notice else ())

        return work

    def _load(self) -> Any:
        if self.files is None:
            return self._load_from(*self.runs)
        with tempfile.TemporaryDirectory() as folder:
            runs = [Path(folder, str(number)) for number in range(len(self.files))]
            for run, files in zip(runs, self.files, strict=True):
                for name, content in files.items():
                    path = run / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(content)
            # The temporary files are not needed after the model is loaded.
            return self._load_from(*map(str, runs))

    def _load_from(self, run: str, *others: str) -> Any:
        if self.engine == "ctranslate2":
            from keras_seq.serving.ctranslate2_translator import CTranslate2Translator

            return CTranslate2Translator.load(run, quantize=self.quantize, **self.search)
        from keras_seq.inference.translator import Translator

        return Translator.load(run, ensemble=others, **self.search)


def _read_files(root: Path) -> dict[str, bytes]:
    paths = [path for path in root.rglob("*") if path.is_file()]
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}
