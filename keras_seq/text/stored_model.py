"""SentencePiece models from files that need not be trusted."""

import math
from collections.abc import Iterator
from typing import Literal

import sentencepiece

from .errors import InputError

PAD_ID, UNK_ID, BOS_ID, EOS_ID = 0, 1, 2, 3

# Bounds for models that come from elsewhere. Ours have pieces of at most 64
# bytes; a piece of 500 kB crashes the SentencePiece that TensorFlow embeds.
_MAX_MODEL_BYTES = 64 << 20
MAX_VOCABULARY = 1_000_000
_MAX_PIECE_BYTES = 1024
# Field numbers of sentencepiece_model.proto, with what counts when a field is absent.
_TRAINER_SPEC = 2
_SPECIAL_FIELDS = {"pad": 43, "unk": 40, "bos": 41, "eos": 42}
_KIND_FIELD = 3
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
    if len(model) > _MAX_MODEL_BYTES:
        raise InputError(
            f"the tokenizer model has {len(model):,} bytes, expected at most {_MAX_MODEL_BYTES:,}"
        )
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


def model_kind(model: bytes) -> Literal["unigram", "bpe"]:
    """How a model that `load` took cuts text.

    Raises:
        InputError: A model of words or characters.
    """
    kind: int | bytes = 1
    for field, settings in _fields(model):
        if field == _TRAINER_SPEC and isinstance(settings, bytes):
            kind = dict(_fields(settings)).get(_KIND_FIELD, kind)
    if kind not in (1, 2):
        raise InputError("the tokenizer model is neither of unigram pieces nor of BPE merges")
    return "unigram" if kind == 1 else "bpe"


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
    for index in range(size):
        if len(processor.id_to_piece(index).encode("utf-8", "replace")) > _MAX_PIECE_BYTES:
            raise InputError(
                f"piece {index} of the tokenizer model is longer than {_MAX_PIECE_BYTES} bytes"
            )
        if not math.isfinite(processor.get_score(index)):
            raise InputError(f"piece {index} of the tokenizer model has a score that is no number")
    # What is broken deeper down, as in the tables of the normaliser, shows here.
    processor.decode(processor.encode(["a B 1 ½ é 漢 😀 \x00"]))


def _check_settings(model: bytes) -> None:
    """Check the special ids that the training settings inside the model name.

    SentencePiece itself goes by the pieces, but other readers of the file
    believe the settings, and an id of a million in them is an index out of
    bounds. The Python classes for the file need one exact protobuf, hence by hand.
    """
    named = dict(_SPECIAL_DEFAULTS)
    for field, settings in _fields(model):
        if field == _TRAINER_SPEC and isinstance(settings, bytes):
            for number, value in _fields(settings):
                for name, special in _SPECIAL_FIELDS.items():
                    if number == special and isinstance(value, int):
                        named[name] = value - (1 << 64) if value >> 63 else value
    if tuple(named.values()) != (PAD_ID, UNK_ID, BOS_ID, EOS_ID):
        raise InputError(
            f"the settings of the tokenizer model have pad, unk, bos, eos = "
            f"{tuple(named.values())}, expected (0, 1, 2, 3)"
        )


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield (field number, value) of a message in protobuf's wire format."""
    position = 0

    def varint() -> int:
        nonlocal position
        value = 0
        for shift in range(0, 70, 7):
            byte = message[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise ValueError("a number of more than 64 bits")

    while position < len(message):
        tag = varint()
        wire_type = tag & 7
        if wire_type == 0:
            yield tag >> 3, varint()
            continue
        if wire_type not in (1, 2, 5):
            raise ValueError(f"wire type {wire_type}")
        length = {1: 8, 5: 4}.get(wire_type) or varint()
        if wire_type == 2 and position + length > len(message):
            raise ValueError("a field that is longer than the message")
        yield tag >> 3, message[position : position + length]
        position += length
