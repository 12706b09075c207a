"""Translator that runs an exported SavedModel without importing Keras."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from keras_seq.inference.hypothesis import Hypothesis, LineTranslator
from keras_seq.inference.predictor import check_is_list, predict_by_length
from keras_seq.process.threads import num_search_threads, parallel_map
from keras_seq.run import is_run
from keras_seq.serving.graph_file.operations import check_trusted
from keras_seq.serving.graph_file.signatures import Signature, read_signatures
from keras_seq.serving.http.versions import (
    RECORD_NAME,
    check_version,
    find_versions,
    recorded_languages,
)
from keras_seq.text import InputError, split_language, with_languages
from keras_seq.text.learning import without_surrogates

# Lower scores mark missing hypotheses. A missing hypothesis has a score of -1e30 in the export.
_MIN_SCORE = -1e29


def find_export(path: str | os.PathLike[str]) -> Path | None:
    """Returns the directory of an exported version, or None if `path` contains no version.

    If `path` is a directory of versions, the newest version is returned. Raises InputError if the
    newest version is not a SavedModel.
    """
    path = Path(path)
    if not path.is_dir() or is_run(path):
        return None
    if (path / "saved_model.pb").exists():
        return path
    for version in find_versions(path).values():
        check_version(version)
        return version
    return None


class SavedModelTranslator(LineTranslator):
    """Translates lines of text with an exported SavedModel.

    The translations equal those of `keras_seq.Translator` with the run and the search settings of
    the export, but contain no token ids, because the graph tokenizes and detokenizes. TensorFlow's
    C library runs the graph; TensorFlow's Python package and Keras are not imported.

    Args:
        version: A directory with `saved_model.pb`, written by `keras-seq export`.
        batch_size: Number of lines per batch.
        trust: Boolean, whether to load any graph. By default, a graph with operations that
            `keras-seq export` never writes is rejected, because a SavedModel is a program, and a
            batch ends with InputError after 10 minutes and 10 s per line.

    Raises:
        InputError: The SavedModel is missing, damaged, or not trusted, or does not translate text.
    """

    def __init__(
        self, version: str | os.PathLike[str], batch_size: int = 32, *, trust: bool = False
    ) -> None:
        self._version = Path(version)
        self._trust = trust
        self.batch_size = batch_size
        self._signature = _n_best_signature(self._version)
        if not trust:
            check_trusted(self._version)
        self.n_best = _num_hypotheses(self._signature)
        self.languages = recorded_languages(self._version)
        if ("target_language" in self._signature.inputs) != bool(self.languages):
            raise InputError(f"{self._version}: damaged: {RECORD_NAME} has other target languages")
        self._session: Any = None

    def load(self) -> SavedModelTranslator:
        """Loads the graph now instead of at the first translation.

        Raises InputError if the SavedModel is damaged, or TensorFlow is not installed.
        """
        from keras_seq.serving.c_session import CSession

        if self._session is None:
            self._session = CSession(self._version, trust=self._trust)
        return self

    def translate(self, lines: Sequence[str], *, to: str | None = None) -> list[list[Hypothesis]]:
        check_is_list("lines", lines)
        lines = with_languages(lines, self.languages, to)
        texts = [without_surrogates(line).encode() for line in lines if line.strip()]
        results = iter(predict_by_length(texts, self._predict))
        return [next(results) if line.strip() else [] for line in lines]

    def _predict(self, texts: list[bytes]) -> Iterator[list[Hypothesis]]:
        starts = range(0, len(texts), self.batch_size)
        batches = [texts[start : start + self.batch_size] for start in starts]
        for rows in parallel_map(self._search, batches, num_search_threads()):
            yield from rows

    def _search(self, texts: list[bytes]) -> list[list[Hypothesis]]:
        inputs = {"text": texts}
        if "features" in self._signature.inputs:
            parts = [text.partition(b"\t") for text in texts]
            inputs = {
                "text": [source for source, _, _ in parts],
                "features": [features for _, _, features in parts],
            }
        elif self.languages:
            tagged = [split_language(text.decode()) for text in texts]
            inputs = {
                "text": [text.encode() for _, text in tagged],
                "target_language": [(language or "").encode() for language, _ in tagged],
            }
        outputs = self.load()._session.run(self._signature, inputs)
        size = self.n_best
        if any(len(values) != len(texts) * size for values in outputs.values()):
            raise InputError(
                f"{self._version}: damaged: the number of outputs differs from that of the inputs"
            )
        columns = (outputs[name] for name in ("translation", "score", "truncated"))
        hypotheses = [
            Hypothesis(_on_one_line(text.decode("utf-8", "replace")), score, truncated)
            for text, score, truncated in zip(*columns, strict=True)
        ]
        return [_without_missing(hypotheses[i * size : (i + 1) * size]) for i in range(len(texts))]


def _on_one_line(text: str) -> str:
    """Replaces line breaks, as exported graphs and `keras_seq.text.Tokenizer` do.

    A graph from elsewhere may leave them in.
    """
    return text.replace("\n", " ").replace("\r", " ")


def _without_missing(row: list[Hypothesis]) -> list[Hypothesis]:
    """Removes missing hypotheses. Returns an empty list for a text without tokens."""
    if (row[0].text, row[0].score) == ("", 0.0):
        return []
    return [hypothesis for hypothesis in row if hypothesis.score > _MIN_SCORE]


def _n_best_signature(version: Path) -> Signature:
    """Returns the signature `n_best` of an exported translator, or raises InputError."""
    signatures = read_signatures(version)
    signature = signatures.get("n_best")
    if signature is None and "ids" in signatures:
        raise InputError(
            f"{version}: accepts ids instead of text: it was exported with --ids-only: export "
            "again without this option, or translate with the run"
        )
    if signature is None or not _num_hypotheses(signature):
        raise InputError(
            f"{version}: a SavedModel, but not one of keras-seq export --format savedmodel: it "
            "has no signature n_best from text to translation, score and truncated"
        )
    return signature


def _num_hypotheses(signature: Signature) -> int:
    """Returns the number of translations per line, or 0 if a signature does not translate text."""
    inputs = {name: (info.dtype, len(info.shape or ())) for name, info in signature.inputs.items()}
    dtypes = {name: info.dtype for name, info in signature.outputs.items()}
    shapes = {(info.shape or ())[1:] for info in signature.outputs.values()}
    if (
        set(inputs) not in ({"text"}, {"text", "features"}, {"text", "target_language"})
        or set(inputs.values()) != {("DT_STRING", 1)}
        or dtypes != {"translation": "DT_STRING", "score": "DT_FLOAT", "truncated": "DT_BOOL"}
        or len(shapes) != 1
    ):
        return 0
    (shape,) = shapes
    return (shape[0] or 0) if len(shape) == 1 else 0
