"""What the tokens of a new vocabulary are made of in an old one."""

from collections.abc import Iterator, Sequence

from .special_ids import EOS_ID
from .tokenizer import Tokenizer

_SPACE = "\u2581"
# Private characters, which hardly any vocabulary has.
_PRIVATE = range(0xF0000, 0xFFFFE)


def pieces_in(old: Tokenizer, new: Tokenizer) -> list[list[int]]:
    """The tokens of an old vocabulary that each token of a new one goes back to.

    Args:
        old, new: Two tokenizers.

    Returns:
        A list for each id of `new`. One id of `old` where both have the same piece (the
        special ids and bytes among them); else what `old` cuts the piece into, inside
        a word if the piece is from inside one; none where that is nothing but
        spaces and bytes.

    Example:

    >>> old = Tokenizer.train(["low lower lowest"] * 9, size=280)
    >>> new = Tokenizer.train(["slow slower"] * 9, size=280)
    >>> found = pieces_in(old, new)
    >>> found[:4], len(found) == new.vocabulary_size
    ([[0], [1], [2], [3]], True)
    """
    ids = {piece.text: id for id, piece in enumerate(old.pieces)}
    found: list[list[int]] = []
    unknown: list[int] = []
    for id, piece in enumerate(new.pieces):
        if id <= EOS_ID:
            found.append([id])
        elif piece.text in ids and piece.is_text == old.pieces[ids[piece.text]].is_text:
            found.append([ids[piece.text]])
        else:
            found.append([])
            if piece.is_text:
                unknown.append(id)
    texts = [new.pieces[id].text for id in unknown]
    for id, cut in zip(unknown, _cut(old, texts), strict=True):
        says_something = [old.pieces[token] for token in cut]
        found[id] = [
            token
            for token, piece in zip(cut, says_something, strict=True)
            if piece.is_text and piece.text != _SPACE
        ]
    return found


def _cut(tokenizer: Tokenizer, texts: Sequence[str]) -> Iterator[list[int]]:
    """The tokens of pieces; those from inside a word are cut behind another character."""
    known = {character for piece in tokenizer.pieces for character in piece.text}
    stranger = next(chr(code) for code in _PRIVATE if chr(code) not in known)
    # Spelled in bytes, which no piece goes across.
    before = len(tokenizer.encode([stranger])[0])
    starts = [text.startswith(_SPACE) for text in texts]
    lines = [
        text.replace(_SPACE, " ").strip() if start else stranger + text.replace(_SPACE, " ")
        for text, start in zip(texts, starts, strict=True)
    ]
    for tokens, start in zip(tokenizer.encode(lines), starts, strict=True):
        yield tokens if start else tokens[before:]
