"""Reads, validates and builds SentencePiece models."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from .errors import InputError
from .protobuf import field, read_fields
from .special_ids import BOS_ID, EOS_ID, PAD_ID, UNK_ID

if TYPE_CHECKING:
    import sentencepiece

# Limits for untrusted models. A piece of 500 kB crashes the SentencePiece in TensorFlow; pieces of
# models trained here have at most 64 bytes.
MAX_MODEL_BYTES = 64 << 20
MAX_VOCABULARY = 1_000_000
_MAX_PIECE_BYTES = 1024
# Field numbers of sentencepiece_model.proto.
_PIECES, _TRAINER_SPEC, _NORMALIZER_SPEC = 1, 2, 3
_NAME_FIELD, _TABLE_FIELD, _PREFIX_FIELD, _COLLAPSE_FIELD = 1, 2, 3, 4
# A normalization table compiled by SentencePiece with one rule: the noncharacters U+FDD3 U+FDD4
# become U+FDD3. SentencePiece does not compile a table without a rule that changes something.
_NO_RULES = (
    "eNoV0lWQkAUUBtB/FpiRVLpRpLsE6VJg6Q5hkQYJQZDuRjp26Vq6FBCUJaRbQRdQWFpCuhvJs3fm3Pmevpd7g7hB"
    "EGyOE9yPDgmiQkOC8Eg5Rg4LCSLiBbEzNL71AQlJQGIS8SFJSMpHJCcZKUlBalKRljSkJx0ZycDHZCIzn5CFT8lG"
    "VnKQnVzkJA+5yUdeCpCfQhSkCIUpymd8TjFKUJxSlKQMpSlHWSpQni+oSCW+pAqVqUoo1alGTWpQm1rUpQ71qUdD"
    "GtCYRnxFE5rRlOaE0YKvaUVL2tCadrSlA+3pyDd0phPf0oVudKU73/E9PehFT/rQm370ZQD9GcRAhjCYYbFHZgTD"
    "GcVIxjCasfzAeMYxkQlMZhJTmUI405hOBDOZwWxmMZc5zGceC1nAIiJZwmKWsZQVLGcVK1nDan7iR9axlp9Zz0Y2"
    "8Cu/EMUmtsS+ONvYynZ+Yyc72M0u9rKH/ezjIAc4zCH+4HeOcoS/+JNjRHOC4/zD35ziJKeJ4SxnOM85LnKBS/zL"
    "FS7zH1e5zjVucoPb3OIud7jPPR7ygMc84ilPeM4zXvKCV/zPG17zjrexPVHhwXu8MIpM"
)
# Fields and defaults of the ids of pad, unk, bos and eos.
_SPECIAL_FIELDS = {43: -1, 40: 0, 41: 1, 42: 2}
_KIND_FIELD = 3
Engine = Literal["unigram", "bpe", "word", "char"]
_KINDS: dict[int, Engine] = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}


def load(model: bytes) -> sentencepiece.SentencePieceProcessor:
    """Parses an untrusted SentencePiece model whose special ids are 0 to 3; raises InputError."""
    if not model:
        raise InputError("the tokenizer model is empty: restore the file or train again")
    if len(model) > MAX_MODEL_BYTES:
        raise InputError(
            f"the tokenizer model has {len(model):,} bytes, expected at most {MAX_MODEL_BYTES:,}"
        )
    # Imported lazily: settings and `--help` do not need it.
    import sentencepiece

    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        _check(processor)
        _check_settings(model)
    except InputError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"the tokenizer model is damaged or not a SentencePiece model ({reason}): "
            "restore the file or train again"
        ) from None
    return processor


def model_kind(model: bytes) -> Engine:
    """Returns the segmentation algorithm of a model."""
    return _KINDS.get(_settings(model, _TRAINER_SPEC).get(_KIND_FIELD, 1), "unigram")


def normalizer_name(model: bytes) -> str:
    """Returns the name of the normalizer of a model."""
    name = _settings(model, _NORMALIZER_SPEC).get(_NAME_FIELD, b"")
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else ""


def with_normalizer_name(model: bytes, name: str) -> bytes:
    """Returns a copy of a model with its normalizer renamed."""
    return _with_normalizer(model, _NAME_FIELD, name)


def without_prefix(model: bytes) -> bytes | None:
    """Returns a model that adds no space before a line; None if the model needs no change.

    A model that keeps spaces and adds one before each line must remove exactly one when it decodes.
    The SentencePiece in tensorflow-text removes all leading spaces.
    """
    settings = _settings(model, _NORMALIZER_SPEC)
    if settings.get(_PREFIX_FIELD, 1) and not settings.get(_COLLAPSE_FIELD, 1):
        return _with_normalizer(model, _PREFIX_FIELD, False)
    return None


def without_log_line(model: bytes) -> bytes:
    """Returns a model with a normalization table that changes no text.

    The SentencePiece in tensorflow-text logs a line for each model without a table.
    """
    if _settings(model, _NORMALIZER_SPEC).get(_TABLE_FIELD):
        return model
    return _with_normalizer(model, _TABLE_FIELD, zlib.decompress(base64.b64decode(_NO_RULES)))


def _with_normalizer(model: bytes, number: int, value: str | bool | bytes) -> bytes:
    changed = b""
    for section, content in read_fields(model):
        if section == _NORMALIZER_SPEC and isinstance(content, bytes):
            # `field` would encode numbers of a fixed width as varints, but this message has none.
            others = [item for item in read_fields(content) if item[0] != number]
            content = field(number, value) + b"".join(field(*item) for item in others)
        changed += field(section, content)
    return changed


class StoredPiece(NamedTuple):
    """A piece in a model file, with U+2581 for a space.

    The score is the log-probability, for BPE the negated rank of the merge. The type is one of the
    constants below.
    """

    text: str
    score: float
    type: int


NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)


def stored_pieces(model: bytes) -> list[StoredPiece]:
    """Returns the pieces of a model in the order of their ids."""
    pieces = []
    for number, value in read_fields(model):
        if number == _PIECES and isinstance(value, bytes):
            fields = dict(read_fields(value))
            # The score is a float, which `read_fields` returns as its 32 bits.
            (score,) = struct.unpack("<f", struct.pack("<I", fields.get(2, 0)))
            text = fields.get(1, b"").decode("utf-8", "replace")
            pieces.append(StoredPiece(text, score, fields.get(3, NORMAL)))
    return pieces


SPECIAL_PIECES = (
    StoredPiece("<pad>", 0.0, CONTROL),
    StoredPiece("<unk>", 0.0, UNKNOWN),
    StoredPiece("<s>", 0.0, CONTROL),
    StoredPiece("</s>", 0.0, CONTROL),
)
BYTE_PIECES = tuple(StoredPiece(f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256))
# Other programs read the special ids and pieces from these fields of the trainer settings.
SPECIAL_SETTINGS: dict[int, int | str] = {
    **{40: UNK_ID, 41: BOS_ID, 42: EOS_ID, 43: PAD_ID},
    **{45: "<unk>", 46: "<s>", 47: "</s>", 48: "<pad>"},
}


class ModelParts(NamedTuple):
    """The contents of a SentencePiece model.

    `normalizer` is the name of the normalizer, and `charsmap` its compiled table, empty for none.
    `prefix` adds a space before each line, `keep_spaces` keeps leading, trailing and repeated
    spaces, and `mark_spaces` writes U+2581 for a space.
    """

    pieces: list[StoredPiece]
    engine: Engine
    normalizer: str
    prefix: bool
    keep_spaces: bool
    mark_spaces: bool = True
    charsmap: bytes = b""
    byte_fallback: bool = True

    def build(self) -> bytes:
        """Serializes a model whose special pieces come first."""
        model = b"".join(
            field(_PIECES, field(1, text) + field(2, float(score)) + field(3, type))
            for text, score, type in self.pieces
        )
        kinds = {kind: number for number, kind in _KINDS.items()}
        trainer = field(_KIND_FIELD, kinds[self.engine]) + field(35, self.byte_fallback)
        trainer += b"".join(field(number, value) for number, value in SPECIAL_SETTINGS.items())
        normalizer = field(_NAME_FIELD, self.normalizer)
        if self.charsmap:
            normalizer += field(_TABLE_FIELD, self.charsmap)
        normalizer += field(_PREFIX_FIELD, self.prefix)
        normalizer += field(_COLLAPSE_FIELD, not self.keep_spaces) + field(5, self.mark_spaces)
        return model + field(_TRAINER_SPEC, trainer) + field(_NORMALIZER_SPEC, normalizer)


def read_model(model: bytes) -> tuple[ModelParts, tuple[int, ...]]:
    """Reads an untrusted SentencePiece model of another program; raises InputError.

    Returns its parts and the ids of pad, unknown, begin and end, -1 for missing ones.
    """
    # Imported lazily: settings and `--help` do not need it.
    import sentencepiece

    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        _check_pieces(processor)
        trainer = _settings(model, _TRAINER_SPEC)
        normalizer = _settings(model, _NORMALIZER_SPEC)
        if trainer.get(24, 0):
            raise InputError("its pieces have spaces at their ends, which is not supported")
        charsmap = normalizer.get(_TABLE_FIELD, b"")
        parts = ModelParts(
            stored_pieces(model),
            model_kind(model),
            normalizer_name(model),
            prefix=bool(normalizer.get(_PREFIX_FIELD, 1)),
            keep_spaces=not normalizer.get(_COLLAPSE_FIELD, 1),
            mark_spaces=bool(normalizer.get(5, 1)),
            charsmap=charsmap if isinstance(charsmap, bytes) else b"",
            byte_fallback=bool(trainer.get(35, 0)),
        )
        return parts, _special_ids(processor)
    except InputError:
        raise
    except Exception as error:
        raise InputError("not a SentencePiece model, nor a tokenizer.json") from error


def _settings(model: bytes, section: int) -> dict[int, Any]:
    """Returns the fields of one section of the settings of a model."""
    fields: dict[int, Any] = {}
    for number, value in read_fields(model):
        if number == section and isinstance(value, bytes):
            fields |= dict(read_fields(value))
    return fields


def _special_ids(processor: sentencepiece.SentencePieceProcessor) -> tuple[int, ...]:
    return processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id()


def _check(processor: sentencepiece.SentencePieceProcessor) -> None:
    size = processor.vocab_size()
    if not EOS_ID < size <= MAX_VOCABULARY:
        raise InputError(
            f"the tokenizer model has {size:,} pieces, expected 5 to {MAX_VOCABULARY:,}"
        )
    ids = _special_ids(processor)
    if ids != (PAD_ID, UNK_ID, BOS_ID, EOS_ID):
        raise InputError(
            f"the tokenizer model has pad, unk, bos, eos = {ids}, expected (0, 1, 2, 3)"
        )
    _check_pieces(processor)
    # Detects further damage, for example in the tables of the normalizer.
    processor.decode(processor.encode(["a B 1 ½ é 漢 😀 \x00"]))


def _check_pieces(processor: sentencepiece.SentencePieceProcessor) -> None:
    size = processor.vocab_size()
    for index in range(size):
        if len(processor.id_to_piece(index).encode("utf-8", "replace")) > _MAX_PIECE_BYTES:
            raise InputError(
                f"piece {index} of the tokenizer model is longer than {_MAX_PIECE_BYTES} bytes"
            )
        if not math.isfinite(processor.get_score(index)):
            raise InputError(f"piece {index} of the tokenizer model has a score that is not finite")


def _check_settings(model: bytes) -> None:
    """Checks the special ids in the trainer settings of the model.

    SentencePiece itself uses the types of the pieces, but other programs use the settings, where a
    wrong id may be out of bounds.
    """
    settings, ids = _settings(model, _TRAINER_SPEC), []
    for number, default in _SPECIAL_FIELDS.items():
        value = settings.get(number, default)
        if not isinstance(value, int):
            value = default
        ids.append(value - (1 << 64) if value >> 63 > 0 else value)
    if tuple(ids) != (PAD_ID, UNK_ID, BOS_ID, EOS_ID):
        raise InputError(
            "the settings of the tokenizer model have pad, unk, bos, eos = "
            f"{tuple(ids)}, expected (0, 1, 2, 3)"
        )
