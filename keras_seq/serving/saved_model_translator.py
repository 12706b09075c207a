"""The interface of `keras_seq.Translator` over an exported SavedModel, without Keras."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from keras_seq.inference.hypothesis import Hypothesis, best_texts
from keras_seq.runtime.threads import num_search_threads, parallel_map
from keras_seq.serving.graph_file.operations import check_trusted
from keras_seq.serving.graph_file.signatures import Signature, read_signatures
from keras_seq.serving.http.versions import check_version, find_versions
from keras_seq.text import InputError

# What stands where a search found fewer than the n best has a score of -1e30.
_NEVER = -1e29


def find_export(path: str | os.PathLike[str]) -> Path | None:
    """The exported version that a path names.

    Args:
        path: A version, or a directory of versions named 1, 2, ..., of which it is the newest,
            as model servers have it.

    Returns:
        The version's directory; None where a path is neither.

    Raises:
        InputError: The newest version is none, or the directory cannot be read.
    """
    path = Path(path)
    if not path.is_dir() or (path / "settings.toml").exists():
        return None
    if (path / "saved_model.pb").exists():
        return path
    for version in find_versions(path).values():
        check_version(version)
        return version
    return None


class SavedModelTranslator:
    """Translates lines of text with an exported SavedModel.

    As `keras_seq.Translator` of the run that was exported, with the search that was exported:
    the graph clips, tokenizes, searches and detokenizes. TensorFlow computes, by its C library:
    neither its Python nor Keras is imported.

    Args:
        version: A directory with `saved_model.pb`, made by `keras-seq export`.
        batch_size: Lines translated at a time.
        trust: True loads it whatever its graph contains. A SavedModel is a program: by default
            it is refused if it contains an operation that `keras-seq export` never writes.

    Attributes:
        batch_size: Lines translated at a time.
        n_best: Translations of a line.

    Raises:
        InputError: There is none, it is damaged, not trusted, or not from text to text.
    """

    def __init__(
        self, version: str | os.PathLike[str], batch_size: int = 32, *, trust: bool = False
    ) -> None:
        self._version = Path(version)
        self.batch_size = batch_size
        self._signature = _n_best(self._version)
        if not trust:
            check_trusted(self._version)
        self.n_best = self._signature.outputs["translation"].shape[1]
        self._session: Any = None

    def load(self) -> SavedModelTranslator:
        """Loads the graph, which the first text would do.

        Raises:
            InputError: It is damaged, or TensorFlow is not installed.
        """
        from keras_seq.serving.c_session import CSession

        if self._session is None:
            self._session = CSession(self._version)
        return self

    def __call__(self, lines: Sequence[str]) -> list[str]:
        """Translates lines; a blank line stays blank.

        Args:
            lines: Lines of text.

        Returns:
            As many lines, the best translation of each.
        """
        return best_texts(self.translate(lines))

    def translate(self, lines: Sequence[str]) -> list[list[Hypothesis]]:
        """Translates lines into their n best translations.

        Args:
            lines: Lines of text.

        Returns:
            For each line its translations, best first: `n_best` of them, or
            fewer where the search found fewer; none for a blank line. Without ids, which the
            graph keeps to itself.

        Raises:
            TypeError: If `lines` is one string.
            InputError: If the graph fails.
        """
        if isinstance(lines, str):
            raise TypeError("`lines` must be a list of strings, received one string; pass [line].")
        texts = [_bytes(line) for line in lines]
        # Stable, so equal inputs in equal order make equal batches.
        order = sorted(
            (i for i, line in enumerate(lines) if line.strip()), key=lambda i: -len(texts[i])
        )
        results: list[list[Hypothesis]] = [[] for _ in lines]
        for i, found in zip(order, self._find([texts[i] for i in order]), strict=True):
            results[i] = found
        return results

    def _find(self, texts: list[bytes]) -> Iterator[list[Hypothesis]]:
        session = self.load()._session

        def search(start: int) -> list[list[Hypothesis]]:
            rows = texts[start : start + self.batch_size]
            found = session.run(self._signature, rows)
            if any(len(values) != len(rows) * self.n_best for values in found.values()):
                raise InputError(
                    f"{self._version}: damaged: it answers another number of rows than it is asked"
                )
            hypotheses = [
                Hypothesis(text.decode("utf-8", "replace"), score, truncated)
                for text, score, truncated in zip(
                    found["translation"], found["score"], found["truncated"], strict=True
                )
            ]
            size = self.n_best
            return [_found(hypotheses[i * size : (i + 1) * size]) for i in range(len(rows))]

        starts = range(0, len(texts), self.batch_size)
        for batch in parallel_map(search, starts, num_search_threads()):
            yield from batch


def _bytes(line: str) -> bytes:
    try:
        return line.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair, which no text has, counts as U+FFFD.
        return line.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _found(row: list[Hypothesis]) -> list[Hypothesis]:
    """What a search found; a text of no tokens is as blank as one of no characters."""
    if (row[0].text, row[0].score) == ("", 0.0):
        return []
    return [one for one in row if one.score > _NEVER]


def _n_best(version: Path) -> Signature:
    """The signature to call, if it is as `keras-seq export` writes it."""
    signatures = read_signatures(version)
    found = signatures.get("n_best")
    if found is None and "ids" in signatures:
        raise InputError(
            f"{version}: takes ids and no text: it was exported with --no-text: export again "
            "without that, or translate with the run"
        )
    if found is None or not _is_text_to_text(found):
        raise InputError(
            f"{version}: a SavedModel, but not one of keras-seq export --format savedmodel: it "
            "has no signature n_best from text to translation, score and truncated"
        )
    return found


def _is_text_to_text(signature: Signature) -> bool:
    given = [(end.dtype, len(end.shape)) for end in signature.inputs.values()]
    types = {name: end.dtype for name, end in signature.outputs.items()}
    widths = {end.shape[1:] for end in signature.outputs.values()}
    return (
        given == [("string", 1)]
        and types == {"translation": "string", "score": "float", "truncated": "bool"}
        and len(widths) == 1
        and all(len(width) == 1 and width[0] > 0 for width in widths)
    )
