"""Imports vocabularies: a SentencePiece model, or a tokenizer.json of Hugging Face."""

from __future__ import annotations

import base64
import contextlib
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .errors import InputError
from .normalization import SPACE_MARK
from .stored_model import (
    BYTE,
    CONTROL,
    MAX_MODEL_BYTES,
    NORMAL,
    SPECIAL_PIECES,
    UNKNOWN,
    USER_DEFINED,
    ModelParts,
    StoredPiece,
    read_model,
)
from .tokenizer import Tokenizer

# Lines of the corpus on which a converted tokenizer.json is compared with the original.
_COMPARED_LINES = 1_000
# Common names of the four special tokens.
_SPECIAL_NAMES = frozenset(
    "<pad> [PAD] <|pad|> <unk> [UNK] <|unk|> <s> [CLS] [BOS] <bos> <|startoftext|> "
    "</s> [SEP] [EOS] <eos> <|endoftext|>".split()
)


# What a part of another type or value than expected leads to.
_DAMAGE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def import_tokenizer(path: str | os.PathLike[str], lines: Iterable[str] = ()) -> Tokenizer:
    """Imports a SentencePiece model, or a `tokenizer.json` of Hugging Face.

    The ids are reordered: 0 pad, 1 unknown, 2 begin, 3 end, then the other pieces in their order.
    Missing special tokens are added. The normalization of the file is kept.

    The model of a `tokenizer.json` must be `Unigram`, or `BPE` with spaces marked by U+2581 (as in
    Llama). Stock TensorFlow Serving cannot run byte-level BPE (as in GPT-2) and WordPiece. The
    converted model is compared on `lines` with the original, using the `tokenizers` package. Raises
    InputError if the file cannot be read, is not supported, or if a line is encoded differently.

    Example:

    >>> import pathlib, tempfile
    >>> model = Tokenizer.train(["a dog", "a cat"], kind="char").to_bytes()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "spm.model"
    ...     _ = path.write_bytes(model)
    ...     tokenizer = import_tokenizer(path)
    >>> tokenizer.decode(tokenizer.encode(["a cat"]))
    ['a cat']
    """
    if not os.path.isfile(path):
        raise InputError(f"{path}: not a file")
    try:
        with open(path, "rb") as stream:
            content = stream.read(MAX_MODEL_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: {(error.strerror or str(error)).lower()}") from None
    if len(content) > MAX_MODEL_BYTES:
        raise InputError(f"{path}: more than {MAX_MODEL_BYTES:,} bytes, no vocabulary")
    try:
        if content.lstrip()[:1] == b"{":
            tokenizer = Tokenizer.from_bytes(_convert_json(content))
            _compare(tokenizer, content, lines)
            return tokenizer
        model, special_ids = read_model(content)
        others = [piece for id, piece in enumerate(model.pieces) if id not in special_ids]
        return Tokenizer.from_bytes(model._replace(pieces=_with_special_pieces(others)).build())
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _with_special_pieces(others: list[StoredPiece]) -> list[StoredPiece]:
    names = {piece.text for piece in SPECIAL_PIECES}
    for piece in others:
        if piece.text in names:
            raise InputError(f"{piece.text!r} is not the special token of that name")
        if piece.type == UNKNOWN:
            raise InputError(f"two pieces stand for what is unknown: one of them is {piece.text!r}")
    return [*SPECIAL_PIECES, *others]


def _convert_json(content: bytes) -> bytes:
    """Converts a tokenizer.json to a SentencePiece model."""
    try:
        return _convert(json.loads(content))
    except InputError:
        raise
    except _DAMAGE as error:
        raise InputError(
            f"not a tokenizer.json of Hugging Face ({type(error).__name__}: {error})"
        ) from None


def _convert(stored: Mapping[str, Any]) -> bytes:
    model = stored["model"]
    kind = model["type"] if "type" in model else ("BPE" if "merges" in model else "Unigram")
    if kind == "Unigram":
        scored = [(str(text), float(score)) for text, score in model["vocab"]]
        unknown = model.get("unk_id")
    elif kind == "BPE":
        scored = list(_bpe_scores(model))
        texts = [text for text, _ in scored]
        unknown = texts.index(model["unk_token"]) if model.get("unk_token") in texts else None
    else:
        raise InputError(
            f"its model is {kind}: expected Unigram, or BPE with spaces marked by U+2581"
        )
    steps = _Steps(stored)
    added = {token["content"]: bool(token["special"]) for token in stored["added_tokens"]}
    byte_fallback = bool(model.get("byte_fallback"))
    pieces = [
        StoredPiece(text, score, _type(text, added, byte_fallback))
        for id, (text, score) in enumerate(scored)
        if id != unknown and not (text in _SPECIAL_NAMES and added.get(text, True))
    ]
    known = {text for text, _ in scored} | _SPECIAL_NAMES
    pieces += [
        StoredPiece(text, 0.0, CONTROL if is_special else USER_DEFINED)
        for text, is_special in added.items()
        if text not in known
    ]
    parts = ModelParts(
        _with_special_pieces(pieces),
        "unigram" if kind == "Unigram" else "bpe",
        "tokenizer.json",
        prefix=steps.prefix,
        keep_spaces=not steps.collapses,
        charsmap=steps.charsmap,
        byte_fallback=byte_fallback,
    )
    return parts.build()


def _bpe_scores(model: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    """Yields (piece, score) in the order of the ids. The score is the negated merge rank."""
    ranks: dict[str, int] = {}
    for rank, merge in enumerate(model["merges"]):
        left, right = merge.split(" ", 1) if isinstance(merge, str) else merge
        ranks.setdefault(left + right, rank)
    for text in sorted(model["vocab"], key=model["vocab"].__getitem__):
        yield text, float(-ranks[text] if text in ranks else -len(ranks) - 1)


def _type(text: str, added: Mapping[str, bool], byte_fallback: bool) -> int:
    if byte_fallback and len(text) == 6 and text.startswith("<0x") and text.endswith(">"):
        return BYTE
    if text in added:
        return CONTROL if added[text] else USER_DEFINED
    return NORMAL


class _Steps:
    """The normalization steps of a tokenizer.json."""

    def __init__(self, stored: Mapping[str, Any]) -> None:
        self.charsmap = b""
        self.prefix = False
        self.collapses = False
        for step in (*_flatten(stored.get("normalizer")), *_flatten(stored.get("pre_tokenizer"))):
            kind = step["type"]
            if kind == "Precompiled":
                self.charsmap = base64.b64decode(step["precompiled_charsmap"] or "")
            elif kind == "Metaspace" and step.get("replacement") == SPACE_MARK:
                scheme = step.get("prepend_scheme")
                self.prefix = scheme in ("always", "first") or bool(step.get("add_prefix_space"))
            elif kind == "Prepend" and step.get("prepend") == SPACE_MARK:
                self.prefix = True
            elif kind == "WhitespaceSplit" or (
                kind == "Replace" and step["pattern"] == {"Regex": " {2,}"}
            ):
                self.collapses = True
            elif kind == "Strip" or (kind == "Replace" and step["pattern"] == {"String": " "}):
                pass
            elif kind == "ByteLevel":
                raise InputError(
                    "byte-level BPE, as in GPT-2, splits text by a pattern that a stock model "
                    "server does not support: give a SentencePiece model, or leave "
                    "tokenizer.model out"
                )
            else:
                raise InputError(f"its step {kind!r} is not supported")


def _flatten(step: Any) -> Iterator[Mapping[str, Any]]:
    if step is None:
        return
    if step["type"] == "Sequence":
        for inner in step.get("normalizers") or step.get("pretokenizers") or ():
            yield from _flatten(inner)
    else:
        yield step


def _compare(tokenizer: Tokenizer, content: bytes, lines: Iterable[str]) -> None:
    try:
        from tokenizers import Tokenizer as Original
    except ImportError:
        raise InputError(
            "to read a tokenizer.json, install the package tokenizers: python -m pip install "
            "'keras-seq[tokenizers]'"
        ) from None
    # These do not change how text is split, and the library obeys them: padding to 10**15 tokens
    # aborts the process.
    stored = json.loads(content) | {"truncation": None, "padding": None, "post_processor": None}
    with _errors_of_library():
        original = Original.from_buffer(json.dumps(stored).encode())
    for line in itertools.islice(lines, _COMPARED_LINES):
        line = " ".join(line.split())
        # A vocabulary that lacks its own unknown token is only noticed here.
        with _errors_of_library():
            expected = original.encode(line, add_special_tokens=False).tokens
        ours = [tokenizer.pieces[id].text for id in tokenizer.encode([line])[0]]
        if _SPECIAL_NAMES.isdisjoint(expected) and ours != expected:
            raise InputError(
                f"it splits {line[:60]!r} into {' '.join(expected)[:80]}, and its SentencePiece "
                f"form into {' '.join(ours)[:80]}: it cannot be imported"
            )


@contextlib.contextmanager
def _errors_of_library() -> Iterator[None]:
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        # A panic of Rust is no Exception.
        raise _not_a_tokenizer(error) from None


def _not_a_tokenizer(error: BaseException) -> InputError:
    return InputError(f"not a tokenizer.json: {' '.join(str(error).split())[:200]}")
