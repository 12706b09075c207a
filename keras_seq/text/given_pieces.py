"""Builds the SentencePiece model of a vocabulary with given pieces."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from .errors import InputError
from .learning import check_symbols
from .normalization import SPACE_MARK, TextRules
from .stored_model import BYTE_PIECES, NORMAL, SPECIAL_PIECES, USER_DEFINED, ModelParts, StoredPiece


def model_of_pieces(
    pieces: Iterable[tuple[str, float]],
    rules: TextRules,
    *,
    size: int,
    symbols: Sequence[str] = (),
    keep_spaces: bool = False,
) -> bytes:
    """Builds a SentencePiece model whose pieces and scores are given; returns it as bytes.

    Text is cut into the pieces with the largest sum of scores, as by a unigram language model.
    Characters that are in no piece become bytes, so nothing is lost.

    Args:
        pieces: Pieces and their scores, which should be log-probabilities. A piece that begins a
            word begins with a space.
        rules: The normalization of text, of kind "unigram".
        size: The largest number of ids: 4 special ids, 256 bytes, the symbols, a space, the pieces.
        symbols: Strings that are always one token.
        keep_spaces: Boolean, whether to keep leading, trailing and repeated spaces.

    Raises:
        InputError: If there are too many pieces, or a piece is empty, occurs twice, has a space
            elsewhere or has a score that is not a number.

    Example:

    >>> from keras_seq.text import Tokenizer
    >>> rules = TextRules("unigram", "nfc")
    >>> model = model_of_pieces([(" ka", -1.0), ("ta", -1.0)], rules, size=300)
    >>> tokenizer = Tokenizer.from_bytes(model)
    >>> [tokenizer.pieces[i].text for i in tokenizer.encode(["kata"])[0]]
    ['\u2581ka', 'ta']
    """
    check_symbols(symbols)
    marked = [rules.apply(symbol) for symbol in symbols]
    scores: dict[str, float] = {}
    for piece, score in pieces:
        stored = piece.replace(" ", SPACE_MARK)
        if not piece or SPACE_MARK in stored[1:]:
            raise InputError(f"the piece {piece!r}: expected text without spaces after the first")
        if stored in scores or stored in marked:
            raise InputError(f"the piece {piece!r}: received twice")
        if not math.isfinite(score):
            raise InputError(f"the piece {piece!r}: received the score {score}, expected a number")
        scores[stored] = float(score)
    # A word that begins with no piece begins with the space.
    scores.setdefault(SPACE_MARK, min(scores.values(), default=0.0) - 1.0)
    reserved = [*SPECIAL_PIECES, *BYTE_PIECES, *(StoredPiece(s, 0.0, USER_DEFINED) for s in marked)]
    if len(reserved) + len(scores) > size:
        raise InputError(
            f"{len(scores):,} pieces and {len(reserved):,} other entries, expected at most "
            f"{size:,} together (tokenizer.size)"
        )
    stored_pieces = [*reserved, *(StoredPiece(*item, NORMAL) for item in scores.items())]
    return ModelParts(stored_pieces, "unigram", rules.name, True, keep_spaces).build()
