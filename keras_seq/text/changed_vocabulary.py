"""Maps the tokens of a new vocabulary to the tokens of an old one."""

from collections.abc import Iterator, Sequence

from .normalization import SPACE_MARK
from .special_ids import EOS_ID
from .tokenizer import Tokenizer

# Private-use characters, which hardly any vocabulary contains.
_PRIVATE = range(0xF0000, 0xFFFFE)


def pieces_in(old: Tokenizer, new: Tokenizer) -> list[list[int]]:
    """Returns the tokens of an old vocabulary that make up each token of a new vocabulary.

    The result has a list of ids of `old` for each id of `new`. If both have the same piece, also a
    special token or byte, the list is its id. Otherwise, `old` encodes the piece without spaces and
    bytes, and inside a word if the piece does not begin a word.

    Example:

    >>> old = Tokenizer.train(["low lower lowest"] * 9, size=280)
    >>> new = Tokenizer.train(["slow slower"] * 9, size=280)
    >>> ids = pieces_in(old, new)
    >>> ids[:4], len(ids) == new.vocabulary_size
    ([[0], [1], [2], [3]], True)
    """
    ids = {piece.text: id for id, piece in enumerate(old.pieces)}
    result: list[list[int]] = []
    unknown: list[int] = []
    for id, piece in enumerate(new.pieces):
        if id <= EOS_ID:
            result.append([id])
        elif piece.text in ids and piece.is_text == old.pieces[ids[piece.text]].is_text:
            result.append([ids[piece.text]])
        else:
            result.append([])
            if piece.is_text:
                unknown.append(id)
    texts = [new.pieces[id].text for id in unknown]
    is_word_text = [piece.is_text and piece.text != SPACE_MARK for piece in old.pieces]
    for id, tokens in zip(unknown, _encode_pieces(old, texts), strict=True):
        result[id] = [token for token in tokens if is_word_text[token]]
    return result


def _encode_pieces(tokenizer: Tokenizer, texts: Sequence[str]) -> Iterator[list[int]]:
    """Encodes pieces. A dummy character precedes each piece that does not begin a word."""
    known = {character for piece in tokenizer.pieces for character in piece.text}
    dummy = next(chr(code) for code in _PRIVATE if chr(code) not in known)
    # The dummy is encoded as bytes. No piece mixes bytes and text, so skip the bytes' tokens.
    skip = len(tokenizer.encode([dummy])[0])
    starts = [text.startswith(SPACE_MARK) for text in texts]
    lines = [
        text.replace(SPACE_MARK, " ").strip() if start else dummy + text.replace(SPACE_MARK, " ")
        for text, start in zip(texts, starts, strict=True)
    ]
    for tokens, start in zip(tokenizer.encode(lines), starts, strict=True):
        yield tokens if start else tokens[skip:]
