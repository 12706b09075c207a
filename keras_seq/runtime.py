"""Runs models that `keras-seq export --format onnx` wrote, without Keras and TensorFlow.

    import runtime                       # the copy in an export, or `keras_seq.runtime`
    model = runtime.load("exports/onnx")
    model(["A dog runs."])               # ["Ein Hund rennt."]; float arrays for recordings

    python runtime.py exports/onnx < input > output
    python runtime.py exports/onnx --port 8000

The packages numpy, onnxruntime and sentencepiece are enough. This is one file without imports from
the rest of keras-seq, because each export has a copy of it.

Shape letters: B batch, S source steps, K beam, N n-best, L target steps, V vocabulary.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import json
import math
import os
import re
import stat
import sys
import threading
import unicodedata
import wave
from collections.abc import Callable, Iterator, Sequence
from email.message import Message
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Model", "Output", "RuntimeInputError", "load"]

FORMAT = "keras-seq onnx, format 2"
_FORMAT_NUMBER = re.compile(r"keras-seq onnx, format ([0-9]{1,4})")
MODEL_FILE = "model.json"
PAD, UNKNOWN, START, END = range(4)
# Score of a missing hypothesis: below any real score, and far from the limit of float32.
_NEG_INF = np.float32(-1e30)
NO_SCORE = _NEG_INF / 2
# Number of steps after which the state of a search grows, and rows that are done leave the batch.
_ROUND = 8
# Texts are clipped to this many characters per token of the maximum length.
_CHARACTERS_PER_TOKEN = 50
_MAX_REQUEST_BYTES = 1 << 20
# JSON has about 20 bytes a sample.
_MAX_SOUND_REQUEST_BYTES = 32 << 20
_MAX_INSTANCES = 1024
_LOCAL = ("127.0.0.1", "localhost", "::1")
_SENT_BY_PAGES = ("text/plain", "multipart/form-data")
# Limits for files, which may come from elsewhere. A protobuf message has at most 2 GiB.
_MAX_JSON_BYTES = 64 << 20
_MAX_VOCABULARY_BYTES = 64 << 20
_MAX_GRAPH_BYTES = 2 << 30
_MAX_VOCABULARY = 1_000_000
# Limits of the tokens of a batch, and of the seconds in which a wake word is detected once.
_MAX_BATCH_TOKENS = 1 << 28
_MAX_HOLD_SECONDS = 600


class RuntimeInputError(ValueError):
    """An export, an option or an input is wrong. The message is one line."""


class Output(NamedTuple):
    """One answer of a model.

    Attributes:
        text: The generated text, the label, or the tags separated by spaces.
        score: The normalized log-probability of a text, the probability of a label, or 0 for tags.
        truncated: True if the input or the output was truncated at its maximum length.
    """

    text: str
    score: float
    truncated: bool


def load(folder: str | os.PathLike[str], *, threads: int | None = None, **search: Any) -> Model:
    """Loads an export.

    Args:
        folder: The directory that `keras-seq export --format onnx` wrote.
        threads: Number of threads of one operation; by default one for each core.
        **search: Search settings that replace those of the export, such as `beam_size=4`.

    Returns:
        A function from a list of texts or recordings to a list of answers; see `Model`.

    Raises:
        RuntimeInputError: If there is no export of this version, a file is damaged, or a search
            setting is unknown.
    """
    folder = Path(folder)
    if threads is not None:
        _check_option("threads", threads, {"type": "integer", "minimum": 1, "maximum": 1024})
    graphs = functools.cache(lambda name: Graph(folder / f"{name}.onnx", threads))
    return model_of(folder, MODELS, graphs, search)


def model_of(
    folder: Path, kinds: dict[str, type[Model]], graphs: Graphs, search: dict[str, Any]
) -> Model:
    """Returns the model of a directory with `MODEL_FILE`, whose content is not trusted."""
    path = folder / MODEL_FILE
    # Unlike `Path.exists`, `os.path.exists` raises no error for a name that is too long.
    if not (os.path.exists(path) if isinstance(path, Path) else path.exists()):
        raise RuntimeInputError(f"{folder}: not an export, it has no {MODEL_FILE}")
    stored = _read_json(path)
    _require_format(folder, stored)
    if "answer" not in stored:
        _require(path, stored, {"task": {"enum": list(_ANSWERS)}})
        stored["answer"] = _ANSWERS[stored["task"]]
    fields = {"task": _NAME, "answer": {"enum": list(kinds)}, "batch_size": _whole(1, 100_000)}
    _require(path, stored, fields)
    kind = kinds[stored["answer"]]
    if kind is Recognizer and "search" in stored:
        kind = AttentionRecognizer
    _require(path, stored, {name: _FIELDS[name] for name in kind.fields})
    others = [name for name in _FIELDS if name in stored]
    _require(path, stored, {name: _FIELDS[name] for name in ("options", *others)})
    for option, schema in stored["options"].items():
        _require(path, schema, _OPTION, f"options.{option!a:.80}.")
        parts = {name: _OPTION_PARTS[name] for name in schema if name in _OPTION_PARTS}
        _require(path, schema, parts, f"options.{option!a:.80}.")
    if "search" in stored:
        _require(path, stored["search"], _SEARCH, "search.")
    return kind(folder, stored, graphs, _checked(search, stored))


def _require_format(folder: Path, stored: Any) -> None:
    received = stored.get("format") if isinstance(stored, dict) else None
    if received == FORMAT:
        return
    found = _FORMAT_NUMBER.fullmatch(received) if isinstance(received, str) else None
    known = _FORMAT_NUMBER.fullmatch(FORMAT)
    if found and known and int(found[1]) > int(known[1]):
        raise RuntimeInputError(
            f"{folder}: format {int(found[1])} of a newer keras-seq, expected {known[1]}: upgrade "
            "keras-seq, or use a newer runtime.py"
        )
    raise RuntimeInputError(
        f"{folder}: not an export of this version of keras-seq: export it again"
    )


def _whole(minimum: int, maximum: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": minimum, "maximum": maximum}


def _number(minimum: float, maximum: float) -> dict[str, Any]:
    return {"type": "number", "minimum": minimum, "maximum": maximum}


def _list(items: dict[str, Any], maximum: int, minimum: int = 0) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": minimum, "maxItems": maximum}


def _text(minimum: int, maximum: int) -> dict[str, Any]:
    return {"type": "string", "minLength": minimum, "maxLength": maximum}


_LINE = {"type": "string", "pattern": "[^\r\n]*"}
_NAME = _text(1, 100) | {"pattern": "[^\r\n]*"}
_IDS = _list(_whole(0, _MAX_VOCABULARY), 100_000)
# Schemas of the entries of `MODEL_FILE`, in the language of JSON Schema.
_FIELDS: dict[str, dict[str, Any]] = {
    "options": {"type": "object"},
    "n_best": _whole(1, 100_000),
    "max_length": _whole(1, 100_000),
    "labels": _list(_LINE, 100_000, 1),
    "reads_characters": {"type": "boolean"},
    "continues": {"type": "boolean"},
    "grows": {"type": "boolean"},
    "search": {"type": "object"},
    "source": {"type": "object"},
    "target": {"type": "object"},
    "sample_rate": _whole(1, 1_000_000),
    "frame_step": _whole(1, 1_000_000),
    "hold": _whole(1, 1_000_000),
    "threshold": _number(0, 1),
    "max_samples": _whole(1, 1 << 31),
    "piece_samples": _whole(1, 1 << 31),
}
_VOCABULARY: dict[str, dict[str, Any]] = {
    "file": {"enum": ["source.model", "target.model", "source.json", "target.json"]},
}
_RULES: dict[str, dict[str, Any]] = {
    "form": {"enum": ["none", "nfc", "nfd", "nfkc"]},
    "lowercase": {"type": "boolean"},
    "separator": _text(1, 100),
}
_FEATURES: dict[str, dict[str, Any]] = {
    "features": _list(_LINE, _MAX_VOCABULARY),
    "feature_separator": _text(1, 100),
}
_WORD_PIECES: dict[str, dict[str, Any]] = {
    "lowercase": {"type": "boolean"},
    "strip_accents": {"type": "boolean"},
    "vocabulary": _list(_text(1, 1000) | {"pattern": "[^\n]*"}, _MAX_VOCABULARY, 1),
}
_SEARCH: dict[str, dict[str, Any]] = {
    "method": {"enum": ["beam", "sampling"]},
    "beam_size": _whole(1, 1000),
    "n_best": _whole(1, 100_000),
    "patience": _number(0.001, 1000),
    "length_normalization": {"enum": ["average", "gnmt", "none"]},
    "alpha": _number(0, 10),
    "coverage_penalty": _number(0, 100),
    "min_length": _whole(1, 10_000),
    "min_length_ratio": _number(0, 1000),
    "max_length": _whole(1, 10_000),
    "max_length_ratio": _number(0, 1000),
    "max_length_extra": _whole(1, 10_000),
    "no_repeat_ngram_size": _whole(0, 32),
    "repetition_penalty": _number(0.01, 100),
    "temperature": _number(0.001, 1000),
    "top_k": _whole(0, 1_000_000),
    "top_p": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
    "seed": _whole(0, 2**32 - 1),
    "forbidden_tokens": _IDS,
    "forbidden_sequences": _list(_list(_whole(0, _MAX_VOCABULARY), 100_000, 1), 100_000),
    "start_token": _whole(0, _MAX_VOCABULARY),
    "end_token": _whole(0, _MAX_VOCABULARY),
    "prefix": _IDS,
}
# Schema of a schema of an option. A choice has `enum`, and a number has bounds.
_OPTION: dict[str, dict[str, Any]] = {"type": {"enum": ["string", "integer", "number"]}}
_BOUNDS = _number(-(1 << 53), 1 << 53)
_OPTION_PARTS: dict[str, dict[str, Any]] = {
    "enum": _list(_LINE, 100),
    "minimum": _BOUNDS,
    "exclusiveMinimum": _BOUNDS,
    "maximum": _BOUNDS,
}


def _require(path: Path, stored: Any, schemas: dict[str, dict[str, Any]], prefix: str = "") -> None:
    """Requires that an object of a JSON file has entries of these schemas."""
    if not isinstance(stored, dict):
        name = f"{prefix.removesuffix('.')}: " if prefix else ""
        raise RuntimeInputError(f"{path}: {name}received {stored!a:.80}, expected an object")
    for name, schema in schemas.items():
        if name not in stored:
            raise RuntimeInputError(
                f"{path}: {prefix}{name}: missing, expected {_description(schema)}"
            )
        if not _matches(stored[name], schema):
            raise RuntimeInputError(
                f"{path}: {prefix}{name}: received {stored[name]!a:.80}, expected "
                f"{_description(schema)}"
            )


def _matches(value: Any, schema: dict[str, Any]) -> bool:
    """Tests a value against a schema with the words of JSON Schema that `_FIELDS` uses."""
    if "enum" in schema:
        return isinstance(value, str) and value in schema["enum"]
    kinds = {"boolean": bool, "string": str, "array": list, "object": dict, "integer": int}
    kind: Any = kinds.get(schema["type"], (int, float))
    if not isinstance(value, kind):
        return False
    if schema["type"] == "string":
        fits = schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", math.inf)
        # JSON can hold halves of characters, which no terminal and no client can be sent.
        fits = fits and not re.search("[\ud800-\udfff]", value)
        return bool(fits and re.fullmatch(schema.get("pattern", "(?s).*"), value))
    if schema["type"] == "array":
        fits = schema["minItems"] <= len(value) <= schema["maxItems"]
        return fits and all(_matches(item, schema["items"]) for item in value)
    if schema["type"] in ("integer", "number"):
        if isinstance(value, bool):
            return False
        least = schema.get("minimum", schema.get("exclusiveMinimum", -math.inf))
        is_above = "exclusiveMinimum" not in schema or value > schema["exclusiveMinimum"]
        return bool(is_above and least <= value <= schema.get("maximum", math.inf))
    return True


def _description(schema: dict[str, Any]) -> str:
    """Describes the values of a schema."""
    if "enum" in schema:
        return "one of " + _printable(", ".join(schema["enum"]), 1000)
    if schema["type"] == "array":
        count = f"{schema['minItems']} to {schema['maxItems']:,}"
        return f"a list of {count} entries, each {_description(schema['items'])}"
    if schema["type"] == "string":
        # All patterns exclude line breaks.
        line = " of one line" if "pattern" in schema else ""
        if "maxLength" not in schema:
            return f"a string{line}"
        return f"a string{line} of {schema['minLength']} to {schema['maxLength']:,} characters"
    if schema["type"] not in ("integer", "number"):
        return {"boolean": "true or false", "object": "an object"}[schema["type"]]
    article = "an integer" if schema["type"] == "integer" else "a number"
    names = {"exclusiveMinimum": "from above", "minimum": "from", "maximum": "to"}
    bounds = [f" {word} {schema[name]}" for name, word in names.items() if name in schema]
    return article + "".join(bounds)


def reason_of(error: Exception) -> str:
    """Returns the message of an error on one line, without characters that a terminal obeys."""
    return _printable(str(error), 200)


def _printable(text: str, length: int) -> str:
    return ascii(" ".join(text.split()))[1:-1][:length]


def _read_json(path: Path) -> Any:
    try:
        return json.loads(read_file(path, _MAX_JSON_BYTES))
    except (ValueError, RecursionError) as error:
        if isinstance(error, RuntimeInputError):
            raise
        raise RuntimeInputError(f"{path}: cannot be read: {reason_of(error)}") from None


def read_file(path: Path, limit: int) -> bytes:
    """Reads a regular file, or a member of a zip archive, of at most `limit` bytes."""
    if isinstance(path, Path):
        check_file(path, limit)
    try:
        with path.open("rb") as stream:
            content = stream.read(limit + 1)
    except Exception as error:  # a zip archive has an error class for each cause
        raise RuntimeInputError(f"{path}: cannot be read: {reason_of(error)}") from None
    if len(content) > limit:
        raise RuntimeInputError(f"{path}: expected at most {limit:,} bytes")
    return content


def check_file(path: Path, limit: int) -> None:
    """Requires a regular file of at most `limit` bytes; to open a pipe would wait for ever."""
    try:
        status = path.stat()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise RuntimeInputError(f"{path}: cannot be read: {reason}") from None
    if not stat.S_ISREG(status.st_mode):
        raise RuntimeInputError(f"{path}: cannot be read: it is not a regular file")
    if status.st_size > limit:
        raise RuntimeInputError(f"{path}: {status.st_size:,} bytes, expected at most {limit:,}")


class Vocabulary:
    """Converts texts to ids and back, as the tokenizer of the training does."""

    def __init__(self, folder: Path, stored: dict[str, Any]) -> None:
        import sentencepiece

        self._path = folder / stored["file"]
        content = read_file(self._path, _MAX_VOCABULARY_BYTES)
        self._form, self._lowercase = stored["form"], stored["lowercase"]
        self._separator = stored["separator"]
        self._features: dict[str, int] = {}
        self._feature_separator = stored.get("feature_separator")
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=content)
            self.size: int = self._processor.vocab_size()
            # Fails if the vocabulary is damaged.
            self._processor.decode(self._processor.encode(["a", "\u00e4 a"]))
        except Exception as error:  # SentencePiece has an error class for each cause
            raise RuntimeInputError(f"{self._path}: cannot be read: {reason_of(error)}") from None
        # The features follow the pieces; the first id is that of an unknown feature.
        self._unknown_feature = self.size
        for number, name in enumerate(stored.get("features", ())):
            self._features[name] = self._unknown_feature + 1 + number

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Returns the ids of each text, without an end token; none for a blank text."""
        if self._feature_separator is None:
            return self._pieces(texts)
        pairs = [text.partition("\t") for text in texts]
        rows = self._pieces([source for source, _, _ in pairs])
        for row, (_, _, features) in zip(rows, pairs, strict=True):
            names = (name.strip() for name in features.split(self._feature_separator))
            if row:
                row += [self._features.get(name, self._unknown_feature) for name in names if name]
        return rows

    def decode(self, rows: Sequence[Any]) -> list[str]:
        """Returns the text of each row of ids; special ids are skipped."""
        pieces = _piece_ids(self._path, self.size, rows)
        texts = self._processor.decode(pieces) if pieces else []
        return [self._undo(text).replace("\n", " ").replace("\r", " ") for text in texts]

    def _pieces(self, texts: Sequence[str]) -> list[list[int]]:
        rows: list[list[int]] = self._processor.encode([self._apply(text) for text in texts])
        return rows

    def _apply(self, text: str) -> str:
        """Normalizes a text, and escapes what has a meaning in SentencePiece."""
        if not text or text.isspace():
            return ""
        text = self._canonical(_valid(text.replace("\n", " ").replace("\r", " ")))
        if not text.isascii():
            if self._form == "nfd":
                text = unicodedata.normalize("NFD", text)
            text = text.replace("\u2581", "\ufdd1")
        if self._separator != " ":
            text = text.replace(self._separator, "\ufdd2").replace(" ", "\ufdd0")
            text = text.replace("\ufdd2", " ")
        return text

    def _canonical(self, text: str) -> str:
        if self._lowercase:
            text = text.replace("\0", "\ufffd")
        if text.isascii():
            return text.lower() if self._lowercase else text
        form: Any = {"none": None, "nfc": "NFC", "nfd": "NFC", "nfkc": "NFKC"}[self._form]
        if form:
            text = unicodedata.normalize(form, text)
        if self._lowercase:
            text = text.lower()
            # Lowercasing may decompose: U+0130 becomes i and a combining dot.
            text = unicodedata.normalize(form, text) if form else text
        return text

    def _undo(self, text: str) -> str:
        if self._separator != " ":
            text = text.replace(" ", "\ufdd2").replace("\ufdd0", " ")
            text = text.replace("\ufdd2", self._separator)
        if not text.isascii():
            text = text.replace("\ufdd1", "\u2581")
        return unicodedata.normalize("NFC", text) if self._form == "nfd" else text


class WordPieces:
    """Converts texts to ids and back, as the word pieces of a pretrained encoder do."""

    # Default_Ignorable_Code_Point except format characters, which separate words.
    _IGNORED = frozenset(
        (
            *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0),
            *(*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)),
        )
    )
    # Characters that are words, besides punctuation: symbols and ideographs.
    _ALONE = re.compile(
        "[$+<=>^`|~\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df"
        "\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f]"
    )
    _MAX_WORD_BYTES = 100

    def __init__(self, folder: Path, stored: dict[str, Any]) -> None:
        self._path = folder / stored["file"]
        content = _read_json(self._path)
        _require(self._path, content, _WORD_PIECES)
        self._lowercase, self._strip = content["lowercase"], content["strip_accents"]
        special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
        known = {*special}
        self._pieces = [*special, *(x for x in content["vocabulary"] if x not in known)]
        self.size = len(self._pieces)
        self._ids = {piece: id for id, piece in enumerate(self._pieces) if id > END}

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Returns the ids of each text, without an end token; none for a blank text."""
        rows = []
        for text in texts:
            text = "".join(map(self._separated, _valid(text)))
            words = [word for word in text.split(" ") if word]
            rows.append([id for word in words for id in self._split(word)])
        return rows

    def decode(self, rows: Sequence[Any]) -> list[str]:
        """Returns the words of each row of ids, separated by spaces; special ids are skipped."""
        texts = []
        for row in _piece_ids(self._path, self.size, rows):
            pieces = (self._pieces[token] for token in row)
            words = (x[2:] if x.startswith("##") else f" {x}" for x in pieces)
            text = "".join(words).removeprefix(" ")
            texts.append(text.replace("\r", " "))
        return texts

    def _separated(self, character: str) -> str:
        """Replaces white space by a space, and adds spaces around words of one character."""
        if self._strip:
            parts = unicodedata.normalize("NFD", character)
            character = "".join(part for part in parts if unicodedata.category(part) != "Mn")
        text = ""
        for part in character:
            category = unicodedata.category(part)
            if category[0] == "Z" or category in ("Cc", "Cf"):
                text += " "
            elif category[0] == "P" or self._ALONE.match(part):
                text += f" {part} "
            else:
                text += part
        return text

    def _split(self, word: str) -> list[int]:
        """Splits a word greedily into the longest matching pieces from the left."""
        if self._lowercase:
            word = unicodedata.normalize("NFKC", word).casefold()
            word = unicodedata.normalize("NFKC", word)
            word = "".join(part for part in word if ord(part) not in self._IGNORED)
        if len(word.encode()) > self._MAX_WORD_BYTES:
            return [UNKNOWN]
        ids: list[int] = []
        start, prefix = 0, ""
        while start < len(word):
            stops = range(len(word), start, -1)
            stop = next((x for x in stops if prefix + word[start:x] in self._ids), None)
            if stop is None:
                return [UNKNOWN]
            ids.append(self._ids[prefix + word[start:stop]])
            start, prefix = stop, "##"
        return ids


def _valid(text: str) -> str:
    """Replaces lone surrogates, which are not text, by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _piece_ids(path: Path, size: int, rows: Sequence[Any]) -> list[list[int]]:
    """Returns the ids of each row without special ids; requires that the vocabulary has them."""
    ids = [[int(token) for token in row if token > END] for row in rows]
    if (largest := max(map(max, filter(None, ids)), default=0)) >= size:
        raise RuntimeInputError(
            f"{path}: it has {size:,} pieces, but the model generates the id {largest}: "
            "export it again"
        )
    return ids


def vocabulary(folder: Path, name: str, stored: dict[str, Any]) -> Vocabulary | WordPieces:
    """Loads the vocabulary `name` of an export, with its entry of `MODEL_FILE`."""
    path = folder / MODEL_FILE
    _require(path, stored, _VOCABULARY, f"{name}.")
    if stored["file"].endswith(".json"):
        return WordPieces(folder, stored)
    _require(path, stored, _RULES, f"{name}.")
    if {*_FEATURES} & {*stored}:
        _require(path, stored, _FEATURES, f"{name}.")
    return Vocabulary(folder, stored)


class Graph:
    """One ONNX graph. Inputs and outputs are dicts; large ones stay in onnxruntime."""

    def __init__(self, path: Path, threads: int | None) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or 0
        # Only fatal errors: what fails is raised too.
        options.log_severity_level = 4
        check_file(path, _MAX_GRAPH_BYTES)
        try:
            # The fallback to other devices would print its attempts.
            self._session = onnxruntime.InferenceSession(
                str(path), options, providers=["CPUExecutionProvider"], enable_fallback=0
            )
        except Exception as error:  # onnxruntime has an error class for each cause
            raise RuntimeInputError(f"{path}: cannot be loaded: {reason_of(error)}") from None
        self.path = path
        self._make = onnxruntime.OrtValue.ortvalue_from_numpy
        self._inputs = [node.name for node in self._session.get_inputs()]
        # An output that takes the place of an input has its name after this prefix.
        self._names = {
            node.name.removeprefix("new_"): node.name for node in self._session.get_outputs()
        }

    @property
    def outputs(self) -> list[str]:
        """The names of all outputs."""
        return list(self._names)

    def __call__(
        self, inputs: dict[str, Any], outputs: Sequence[str] | None = None
    ) -> dict[str, Any]:
        """Runs the graph with numpy arrays or values of onnxruntime; returns the latter."""
        feed = {}
        for name in self._inputs:
            if name not in inputs:
                raise RuntimeInputError(f"{self.path}: unknown input {name!a:.80}: export it again")
            value = inputs[name]
            feed[name] = self._make(value) if isinstance(value, np.ndarray) else value
        names = list(outputs or self._names)
        if lacking := sorted({*names} - {*self._names}):
            raise RuntimeInputError(f"{self.path}: damaged: it lacks {', '.join(lacking)}")
        wanted = [self._names[name] for name in names]
        try:
            found = self._session.run_with_ort_values(wanted, feed)
        except Exception as error:  # onnxruntime has an error class for each cause
            # The cause may be a damaged graph, but also an input that needs too much memory.
            raise RuntimeInputError(f"{self.path}: cannot be run: {reason_of(error)}") from None
        for name, value in zip(names, found, strict=True):
            if not value.is_tensor():
                raise RuntimeInputError(f"{self.path}: damaged: {name} is a list, not an array")
        return dict(zip(names, found, strict=True))


# Functions from the name of a graph to a `Graph`, or to a part of a file for LiteRT.
Graphs = Callable[[str], Any]


def outputs_of(
    path: Path, outputs: dict[str, Any], **expected: tuple[str, tuple[int | None, ...]]
) -> dict[str, np.ndarray]:
    """Returns outputs of a graph as arrays.

    `expected` has the kind of NumPy's type and the shape of each output; None is any size.

    Raises:
        RuntimeInputError: If the graph has other outputs, or negative ids.
    """
    arrays = {}
    for key, (kind, shape) in expected.items():
        if key not in outputs:
            raise RuntimeInputError(f"{path}: damaged: it lacks {key}")
        array = arrays[key] = _array(outputs[key])
        sizes = [a if b is None else b for a, b in zip(array.shape, shape, strict=False)]
        if array.dtype.kind != kind or array.ndim != len(shape) or [*array.shape] != sizes:
            raise RuntimeInputError(
                f"{path}: damaged: {key} is {array.dtype} {array.shape}, which does "
                f"not fit {MODEL_FILE}"
            )
        if kind == "i" and array.size and array.min() < 0:
            raise RuntimeInputError(f"{path}: damaged: {key} has negative numbers")
    return arrays


class Model:
    """A model of an export. Calling it returns the best answer to each input, as text.

    Attributes:
        task: The name of the task, such as `"translate"`.
        batch_size: Texts per batch.
        n_best: The largest number of texts that `run` generates for each text.
    """

    # The entries of `MODEL_FILE` that the model needs.
    fields: tuple[str, ...] = ()

    def __init__(
        self, folder: Path, stored: dict[str, Any], graphs: Graphs, search: dict[str, Any]
    ) -> None:
        self.task: str = stored["task"]
        self.batch_size: int = search.pop("batch_size", stored["batch_size"])
        self.n_best: int = stored.get("n_best", 1)
        self._max_length: int = stored.get("max_length", 0)
        self._labels: list[str] = stored.get("labels", [])
        if "source" in stored:
            self._source = vocabulary(folder, "source", stored["source"])
        self._whole_words: bool = stored.get("reads_characters", False)
        self._graph = graphs
        self._prepare(folder, stored, search)

    def _prepare(self, folder: Path, stored: dict[str, Any], search: dict[str, Any]) -> None:
        self._graph("model")

    def __call__(self, inputs: Sequence[Any]) -> list[str]:
        return [outputs[0].text if outputs else "" for outputs in self.run(inputs)]

    def run(self, inputs: Sequence[Any]) -> list[list[Output]]:
        """Returns the answers to each input, best first. Inputs are texts or recordings."""
        raise NotImplementedError

    def read(self, line: str) -> Any:
        """Returns the input of a line: a text, or the recording in the file that it names."""
        return line

    def parse(self, instance: Any) -> Any:
        """Returns the input of an HTTP request, or raises ValueError."""
        if not isinstance(instance, str):
            raise ValueError("instances: expected a list of strings")
        return instance

    def _encoded(self, texts: Sequence[str]) -> tuple[list[list[int]], list[bool]]:
        """Returns the ids of each text, and True for each text that is truncated."""
        if isinstance(texts, str):
            raise TypeError("texts must be a list of strings, not one string: model([text])")
        clipped = [text[: self._max_length * _CHARACTERS_PER_TOKEN] for text in texts]
        ids = self._source.encode(clipped)
        truncated = [
            len(row) > self._max_length or len(short) < len(text)
            for row, short, text in zip(ids, clipped, texts, strict=True)
        ]
        return [row[: self._max_length] for row in ids], truncated

    def _batches(self, lengths: dict[int, int]) -> Iterator[list[int]]:
        """Yields batches of the keys of `lengths`, the longest first, to avoid padding."""
        order = sorted(lengths, key=lambda number: lengths[number], reverse=True)
        for start in range(0, len(order), self.batch_size):
            yield order[start : start + self.batch_size]


class Classifier(Model):
    """Returns the labels of a text with their probabilities, most probable first."""

    fields = ("max_length", "labels", "source")

    def run(self, inputs: Sequence[str]) -> list[list[Output]]:
        rows, truncated, characters = self._rows(inputs)
        results: list[list[Output]] = [[] for _ in inputs]
        for batch in self._batches({i: len(row) for i, row in enumerate(rows)}):
            feed = {"source": _padded([[*rows[i], END] for i in batch])}
            if self._whole_words:
                feed["characters"] = _padded_characters(
                    [characters[i] for i in batch], feed["source"].shape
                )
            graph = self._graph("model")
            outputs = outputs_of(
                graph.path,
                graph(feed),
                probabilities=("f", (len(batch), len(self._labels))),
            )
            probabilities = outputs["probabilities"]
            for i, row in zip(batch, probabilities, strict=True):
                order = np.argsort(-row, kind="stable")
                results[i] = [
                    Output(self._labels[label], float(row[label]), truncated[i]) for label in order
                ]
        return results

    def _rows(self, texts: Sequence[str]) -> tuple[list[list[int]], list[bool], list[Any]]:
        if not self._whole_words:
            return *self._encoded(texts), []
        length = self._max_length
        clipped = [text[: length * _CHARACTERS_PER_TOKEN] for text in texts]
        words = [_words_of(text) for text in clipped]
        rows = [[token for word in row for token in word] for row in self._word_ids(words)]
        truncated = [
            len(row) > length or len(short) < len(text)
            for row, short, text in zip(rows, clipped, texts, strict=True)
        ]
        characters = [list(enumerate(row[:length])) for row in words]
        return [row[:length] for row in rows], truncated, characters

    def _word_ids(self, words: Sequence[Sequence[str]]) -> list[list[list[int]]]:
        """Returns the ids of each word of each text, at least one for each word."""
        encoded = iter(self._source.encode([word for row in words for word in row]))
        return [[self._known(next(encoded)) for _ in row] for row in words]

    def _known(self, ids: list[int]) -> list[int]:
        return [UNKNOWN] if not ids or (self._whole_words and len(ids) > 1) else ids


class Tagger(Classifier):
    """Returns a tag for each word of a text. Longer texts are tagged in pieces."""

    def run(self, inputs: Sequence[str]) -> list[list[Output]]:
        words = [_words_of(text) for text in inputs]
        pieces: list[tuple[int, list[int], list[tuple[int, str]]]] = []
        for number, (row, ids) in enumerate(zip(words, self._word_ids(words), strict=True)):
            pieces += [(number, *piece) for piece in _pieces(row, ids, self._max_length)]
        tags: list[list[str]] = [[] for _ in pieces]
        for batch in self._batches({i: len(piece[1]) for i, piece in enumerate(pieces)}):
            source = _padded([[*pieces[i][1], END] for i in batch])
            begins = np.zeros_like(source)
            for place, i in enumerate(batch):
                begins[place, [begin for begin, _ in pieces[i][2]]] = 1
            feed = {"source": source, "begins": begins}
            if self._whole_words:
                feed["characters"] = _padded_characters([pieces[i][2] for i in batch], source.shape)
            graph = self._graph("model")
            # A graph of fixed shapes returns more columns.
            found = outputs_of(graph.path, graph(feed), tags=("i", (len(batch), None)))["tags"]
            if found.shape[1] < source.shape[1] or found.max(initial=0) >= len(self._labels):
                raise RuntimeInputError(f"{graph.path}: damaged: unknown tags")
            for place, i in enumerate(batch):
                tags[i] = [self._labels[found[place, begin]] for begin, _ in pieces[i][2]]
        joined: list[list[str]] = [[] for _ in inputs]
        for (number, _, _), row in zip(pieces, tags, strict=True):
            joined[number] += row
        return [[Output(" ".join(row), 0.0, False)] for row in joined]


class Generator(Model):
    """Returns up to `n_best` texts for each text, best first; none for a blank text."""

    fields = ("max_length", "search", "continues", "grows", "source", "target")

    def _prepare(self, folder: Path, stored: dict[str, Any], search: dict[str, Any]) -> None:
        self._options = SimpleNamespace(**stored["search"] | search)
        if self.task == "vae":
            # A latent code has no length that a limit could be relative to.
            self._options.max_length_extra = self._options.max_length
        self.n_best = self._options.n_best
        self._target = self._source
        if stored["target"] != stored["source"]:
            self._target = vocabulary(folder, "target", stored["target"])
        self._continues: bool = stored["continues"]
        size = self._target.size
        _check_ids(folder, stored["search"], size)
        self._searcher = _Searcher(
            self._graph, self._options, stored["grows"], self.batch_size, size
        )

    def run(self, inputs: Sequence[str]) -> list[list[Output]]:
        if self._continues:
            ids, truncated = self._encoded(inputs)
            # Leaves room for a token after the prompt.
            longest = self._options.max_length - 1
            truncated = [len(row) > longest for row in ids]
            prefixes = [row[:longest] for row in ids]
            sources: list[list[int]] = [[] for _ in ids]
            filled = [*range(len(ids))]
        else:
            sources, truncated = self._encoded(inputs)
            prefixes = [list(self._options.prefix)] * len(sources)
            filled = [i for i, row in enumerate(sources) if row]
        results: list[list[Output]] = [[] for _ in inputs]
        lengths = {i: len(sources[i]) + len(prefixes[i]) for i in filled}
        for batch in self._batches(lengths):
            rows = [[*sources[i], END] for i in batch]
            found = self._search(_padded(rows), [prefixes[i] for i in batch])
            for i, hypotheses in zip(batch, found, strict=True):
                texts_of_row = self._target.decode([tokens for tokens, _, _ in hypotheses])
                results[i] = [
                    Output(text, float(score), bool(cut or truncated[i]))
                    for text, (_, score, cut) in zip(texts_of_row, hypotheses, strict=True)
                ]
        return results

    def _search(self, source: np.ndarray, prefixes: list[list[int]]) -> list[list[Hypothesis]]:
        """Searches targets of sources `(B, S)`, each with its end token."""
        options = self._options
        lengths = (source != PAD).sum(axis=1)
        max_length = _scaled(lengths, options.max_length_ratio) + options.max_length_extra
        prefix = _padded(prefixes) if any(prefixes) else None
        if prefix is not None:
            held = (prefix != PAD).sum(axis=1)
            max_length = np.maximum(max_length, held + options.max_length_extra)
        min_length = np.maximum(_scaled(lengths, options.min_length_ratio), options.min_length)
        rows = _limits(min_length, max_length, options) | {"keys": _row_keys(source, options.seed)}
        if prefix is not None:
            rows["prefix"] = prefix
        return self._searcher({"source": source}, rows)


class SoundModel(Model):
    """A model of recordings: float arrays `(samples,)` from -1 to 1 at the rate of the export."""

    # Names, kinds and numbers of axes of the outputs.
    _kinds: dict[str, tuple[str, int]] = {}

    def _prepare(self, folder: Path, stored: dict[str, Any], search: dict[str, Any]) -> None:
        super()._prepare(folder, stored, search)
        self.sample_rate: int = stored["sample_rate"]
        self._stored = stored

    def read(self, line: str) -> np.ndarray:
        try:
            if line.endswith(".npy"):
                with open(line, "rb") as array:
                    return self.parse(np.load(array))
            with wave.open(line) as file:
                width, rate = file.getsampwidth(), file.getframerate()
                channels = file.getnchannels()
                content = file.readframes(file.getnframes())
        except Exception as error:  # numpy reads ZIP files, and headers as Python
            raise RuntimeInputError(f"{line}: not a recording: {reason_of(error)}") from None
        if width != 2 or rate != self.sample_rate:
            raise RuntimeInputError(
                f"{line}: expected 16 bits a sample and {self.sample_rate} samples a second"
            )
        samples = np.frombuffer(content[: len(content) // (2 * channels) * 2 * channels], "<i2")
        return (samples.reshape(-1, channels).mean(axis=1) / 32768).astype(np.float32)

    def parse(self, instance: Any) -> np.ndarray:
        # An array of text would have the length of the longest for each.
        if isinstance(instance, list) and not all(type(one) in (int, float) for one in instance):
            raise ValueError("expected a list of samples")
        samples = np.array(instance)
        if samples.ndim != 1 or (samples.size and samples.dtype.kind not in "iuf"):
            raise ValueError("expected a list of samples")
        samples = samples.astype(np.float32)
        if not np.isfinite(samples).all():
            raise ValueError("expected finite samples")
        return samples

    def _outputs(
        self, recordings: Sequence[np.ndarray], silence: int = 0
    ) -> Iterator[tuple[int, int, dict[str, np.ndarray]]]:
        """Yields the number of each recording, its samples, and its rows of the outputs."""
        arrays = [np.asarray(array, np.float32) for array in recordings]
        for batch in self._batches({i: len(array) for i, array in enumerate(arrays)}):
            rows = [arrays[i] for i in batch]
            samples, lengths = _padded_samples(rows, self.sample_rate, silence)
            graph = self._graph("model")
            shapes = {
                name: (kind, (len(batch), *[None] * (axes - 1)))
                for name, (kind, axes) in self._kinds.items()
            }
            found = outputs_of(
                graph.path, graph({"samples": samples, "lengths": lengths}), **shapes
            )
            for place, i in enumerate(batch):
                yield i, lengths[place], {name: rows[place] for name, rows in found.items()}


class Recognizer(SoundModel):
    """Returns the most probable texts of a recording."""

    fields: tuple[str, ...] = ("sample_rate", "source")
    _kinds = {"labels": ("i", 3), "counts": ("i", 2), "scores": ("f", 2)}

    def run(self, inputs: Sequence[np.ndarray]) -> list[list[Output]]:
        results: list[list[Output]] = [[] for _ in inputs]
        for i, _, found in self._outputs(inputs):
            if len({len(rows) for rows in found.values()}) > 1:
                raise RuntimeInputError(
                    f"{self._graph('model').path}: damaged: its outputs do not agree"
                )
            kept = [row for row, score in enumerate(found["scores"]) if score > NO_SCORE]
            ids = [found["labels"][row][: found["counts"][row]] for row in kept]
            scores = [float(found["scores"][row]) for row in kept]
            texts = self._source.decode(ids)
            results[i] = [Output(*pair, False) for pair in zip(texts, scores, strict=True)]
        return results


class Detector(SoundModel):
    """Returns the detections in a recording, such as "stop:0.50", with seconds; "-" for none."""

    fields: tuple[str, ...] = ("labels", "sample_rate", "frame_step", "hold", "threshold")
    _kinds = {"probabilities": ("f", 3)}

    def _prepare(self, folder: Path, stored: dict[str, Any], search: dict[str, Any]) -> None:
        super()._prepare(folder, stored, search)
        # Bounds the silence after a recording.
        longest = max(1, _MAX_HOLD_SECONDS * self.sample_rate // stored["frame_step"])
        _require(folder / MODEL_FILE, stored, {"hold": _whole(1, longest)})

    def run(self, inputs: Sequence[np.ndarray]) -> list[list[Output]]:
        hold, step = self._stored["hold"], self._stored["frame_step"]
        results: list[list[Output]] = [[] for _ in inputs]
        for i, length, outputs in self._outputs(inputs, silence=hold * step):
            probabilities = outputs["probabilities"][: length // step]  # (frames, words)
            if probabilities.shape[1] != len(self._labels):
                raise RuntimeInputError(
                    f"{self._graph('model').path}: damaged: it has {probabilities.shape[1]:,} "
                    f"words, and {MODEL_FILE} has {len(self._labels):,} labels"
                )
            found = []
            for word, column in zip(self._labels, probabilities.T, strict=True):
                frame = 0
                while frame < len(column):
                    if column[frame] >= self._stored["threshold"]:
                        found.append(((frame + 1) * step / self.sample_rate, word))
                        frame += hold
                    else:
                        frame += 1
            text = " ".join(f"{word}:{seconds:.2f}" for seconds, word in sorted(found)) or "-"
            results[i] = [Output(text, float(probabilities.max(initial=0)), False)]
        return results


class AttentionRecognizer(SoundModel):
    """Returns the most probable texts of a recording, by a decoder with attention."""

    fields = ("sample_rate", "search", "grows", "source")

    def _prepare(self, folder: Path, stored: dict[str, Any], search: dict[str, Any]) -> None:
        self._options = SimpleNamespace(**stored["search"] | search)
        self.n_best = self._options.n_best
        size = self._source.size
        _check_ids(folder, stored["search"], size)
        self._searcher = _Searcher(
            self._graph, self._options, stored["grows"], self.batch_size, size
        )
        self.sample_rate = stored["sample_rate"]

    def run(self, inputs: Sequence[np.ndarray]) -> list[list[Output]]:
        arrays = [np.asarray(array, np.float32) for array in inputs]
        # A recording without sound has the empty text; the attention has nothing to attend to.
        results = [[Output("", 0.0, False)] for _ in inputs]
        options = self._options
        for batch in self._batches(
            {i: len(array) for i, array in enumerate(arrays) if array.any()}
        ):
            samples, lengths = _padded_samples([arrays[i] for i in batch], self.sample_rate)
            longest = np.full(len(batch), options.max_length)
            rows = _limits(np.full(len(batch), options.min_length), longest, options)
            found = self._searcher({"samples": samples, "lengths": lengths}, rows)
            for i, hypotheses in zip(batch, found, strict=True):
                texts = self._source.decode([tokens for tokens, _, _ in hypotheses])
                results[i] = [
                    Output(text, float(score), cut)
                    for text, (_, score, cut) in zip(texts, hypotheses, strict=True)
                ]
        return results


class _Searcher:
    """Searches targets with the graphs `start`, `step` and, if the state grows, `grow`."""

    def __init__(self, graph: Any, options: Any, grows: bool, batch_size: int, size: int) -> None:
        if options.n_best > options.beam_size and options.method == "beam":
            raise RuntimeInputError(
                f"n_best: received {options.n_best}, expected at most the beam size, "
                f"{options.beam_size}"
            )
        count = options.beam_size if options.method == "beam" else options.n_best
        if count * options.max_length > _MAX_BATCH_TOKENS:
            name = "beam_size" if options.method == "beam" else "n_best"
            raise RuntimeInputError(
                f"{name} x max_length: received {count:,} x {options.max_length:,}, expected at "
                f"most {_MAX_BATCH_TOKENS:,} tokens"
            )
        if batch_size * count * options.max_length > _MAX_BATCH_TOKENS:
            raise RuntimeInputError(
                f"batch_size: received {batch_size:,}, expected at most "
                f"{_MAX_BATCH_TOKENS // (count * options.max_length):,} with {count:,} hypotheses "
                f"of max_length ({options.max_length:,})"
            )
        self._options, self._vocabulary_size = options, size
        self._start, self._step = graph("start"), graph("step")
        if lacking := {"logits", "values", "tokens"} - {*self._step.outputs}:
            raise RuntimeInputError(f"step.onnx: damaged: it lacks {', '.join(sorted(lacking))}")
        if options.coverage_penalty > 0 and "attention" not in self._step.outputs:
            raise RuntimeInputError(
                "coverage_penalty: the graphs lack the attention: export with --coverage-penalty"
            )
        self._grow = graph("grow") if grows else None

    def __call__(
        self, inputs: dict[str, np.ndarray], rows: dict[str, np.ndarray]
    ) -> list[list[Hypothesis]]:
        """Returns the hypotheses of each row, best first.

        `inputs` are those of the encoder. `rows` has a limit `max_length` and `min_length` for each
        row; maybe its `prefix` `(B, P)`; for sampling its `keys`.
        """
        options = self._options
        sizes = {"beam_size": _integer(options.beam_size), "length": _integer(_ROUND)}
        if options.method != "beam":
            sizes["beam_size"] = _integer(options.n_best)
        state: dict[str, Any] = self._start({**inputs, **sizes})
        size = len(rows["max_length"])
        mask = outputs_of(self._start.path, state, memory_mask=("b", (size, None)))["memory_mask"]
        _check_rows(self._start.path, state, size)
        rows = {**rows, "mask": mask}
        kind = _Beam if options.method == "beam" else _Sampling
        method = kind(options, rows, self._step.path, self._vocabulary_size)
        names = [name for name in self._step.outputs if name not in method.unread]
        numbers = np.arange(len(method.done))
        results: list[list[Hypothesis]] = [[] for _ in numbers]
        for position in range(int(rows["max_length"].max())):
            if position and position % _ROUND == 0:
                keep = np.flatnonzero(~method.done)
                if len(keep) < len(numbers):
                    for row, found in zip(numbers, method.results(), strict=True):
                        results[row] = found
                    numbers = numbers[keep]
                    method.keep(keep)
                    state = {name: _array(value)[keep] for name, value in state.items()}
                if self._grow is not None:
                    grown = self._grow({**state, "length": _integer(_ROUND)})
                    _check_rows(self._grow.path, grown, len(numbers))
                    state |= grown
            steps = {"position": _integer(position), "count": _integer(method.candidates)}
            steps |= {"token": method.tokens, "parents": method.parents}
            outputs = self._step({**state, **steps}, names)
            changed = {name: x for name, x in outputs.items() if name.startswith("state_")}
            _check_rows(self._step.path, changed, len(numbers))
            method.step(position, outputs)
            state |= changed
            if method.done.all():
                break
        for row, found in zip(numbers, method.results(), strict=True):
            results[row] = found
        return results


def _check_rows(path: Path, state: dict[str, Any], rows: int) -> None:
    """Requires that the tensors of the state have a row for each text."""
    for key, value in state.items():
        shape = value.shape if isinstance(value, np.ndarray) else value.shape()
        if not shape or shape[0] != rows:
            raise RuntimeInputError(
                f"{path}: damaged: {key!a:.80} has the shape {str(tuple(shape))[:80]}, expected "
                f"{rows:,} rows"
            )


def _check_ids(folder: Path, search: dict[str, Any], size: int) -> None:
    """Requires that the ids in the search settings are in the vocabulary."""
    names = ("prefix", "forbidden_tokens", "start_token", "end_token")
    rows = {name: search[name] if name in names[:2] else [search[name]] for name in names}
    rows["forbidden_sequences"] = [id for row in search["forbidden_sequences"] for id in row]
    for name, ids in rows.items():
        if (largest := max(ids, default=0)) >= size:
            raise RuntimeInputError(
                f"{folder / MODEL_FILE}: search.{name}: received {largest:,}, expected an id below "
                f"{size:,}, the size of the vocabulary"
            )


# Ids, score and whether the length limit came before the end token.
Hypothesis = tuple[np.ndarray, float, bool]


class _Method:
    """Base class of beam search and sampling: K hypotheses of each row, and their constraints."""

    unread: tuple[str, ...] = ()

    def __init__(
        self, options: Any, rows: dict[str, np.ndarray], path: Path, size: int, count: int
    ) -> None:
        self._options, self._rows, self._path, self.count = options, rows, path, count
        # A prompt may be of another vocabulary than the targets, of which `size` is the size.
        largest = int(rows["prefix"].max(initial=0)) if "prefix" in rows else 0
        self._least_logits = max(size, largest + 1)
        # Known after the first step, and the same in each.
        self._num_logits: int | None = None
        batch = len(rows["max_length"])
        self.tokens = np.full((batch, count), options.start_token, np.int32)
        # The slots of the last step that the hypotheses continue.
        self.parents = np.tile(np.arange(count, dtype=np.int32), (batch, 1))
        self.done: np.ndarray = np.zeros(batch, bool)
        self._history = np.zeros((batch, count, int(rows["max_length"].max())), np.int32)
        self._totals = np.zeros((batch, count), np.float32)

    def keep(self, index: np.ndarray) -> None:
        """Keeps some of the rows."""
        self._rows = {name: values[index] for name, values in self._rows.items()}
        for name, value in vars(self).items():
            if isinstance(value, np.ndarray):
                setattr(self, name, value[index])

    def _log_probabilities(self, logits: np.ndarray, position: int) -> np.ndarray:
        """Returns log-probabilities `(B, K, V)`, `_NEG_INF` for tokens that are not allowed."""
        options, history = self._options, self._history[:, :, :position]
        if options.repetition_penalty != 1.0:
            picked = np.take_along_axis(logits, history, axis=-1)
            penalty = np.float32(options.repetition_penalty)
            picked = np.where(picked > 0, picked / penalty, picked * penalty)
            logits = logits.copy()
            np.put_along_axis(logits, history, picked, axis=-1)
        highest = logits.max(axis=-1, keepdims=True)
        sums = np.exp(logits - highest).sum(axis=-1, keepdims=True)
        free = logits - highest - np.log(sums)
        allowed = free.copy()
        allowed[:, :, options.forbidden_tokens] = _NEG_INF
        allowed[position + 1 < self._rows["min_length"], :, options.end_token] = _NEG_INF
        for row, slot in np.ndindex(*history.shape[:2]):
            tokens = [int(token) for token in history[row, slot]]
            for token in self._completions(tokens):
                allowed[row, slot, token] = _NEG_INF
        prefix = self._rows.get("prefix")
        if prefix is not None and position < prefix.shape[1]:
            forced = prefix[:, position]
            for row in np.flatnonzero(forced):
                allowed[row] = _NEG_INF
                allowed[row, :, forced[row]] = free[row, :, forced[row]]
        return allowed

    def _logits(self, outputs: dict[str, Any]) -> np.ndarray:
        """Returns the logits `(B, K, V)` of a step, with all ids of the vocabulary in V."""
        shape = (*self.tokens.shape, self._num_logits)
        logits = outputs_of(self._path, outputs, logits=("f", shape))["logits"]
        if logits.shape[-1] < self._least_logits:
            raise RuntimeInputError(
                f"{self._path}: damaged: it has {logits.shape[-1]:,} logits, expected at least "
                f"{self._least_logits:,}"
            )
        self._num_logits = logits.shape[-1]
        return logits

    def _completions(self, tokens: list[int]) -> Iterator[int]:
        """Yields the tokens that would complete a repeated n-gram or a forbidden sequence."""
        size = self._options.no_repeat_ngram_size
        if size:
            begin = tokens[len(tokens) - size + 1 :] if size > 1 else []
            for start in range(len(tokens) - size + 1):
                if tokens[start : start + size - 1] == begin:
                    yield tokens[start + size - 1]
        for *before, last in self._options.forbidden_sequences:
            if tokens[len(tokens) - len(before) :] == before:
                yield last

    def _penalty(self, lengths: Any) -> np.ndarray:
        """Returns the divisor of a summed log-probability."""
        lengths, alpha = np.asarray(lengths, np.float32), np.float32(self._options.alpha)
        kind = self._options.length_normalization
        if kind == "average":
            return lengths**alpha
        return ((5 + lengths) / 6) ** alpha if kind == "gnmt" else np.ones_like(lengths)


class _Beam(_Method):
    """Beam search; see `keras_seq.search.beam_search`."""

    def __init__(self, options: Any, rows: dict[str, np.ndarray], path: Path, size: int) -> None:
        super().__init__(options, rows, path, size, options.beam_size)
        batch, n_best = len(self.done), options.n_best
        # All hypotheses are equal at first. To avoid duplicates, only the first one is live.
        self._totals[:, 1:] = _NEG_INF
        ends = math.ceil(round(options.patience * self.count, 6))
        self._max_finished = max(ends, n_best)
        # Number of finished hypotheses that hold no beam slot.
        self._slotless = max(self._max_finished - self.count, 0)
        self._width = self.count * (2 if self._slotless else 1)
        self._constrained = bool(
            options.forbidden_sequences
            or options.no_repeat_ngram_size
            or options.repetition_penalty != 1.0
            or "prefix" in rows
        )
        forbidden = sorted({*options.forbidden_tokens})
        # Indexed by token; the last entry is for all larger ones.
        table = np.isin(np.arange(max(forbidden, default=-1) + 2), forbidden)
        self._is_forbidden = lambda tokens: table[np.minimum(tokens, len(table) - 1)]
        # Enough tokens remain after the forbidden ones and an early end token are removed.
        self.candidates = 1 if self._constrained else self._width + len(forbidden) + 1
        self.unread = ("values", "tokens") if self._constrained else ("logits",)
        self._finished = np.zeros((batch, n_best, self._history.shape[2]), np.int32)
        self._finished_scores = np.full((batch, n_best), _NEG_INF)
        self._finished_lengths = np.zeros((batch, n_best), np.int32)
        self._num_finished = np.zeros(batch, np.int32)
        self._attention: Any = None

    def step(self, position: int, outputs: dict[str, Any]) -> None:
        """Takes one step. `parents` becomes the slot that each hypothesis had before."""
        options, length = self._options, position + 1
        totals, tokens, parents = self._continuations(position, outputs)
        targets = _gather(self._history, parents)
        targets[:, :, position] = tokens
        attention = None
        if options.coverage_penalty > 0:
            shape = (*self.tokens.shape, self._rows["mask"].shape[1])
            new = outputs_of(self._path, outputs, attention=("f", shape))["attention"]
            old = 0.0 if self._attention is None else self._attention
            attention = _gather(old + new, parents)
        ending, staying, num_finished = self._survivors(totals, tokens)
        scores = np.where(ending, self._score(totals, length, attention), _NEG_INF)
        scores = np.concatenate([self._finished_scores, scores], axis=1)
        scores, index = _largest(scores, options.n_best)
        lengths = np.where(ending, length, 0).astype(np.int32)
        lengths = _gather(np.concatenate([self._finished_lengths, lengths], axis=1), index)
        finished = _gather(np.concatenate([self._finished, targets], axis=1), index)
        live, slots = _largest(np.where(staying, totals, _NEG_INF), self.count)
        limits = self._rows["max_length"]
        bound = live[:, 0] / self._penalty(limits)
        is_done = (live[:, 0] <= NO_SCORE) | (num_finished >= self._max_finished)
        is_done |= (scores[:, -1] >= bound) | (length >= limits)
        # Rows that are done no longer change.
        active = ~self.done
        for old, new in (
            (self._totals, live),
            (self._history, _gather(targets, slots)),
            (self._finished_scores, scores),
            (self._finished_lengths, lengths),
            (self._finished, finished),
            (self._num_finished, num_finished),
        ):
            old[active] = new[active]
        if attention is not None:
            new = _gather(attention, slots)
            if self._attention is None:
                self._attention = np.zeros_like(new)
            self._attention[active] = new[active]
        self.done = np.logical_or(self.done, is_done)
        self.tokens = _gather(tokens, slots).astype(np.int32)
        self.parents = _gather(parents, slots).astype(np.int32)

    def results(self) -> Iterator[list[Hypothesis]]:
        """Yields the N best hypotheses of each row: finished ones first, then live ones."""
        limits = self._rows["max_length"]
        live_scores = self._score(self._totals, limits[:, None], self._attention)
        for row, limit in enumerate(limits):
            found: list[Hypothesis] = [
                (self._finished[row, i, :length], self._finished_scores[row, i], False)
                for i, length in enumerate(self._finished_lengths[row])
                if length
            ]
            for slot in np.argsort(-live_scores[row], kind="stable"):
                if self._totals[row, slot] > NO_SCORE:
                    history = self._history[row, slot, :limit]
                    found.append((history, live_scores[row, slot], True))
            yield found[: self._options.n_best]

    def _continuations(
        self, position: int, outputs: dict[str, Any]
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns sums, tokens and parents of the W best continuations, each `(B, W)`."""
        if self._constrained:
            values = self._log_probabilities(self._logits(outputs), position)
            values, tokens = _largest_of_many(values, self._width)
        else:
            shape = (*self.tokens.shape, None)
            arrays = outputs_of(self._path, outputs, values=("f", shape), tokens=("i", shape))
            values, tokens = arrays["values"], arrays["tokens"]
            if not values.size or values.shape != tokens.shape:
                raise RuntimeInputError(
                    f"{self._path}: damaged: values is {values.shape}, tokens {tokens.shape}"
                )
            unwanted = self._is_forbidden(tokens)
            if (early := position + 1 < self._rows["min_length"]).any():
                unwanted |= early[:, None, None] & (tokens == self._options.end_token)
            values = np.where(unwanted, _NEG_INF, values)
        totals = np.maximum(self._totals[..., None] + values, _NEG_INF)
        each = totals.shape[-1]
        batch = len(totals)
        best, index = _largest(totals.reshape(batch, -1), min(self._width, totals[0].size))
        return best, _gather(tokens.reshape(batch, -1), index), index // each

    def _survivors(
        self, totals: np.ndarray, tokens: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Returns which candidates end and which stay live, `(B, W)`, and the number that ended."""

        def free_slots(num_finished: np.ndarray) -> np.ndarray:
            return (self.count - np.maximum(num_finished - self._slotless, 0))[:, None]

        is_end = tokens == self._options.end_token
        is_candidate = totals > NO_SCORE
        fits = np.arange(totals.shape[1]) < free_slots(self._num_finished)
        ending = is_candidate & is_end & fits
        num_finished = self._num_finished + ending.sum(axis=1, dtype=np.int32)
        is_live = is_candidate & ~is_end
        if self._slotless:
            fits = np.cumsum(is_live, axis=1) <= free_slots(num_finished)
        return ending, is_live & fits, num_finished

    def _score(self, totals: np.ndarray, lengths: Any, attention: np.ndarray | None) -> np.ndarray:
        scores: np.ndarray = totals / self._penalty(lengths)
        if attention is None:
            return scores
        logs = np.log(np.clip(attention, np.float32(1e-10), np.float32(1)))
        logs = np.where(self._rows["mask"][:, None], logs, np.float32(0))
        return scores + np.float32(self._options.coverage_penalty) * logs.sum(axis=-1)


class _Sampling(_Method):
    """Independent samples; see `keras_seq.search.sample`."""

    unread = ("values", "tokens")
    candidates = 1

    def __init__(self, options: Any, rows: dict[str, np.ndarray], path: Path, size: int) -> None:
        super().__init__(options, rows, path, size, options.n_best)
        self._lengths = np.zeros_like(self.tokens)
        self._ended = np.zeros_like(self.tokens, bool)

    def step(self, position: int, outputs: dict[str, Any]) -> None:
        """Takes one step. The hypotheses keep their slots."""
        options, length = self._options, position + 1
        values = self._log_probabilities(self._logits(outputs), position)
        uniform = _uniform_numbers(self._rows["keys"], self.count, position)
        weights = values / np.float32(options.temperature)
        tokens = _sampled(weights, uniform, options.top_k, options.top_p)
        gains = np.take_along_axis(values, tokens[..., None], axis=-1)[..., 0]
        tokens = np.where(self._ended, PAD, tokens).astype(np.int32)
        ends = (tokens == options.end_token) | (length >= self._rows["max_length"][:, None])
        totals = np.maximum(self._totals + gains, _NEG_INF)
        self._totals = np.where(self._ended, self._totals, totals)
        self._lengths = np.where(self._ended, self._lengths, length)
        self._ended = self._ended | ends | (gains <= NO_SCORE)
        self._history[:, :, position] = tokens
        self.tokens, self.done = tokens, np.all(self._ended, axis=1)

    def results(self) -> Iterator[list[Hypothesis]]:
        """Yields the samples of each row, best score first."""
        is_sample = self._totals > NO_SCORE
        scores = np.where(is_sample, self._totals / self._penalty(self._lengths), _NEG_INF)
        for row, order in enumerate(np.argsort(-scores, axis=1, kind="stable")):
            yield [
                (history, scores[row, slot], self._options.end_token not in history)
                for slot in order
                if is_sample[row, slot]
                for history in [self._history[row, slot, : self._lengths[row, slot]]]
            ]


def _sampled(log_weights: np.ndarray, uniform: np.ndarray, top_k: int, top_p: float) -> np.ndarray:
    """Samples an id for each uniform number `(B, N)` by the inverse cumulative distribution."""
    size = log_weights.shape[-1]
    ids = None
    if top_k or top_p < 1:
        log_weights, ids = _largest_of_many(log_weights, min(top_k or size, size))
    weights = np.exp(log_weights - log_weights.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
    if top_p < 1:
        before = np.cumsum(weights, axis=-1) - weights
        weights = np.where(before < top_p, weights, np.float32(0))
    cumulative = np.cumsum(weights, axis=-1)
    threshold = uniform[..., None] * cumulative[..., -1:]
    index = (cumulative <= threshold).sum(axis=-1)
    index = np.minimum(index, (cumulative < cumulative[..., -1:]).sum(axis=-1))
    if ids is None:
        return index
    return np.take_along_axis(ids, index[..., None], axis=-1)[..., 0]


def _row_keys(source: np.ndarray, seed: int) -> np.ndarray:
    """Computes a key of 32 bits per source; see `keras_seq.search.random_numbers`."""
    odd, ids = np.uint32(0x9E3779B1), source.astype(np.uint32)
    mixed = _mix(ids * odd + _mix(np.arange(source.shape[1], dtype=np.uint32) + np.uint32(1)))
    sums = np.where(source != PAD, mixed, np.uint32(0)).sum(axis=1, dtype=np.uint32)
    return _mix(sums + _mix(np.array([seed], np.uint32)))


def _uniform_numbers(keys: np.ndarray, count: int, step: int) -> np.ndarray:
    odd = np.uint32(0x9E3779B1)
    numbers = np.arange(count, dtype=np.uint32) * odd
    mixed = _mix(keys[:, None] ^ _mix(numbers + np.uint32(1)))
    mixed = _mix(mixed + np.array([step], np.uint32) * odd)
    return (mixed >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)


def _mix(x: np.ndarray) -> np.ndarray:
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x7FEB352D)
    x = (x ^ (x >> np.uint32(15))) * np.uint32(0x846CA68B)
    return x ^ (x >> np.uint32(16))


def _largest(values: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the largest values of each row and their indices. Ties go to the lower index."""
    index = np.argsort(-values, axis=-1, kind="stable")[..., :count]
    return np.take_along_axis(values, index, axis=-1), index


def _largest_of_many(values: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """`_largest` along the last axis of a tensor with a vocabulary there."""
    count = min(count, values.shape[-1])
    if count == values.shape[-1]:
        return _largest(values, count)
    index = np.sort(np.argpartition(-values, count - 1, axis=-1)[..., :count], axis=-1)
    best, order = _largest(np.take_along_axis(values, index, axis=-1), count)
    return best, np.take_along_axis(index, order, axis=-1)


def _gather(values: np.ndarray, index: np.ndarray) -> np.ndarray:
    """Gathers along the second axis, for each row separately."""
    return values[np.arange(len(values))[:, None], index]


def _padded_samples(
    arrays: Sequence[np.ndarray], least: int, silence: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Returns recordings with silence after them, padded with zeros, and their lengths.

    The rows have at least `least` samples, because the graphs need a few frames.
    """
    lengths = np.array([len(array) + silence for array in arrays], np.int32)
    samples = np.zeros((len(arrays), max(least, lengths.max())), np.float32)
    for row, array in zip(samples, arrays, strict=True):
        row[: len(array)] = array
    return samples, lengths


def _limits(min_length: np.ndarray, max_length: np.ndarray, options: Any) -> dict[str, np.ndarray]:
    """Returns the limits of the lengths of targets `(B,)`."""
    max_length = np.minimum(max_length, options.max_length)
    return {"min_length": np.minimum(min_length, max_length), "max_length": max_length}


def _array(value: Any) -> np.ndarray:
    """Returns an array or a value of onnxruntime as an array."""
    if isinstance(value, np.ndarray):
        return value
    try:
        array: np.ndarray = value.numpy()
    except Exception as error:  # numbers that numpy lacks
        raise RuntimeInputError(f"an output of a graph is no array: {reason_of(error)}") from None
    return array


def _integer(value: int) -> np.ndarray:
    return np.array(value, np.int32)


def _scaled(lengths: np.ndarray, ratio: float) -> np.ndarray:
    return np.floor(lengths.astype(np.float32) * np.float32(ratio)).astype(np.int64)


def _padded(rows: Sequence[Sequence[int]]) -> np.ndarray:
    padded = np.zeros((len(rows), max(1, *map(len, rows))), np.int32)
    for number, row in enumerate(rows):
        padded[number, : len(row)] = row
    return padded


def _words_of(text: str) -> list[str]:
    """Splits a text into words at ASCII white space."""
    return [word for word in re.split("[ \t\n\v\f\r]", text) if word]


def _pieces(
    words: Sequence[str], ids: Sequence[list[int]], length: int
) -> Iterator[tuple[list[int], list[tuple[int, str]]]]:
    """Splits a text at words into pieces of at most `length` ids; truncates longer words."""
    tokens: list[int] = []
    begins: list[tuple[int, str]] = []
    for word, row in zip(words, ids, strict=True):
        if begins and len(tokens) + len(row[:length]) > length:
            yield tokens, begins
            tokens, begins = [], []
        begins.append((len(tokens), word))
        tokens += row[:length]
    if begins:
        yield tokens, begins


def _padded_characters(
    rows: Sequence[Sequence[tuple[int, str]]], shape: tuple[int, ...]
) -> np.ndarray:
    """Returns the first and last 8 code points of each word at its position, `(B, S, 16)`."""
    characters = np.zeros((*shape, 16), np.int32)
    for number, row in enumerate(rows):
        for begin, word in row:
            first, last = [*map(ord, word[:8])], [*map(ord, word[-8:])]
            characters[number, begin, : len(first)] = first
            characters[number, begin, 16 - len(last) :] = last
    return characters


# The models by the kind of their answers, which `MODEL_FILE` names.
MODELS: dict[str, type[Model]] = {
    "text": Generator,
    "label": Classifier,
    "tags": Tagger,
    "transcript": Recognizer,
    "detections": Detector,
}
# The kind of an export that names only its task.
_ANSWERS = {
    "translate": "text",
    "vae": "text",
    "language-model": "text",
    "classify": "label",
    "tag": "tags",
    "speech": "transcript",
    "wake-word": "detections",
}


def _checked(options: dict[str, Any], stored: dict[str, Any]) -> dict[str, Any]:
    """Checks search settings of the caller, which replace those of `MODEL_FILE`."""
    for name, value in options.items():
        if name not in stored["options"]:
            known = _printable(", ".join(sorted(stored["options"])), 1000)
            raise RuntimeInputError(f"{name}: unknown, expected one of {known}")
        _check_option(name, value, stored["options"][name])
        if name in _SEARCH:
            _check_option(name, value, _SEARCH[name])
    return dict(options)


def _check_option(name: str, value: Any, schema: dict[str, Any]) -> None:
    if not _matches(value, schema):
        raise RuntimeInputError(f"{name}: received {value!a:.80}, expected {_description(schema)}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Answers each line of stdin with a line, or serves answers over HTTP."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    here = Path(__file__).parent
    parser.add_argument("folder", nargs="?", type=Path, default=here, help="an ONNX export")
    parser.add_argument("--threads", type=int, help="threads of one operation")
    parser.add_argument("--port", type=int, help="serve POST / with {'instances': [...]}")
    parser.add_argument("--host", default="127.0.0.1", help="address to serve at")
    options = parser.parse_args(arguments)

    def run() -> None:
        model = load(options.folder, threads=options.threads)
        if options.port is not None:
            serve(model, options.host, options.port)
        answer_lines(model)

    return guarded("runtime", run)


def answer_lines(model: Model) -> None:
    """Answers each line of stdin with a line on stdout, both in UTF-8."""
    lines = sys.stdin.buffer.read().decode("utf-8").split("\n")
    if not lines[-1]:
        lines.pop()
    answers = model([model.read(line.removesuffix("\r")) for line in lines])
    sys.stdout.buffer.writelines(f"{answer}\n".encode() for answer in answers)
    sys.stdout.buffer.flush()


def guarded(name: str, run: Callable[[], None]) -> int:
    """Runs a command. Returns its exit code; an error is one line on stderr."""
    try:
        run()
    except BrokenPipeError:
        # Keeps Python from flushing stdout at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (RuntimeInputError, UnicodeDecodeError, ImportError, OSError, OverflowError) as error:
        # An ImportError names a package that is not installed.
        sys.stderr.write(f"{name}: {error}\n")
        return 2
    except MemoryError:
        sys.stderr.write(f"{name}: not enough memory\n")
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


def _refusal(headers: Message, host: str) -> str | None:
    """Returns why a request must not be answered, or None.

    Web browsers run pages of strangers, which can send requests to a server on the same computer.
    """
    asked = headers.get("Host", "")
    name = asked.rpartition(":")[0] if re.search(r":\d+$", asked) else asked
    if host in _LOCAL and name.strip("[]") not in _LOCAL:
        # A page can let its own name point to this computer.
        return "unknown name in the header Host"
    origin = headers.get("Origin")
    site = headers.get("Sec-Fetch-Site", "none")
    if site not in ("none", "same-origin") or (origin and origin.partition("://")[2] != asked):
        return "request of another site"
    # A page can send these without asking the server first.
    if "Content-Type" in headers and headers.get_content_type() in _SENT_BY_PAGES:
        return "expected the Content-Type application/json"
    return None


def serve(model: Model, host: str, port: int) -> None:
    """Answers `{"instances": [text, ...]}` with `{"predictions": [{"text": ...}, ...]}`.

    A client that is slow to send does not keep the others waiting, but answers are computed one
    after the other, which bounds the memory.
    """
    lock = threading.Lock()
    limit = _MAX_SOUND_REQUEST_BYTES if isinstance(model, SoundModel) else _MAX_REQUEST_BYTES

    class Handler(http.server.BaseHTTPRequestHandler):
        timeout = 30

        def do_POST(self) -> None:
            if error := _refusal(self.headers, host):
                # The body is not read, so the connection cannot be used again.
                self.close_connection = True
                self._answer(403, {"error": error})
                return
            try:
                length = self.headers.get("Content-Length", "")
                if not length.isdecimal() or not 0 < int(length) <= limit:
                    raise ValueError(f"expected a Content-Length of at most {limit:,} bytes")
                request = json.loads(self.rfile.read(int(length)))
                instances = request.get("instances") if isinstance(request, dict) else None
                if not isinstance(instances, list) or len(instances) > _MAX_INSTANCES:
                    raise ValueError(f"instances: expected a list of at most {_MAX_INSTANCES:,}")
                inputs = [model.parse(instance) for instance in instances]
            except (ValueError, TypeError, OverflowError, RecursionError, MemoryError) as error:
                self._answer(400, {"error": str(error)[:200]})
                return
            try:
                with lock:
                    rows = model.run(inputs)
            except Exception as error:  # an answer, whatever happened
                self._answer(500, {"error": str(error)[:200]})
                return
            best = [row[0]._asdict() if row else {"text": ""} for row in rows]
            self._answer(200, {"predictions": best})

        def do_GET(self) -> None:
            self._answer(200, {"status": "ok"})

        def _answer(self, code: int, content: dict[str, Any]) -> None:
            body = json.dumps(content, ensure_ascii=False).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    with http.server.ThreadingHTTPServer((host, port), Handler) as server:
        sys.stderr.write(f"http://{host}:{server.server_port}\n")
        sys.stderr.flush()
        server.serve_forever()


if __name__ == "__main__":
    sys.exit(main())
