"""SentencePiece models from files that need not be trusted."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple

from .errors import InputError
from .protobuf import field, read_fields
from .special_ids import BOS_ID, EOS_ID, PAD_ID, UNK_ID

if TYPE_CHECKING:
    import sentencepiece

# Bounds for models that come from elsewhere. Ours have pieces of at most 64
# bytes; a piece of 500 kB crashes the SentencePiece that TensorFlow embeds.
MAX_MODEL_BYTES = 64 << 20
MAX_VOCABULARY = 1_000_000
_MAX_PIECE_BYTES = 1024
# Field numbers of sentencepiece_model.proto, with what counts when a field is absent.
_PIECES, _TRAINER_SPEC, _NORMALIZER_SPEC = 1, 2, 3
_NAME_FIELD, _TABLE_FIELD, _PREFIX_FIELD, _COLLAPSE_FIELD = 1, 2, 3, 4
# A table of SentencePiece's own compiler with one rule: the noncharacters U+FDD3 U+FDD4 become
# U+FDD3. A table without a rule, or with one that changes nothing, cannot be compiled.
_NO_RULES = (
    "eNoV0lWQkAUUBtB/FpiRVLpRpLsE6VJg6Q5hkQYJQZDuRjp26Vq6FBCUJaRbQRdQWFpCuhvJs3fm3Pmevpd7g7hB"
    "EGyOE9yPDgmiQkOC8Eg5Rg4LCSLiBbEzNL71AQlJQGIS8SFJSMpHJCcZKUlBalKRljSkJx0ZycDHZCIzn5CFT8lG"
    "VnKQnVzkJA+5yUdeCpCfQhSkCIUpymd8TjFKUJxSlKQMpSlHWSpQni+oSCW+pAqVqUoo1alGTWpQm1rUpQ71qUdD"
    "GtCYRnxFE5rRlOaE0YKvaUVL2tCadrSlA+3pyDd0phPf0oVudKU73/E9PehFT/rQm370ZQD9GcRAhjCYYbFHZgTD"
    "GcVIxjCasfzAeMYxkQlMZhJTmUI405hOBDOZwWxmMZc5zGceC1nAIiJZwmKWsZQVLGcVK1nDan7iR9axlp9Zz0Y2"
    "8Cu/EMUmtsS+ONvYynZ+Yyc72M0u9rKH/ezjIAc4zCH+4HeOcoS/+JNjRHOC4/zD35ziJKeJ4SxnOM85LnKBS/zL"
    "FS7zH1e5zjVucoPb3OIud7jPPR7ygMc84ilPeM4zXvKCV/zPG17zjrexPVHhwXu8MIpM"
)
_SPECIAL_FIELDS = {"pad": 43, "unk": 40, "bos": 41, "eos": 42}
_KIND_FIELD = 3
Engine = Literal["unigram", "bpe", "word", "char"]
_KINDS: dict[int, Engine] = {
    1: "unigram",
    2: "bpe",
    3: "word",
    4: "char",
}
_SPECIAL_DEFAULTS = {"pad": -1, "unk": 0, "bos": 1, "eos": 2}


def load(model: bytes) -> sentencepiece.SentencePieceProcessor:
    """Parse and check a stored model.

    Args:
        model: The bytes of a SentencePiece model file.

    Returns:
        A processor whose special ids are 0 to 3 and which encodes and decodes.

    Raises:
        InputError: If the bytes are no whole model, or one that is not for us.
    """
    if not model:
        raise InputError("the tokenizer model is empty: restore the file or train again")
    if len(model) > MAX_MODEL_BYTES:
        raise InputError(
            f"the tokenizer model has {len(model):,} bytes, expected at most {MAX_MODEL_BYTES:,}"
        )
    # Loaded where it is needed: settings and `--help` do without it.
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
    """How the engine of a model that `load` took cuts text."""
    kind = _settings(model, _TRAINER_SPEC).get(_KIND_FIELD, 1)
    return _KINDS[kind if isinstance(kind, int) and kind in _KINDS else 1]


def normalizer_name(model: bytes) -> str:
    """The name of the normalization that a model was trained with."""
    name = _settings(model, _NORMALIZER_SPEC).get(_NAME_FIELD, b"")
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else ""


def with_normalizer_name(model: bytes, name: str) -> bytes:
    """A model with another name of its normalization."""
    return _with_normalizer(model, _NAME_FIELD, name)


def without_prefix(model: bytes) -> bytes | None:
    """A model that puts no space before a line; None if its spaces need no such care.

    A model that keeps spaces and puts one before each line has to take off exactly one when
    it decodes. The SentencePiece in tensorflow-text takes off all of them.
    """
    settings = _settings(model, _NORMALIZER_SPEC)
    if settings.get(_PREFIX_FIELD, 1) and not settings.get(_COLLAPSE_FIELD, 1):
        return _with_normalizer(model, _PREFIX_FIELD, False)
    return None


def without_log_line(model: bytes) -> bytes:
    """A model whose normalizer has a table, which changes nothing that is in a text.

    The SentencePiece in tensorflow-text logs a line for each model without a table.
    """
    if _settings(model, _NORMALIZER_SPEC).get(_TABLE_FIELD):
        return model
    return _with_normalizer(model, _TABLE_FIELD, zlib.decompress(base64.b64decode(_NO_RULES)))


def _with_normalizer(model: bytes, number: int, value: str | bool | bytes) -> bytes:
    changed = b""
    for section, content in read_fields(model):
        if section == _NORMALIZER_SPEC and isinstance(content, bytes):
            # None of the fields has a fixed width, which `read_fields` would not tell from text.
            kept = [item for item in read_fields(content) if item[0] != number]
            content = field(number, value) + b"".join(field(*item) for item in kept)
        changed += field(section, content)
    return changed


class StoredPiece(NamedTuple):
    """A piece as the file has it.

    Attributes:
        text: Characters, with U+2581 for a space.
        score: Logarithm of its probability, or minus its place in the order of merges.
        type: One of the constants below.
    """

    text: str
    score: float
    type: int


NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)


def stored_pieces(model: bytes) -> list[StoredPiece]:
    """The pieces of a model in the order of their ids."""
    pieces = []
    for number, value in read_fields(model):
        if number == _PIECES and isinstance(value, bytes):
            fields = dict(read_fields(value))
            text, score, kind = fields.get(1, b""), fields.get(2, b"\0" * 4), fields.get(3, NORMAL)
            assert isinstance(text, bytes) and isinstance(score, bytes) and isinstance(kind, int)
            pieces.append(
                StoredPiece(text.decode("utf-8", "replace"), struct.unpack("<f", score)[0], kind)
            )
    return pieces


SPECIAL_PIECES = (
    StoredPiece("<pad>", 0.0, CONTROL),
    StoredPiece("<unk>", 0.0, UNKNOWN),
    StoredPiece("<s>", 0.0, CONTROL),
    StoredPiece("</s>", 0.0, CONTROL),
)
BYTE_PIECES = tuple(StoredPiece(f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256))
# What the settings of a model say of its special ids, which other readers of the file believe.
SPECIAL_SETTINGS: dict[int, int | str] = {
    **{40: UNK_ID, 41: BOS_ID, 42: EOS_ID, 43: PAD_ID},
    **{45: "<unk>", 46: "<s>", 47: "</s>", 48: "<pad>"},
}


def build_model(
    pieces: Iterable[StoredPiece],
    engine: Engine,
    name: str,
    *,
    prefix: bool,
    keep_spaces: bool,
    mark_spaces: bool = True,
    charsmap: bytes = b"",
    byte_fallback: bool = True,
) -> bytes:
    """A SentencePiece model of given pieces.

    Args:
        pieces: All pieces, the special ones first.
        engine: How text is cut into them.
        name: Of the normalization.
        prefix: Whether a space is put before each line, so that its first word is cut as others.
        keep_spaces: Whether spaces at the ends of a line and runs of spaces are kept.
        mark_spaces: Whether a space is U+2581 in the pieces.
        charsmap: SentencePiece's compiled map of characters; empty for none.
        byte_fallback: Whether unknown characters become bytes.

    Returns:
        The bytes of the model file.
    """
    model = b"".join(
        field(_PIECES, field(1, piece.text) + field(2, float(piece.score)) + field(3, piece.type))
        for piece in pieces
    )
    kinds = {kind: number for number, kind in _KINDS.items()}
    trainer = field(_KIND_FIELD, kinds[engine]) + field(35, byte_fallback)
    trainer += b"".join(field(number, value) for number, value in SPECIAL_SETTINGS.items())
    normalizer = field(_NAME_FIELD, name) + (field(_TABLE_FIELD, charsmap) if charsmap else b"")
    normalizer += field(_PREFIX_FIELD, prefix) + field(_COLLAPSE_FIELD, not keep_spaces)
    normalizer += field(5, mark_spaces)
    return model + field(_TRAINER_SPEC, trainer) + field(_NORMALIZER_SPEC, normalizer)


class ForeignModel(NamedTuple):
    """A SentencePiece model whose special pieces may have any ids.

    Attributes:
        pieces: In the order of their ids.
        special_ids: Of pad, unknown, begin and end; -1 for those that it lacks.
        engine: How text is cut.
        normalizer: The name of the normalization.
        charsmap: The compiled map of characters.
        prefix: Whether a space is put before each line.
        keep_spaces: Whether extra spaces are kept.
        mark_spaces: Whether a space is U+2581 in the pieces.
        byte_fallback: Whether unknown characters become bytes.
        suffix_spaces: Whether the space belongs to the word before it.
    """

    pieces: list[StoredPiece]
    special_ids: tuple[int, ...]
    engine: Engine
    normalizer: str
    charsmap: bytes
    prefix: bool
    keep_spaces: bool
    mark_spaces: bool
    byte_fallback: bool
    suffix_spaces: bool


def read_model(model: bytes) -> ForeignModel:
    """Reads a SentencePiece model that another program made, which need not be trusted.

    Raises:
        InputError: If it is none.
    """
    # Loaded where it is needed: settings and `--help` do without it.
    import sentencepiece

    try:
        processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        _check_pieces(processor)
        trainer = _settings(model, _TRAINER_SPEC)
        normalizer = _settings(model, _NORMALIZER_SPEC)
        charsmap = normalizer.get(_TABLE_FIELD, b"")
        return ForeignModel(
            stored_pieces(model),
            (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id()),
            model_kind(model),
            normalizer_name(model),
            charsmap if isinstance(charsmap, bytes) else b"",
            bool(normalizer.get(_PREFIX_FIELD, 1)),
            not normalizer.get(_COLLAPSE_FIELD, 1),
            bool(normalizer.get(5, 1)),
            bool(trainer.get(35, 0)),
            bool(trainer.get(24, 0)),
        )
    except InputError:
        raise
    except Exception as error:
        raise InputError("not a SentencePiece model, nor a tokenizer.json") from error


def _settings(model: bytes, section: int) -> dict[int, int | bytes]:
    """The fields of one section of a model's settings."""
    found: dict[int, int | bytes] = {}
    for number, value in read_fields(model):
        if number == section and isinstance(value, bytes):
            found |= dict(read_fields(value))
    return found


def _check(processor: sentencepiece.SentencePieceProcessor) -> None:
    size = processor.vocab_size()
    if not EOS_ID < size <= MAX_VOCABULARY:
        raise InputError(
            f"the tokenizer model has {size:,} pieces, expected 5 to {MAX_VOCABULARY:,}"
        )
    found = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
    if found != (PAD_ID, UNK_ID, BOS_ID, EOS_ID):
        raise InputError(
            f"the tokenizer model has pad, unk, bos, eos = {found}, expected (0, 1, 2, 3)"
        )
    _check_pieces(processor)
    # What is broken deeper down, as in the tables of the normaliser, shows here.
    processor.decode(processor.encode(["a B 1 ½ é 漢 😀 \x00"]))


def _check_pieces(processor: sentencepiece.SentencePieceProcessor) -> None:
    size = processor.vocab_size()
    for index in range(size):
        if len(processor.id_to_piece(index).encode("utf-8", "replace")) > _MAX_PIECE_BYTES:
            raise InputError(
                f"piece {index} of the tokenizer model is longer than {_MAX_PIECE_BYTES} bytes"
            )
        if not math.isfinite(processor.get_score(index)):
            raise InputError(f"piece {index} of the tokenizer model has a score that is no number")


def _check_settings(model: bytes) -> None:
    """Check the special ids that the training settings inside the model name.

    SentencePiece itself goes by the pieces, but other readers of the file
    believe the settings, and an id of a million in them is an index out of
    bounds.
    """
    named = dict(_SPECIAL_DEFAULTS)
    settings = _settings(model, _TRAINER_SPEC)
    for name, number in _SPECIAL_FIELDS.items():
        value = settings.get(number, named[name])
        if isinstance(value, int):
            named[name] = value - (1 << 64) if value >> 63 else value
    if tuple(named.values()) != (PAD_ID, UNK_ID, BOS_ID, EOS_ID):
        raise InputError(
            f"the settings of the tokenizer model have pad, unk, bos, eos = "
            f"{tuple(named.values())}, expected (0, 1, 2, 3)"
        )
