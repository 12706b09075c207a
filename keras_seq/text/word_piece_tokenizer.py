"""Word-piece tokenizer of pretrained encoders, without Keras and TensorFlow."""

import functools
import itertools
import json
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NoReturn, Self

from .errors import InputError
from .feature_tokenizer import FeatureTokenizer, is_feature_tokenizer
from .learning import without_surrogates
from .normalization import SPACE_MARK
from .special_ids import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from .stored_model import MAX_VOCABULARY
from .tokenizer import Piece, Tokenizer

FORMAT = 1
# Maximum number of UTF-8 bytes of a word; longer words become the unknown token.
MAX_WORD_BYTES = 100
_MAX_PIECE_CHARACTERS = 1_000
_SUFFIX = "##"
# ASCII symbols are separate words, like punctuation.
_SYMBOLS = frozenset("$+<=>^`|~")
# Ranges of characters that are separate words.
IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)
# Default_Ignorable_Code_Point except format characters (Cf), which separate words: Hangul fillers,
# Khmer inherent vowels, and variation selectors.
_IGNORED = frozenset(
    (
        *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0),
        *range(0x180B, 0x1810),
        *range(0xFE00, 0xFE10),
        *range(0xE0100, 0xE01F0),
    )
)


class WordPieceTokenizer(Tokenizer):
    """Converts lines of text to word-piece ids, for encoders such as BERT.

    Text is split at white space, at punctuation and around ideographs. Each word is split greedily
    into the longest matching pieces from the left; a word without a match is one unknown token. The
    result equals that of the BERT and DistilBERT tokenizers in KerasHub, except that all Unicode
    white space separates words.

    The ids are reordered: 0 `[PAD]`, 1 `[UNK]`, 2 `[CLS]`, 3 `[SEP]`, then the other pieces in
    their order. `original_ids` maps each id to its index in `vocabulary`, the order of the
    pretrained model. Pieces that continue a word begin with `##`. `lowercase` applies NFKC and case
    folding, and `strip_accents` removes accents. Raises InputError if a piece occurs twice or is
    invalid, or a special piece is missing.

    Example:

    >>> pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "a", "dog", "run", "##s", "."]
    >>> tokenizer = WordPieceTokenizer(pieces, lowercase=True)
    >>> tokenizer.encode(["A dog runs."])
    [[4, 5, 6, 7, 8]]
    >>> tokenizer.decode(tokenizer.encode(["A dog runs."]))
    ['a dog runs .']

    Reference:
        Schuster and Nakajima, "Japanese and Korean Voice Search", 2012; Devlin et
        al., "BERT: Pre-training of Deep Bidirectional Transformers for Language
        Understanding", 2019, https://arxiv.org/abs/1810.04805
    """

    def __init__(
        self, vocabulary: Sequence[str], *, lowercase: bool = False, strip_accents: bool = False
    ) -> None:
        self.vocabulary = tuple(vocabulary)
        self.lowercase = lowercase
        self.strip_accents = strip_accents
        indices = {piece: index for index, piece in enumerate(self.vocabulary)}
        _check(self.vocabulary, indices)
        special = [indices[name] for name in _SPECIAL]
        self.original_ids = (*special, *(id for id in indices.values() if id not in special))
        ids = {self.vocabulary[index]: id for id, index in enumerate(self.original_ids)}
        self._ids = {piece: id for piece, id in ids.items() if id > EOS_ID}
        self._characters = _Characters(strip_accents)
        self._cached_ids = functools.lru_cache(1 << 16)(self._split)

    @classmethod
    def train(cls, *arguments: Any, **options: Any) -> NoReturn:
        """Raises TypeError: word pieces come with a pretrained model."""
        raise TypeError("word pieces come with a pretrained model; `Tokenizer.train` learns others")

    @classmethod
    def from_bytes(cls, model: bytes) -> Self:
        """Builds a tokenizer from untrusted output of `to_bytes`; raises InputError."""
        try:
            stored = json.loads(model)
        except (ValueError, RecursionError):
            raise InputError("not valid JSON") from None
        if not isinstance(stored, dict) or stored.get("format") != FORMAT:
            raise InputError("not word pieces of this version of keras-seq")
        pieces = stored.get("vocabulary")
        lowercase, strip_accents = stored.get("lowercase"), stored.get("strip_accents")
        if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
            raise InputError("vocabulary: expected a list of strings")
        if not isinstance(lowercase, bool) or not isinstance(strip_accents, bool):
            raise InputError("lowercase, strip_accents: expected true or false")
        return cls(pieces, lowercase=lowercase, strip_accents=strip_accents)

    def to_bytes(self) -> bytes:
        """Returns the tokenizer as JSON."""
        stored = {
            "format": FORMAT,
            "lowercase": self.lowercase,
            "strip_accents": self.strip_accents,
            "vocabulary": self.vocabulary,
        }
        return json.dumps(stored, ensure_ascii=False, indent=0).encode("utf-8", "surrogatepass")

    @property
    def kind(self) -> Any:
        return "wordpiece"

    @cached_property
    def pieces(self) -> list[Piece]:
        """The pieces in the order of their ids, with U+2581 before pieces that begin a word."""
        pieces = []
        for id, index in enumerate(self.original_ids):
            text = self.vocabulary[index]
            is_text = id > EOS_ID
            if is_text:
                text = text.removeprefix(_SUFFIX) if text.startswith(_SUFFIX) else SPACE_MARK + text
            pieces.append(Piece(text, -float(id), is_text))
        return pieces

    @property
    def vocabulary_size(self) -> int:
        """Number of ids, including the special ids."""
        return len(self.vocabulary)

    def offsets(self, lines: Sequence[str]) -> list[list[tuple[int, int]]]:
        """Returns the character span of each token; see `Tokenizer.offsets`.

        If normalization changes the length of a word, its last token has the span of the word.
        """
        return [[*self._spans(without_surrogates(line))] for line in lines]

    def _encode(self, lines: list[str], return_type: Any) -> list[Any]:
        return [
            [id for word in self._words(line) for id in self._word_ids(word)]
            for line in map(without_surrogates, lines)
        ]

    def _words(self, line: str) -> list[str]:
        return [word for word in line.translate(self._characters).split(" ") if word]

    def _word_ids(self, word: str) -> tuple[int, ...]:
        # Very long words, which are unknown anyway, would fill the cache.
        return self._cached_ids(word) if len(word) <= 4 * MAX_WORD_BYTES else self._split(word)

    def _split(self, word: str) -> tuple[int, ...]:
        """Splits a word greedily into the longest matching pieces from the left."""
        text = _fold_case(word) if self.lowercase else word
        if len(text.encode("utf-8")) > MAX_WORD_BYTES:
            return (UNK_ID,)
        ids = []
        start, prefix = 0, ""
        while start < len(text):
            for stop in range(len(text), start, -1):
                id = self._ids.get(prefix + text[start:stop])
                if id is not None:
                    break
            else:
                return (UNK_ID,)
            ids.append(id)
            start, prefix = stop, _SUFFIX
        return tuple(ids)

    def _spans(self, line: str) -> Iterator[tuple[int, int]]:
        # The normalization of a character does not depend on its context.
        parts = ((index, self._characters[ord(character)]) for index, character in enumerate(line))
        characters = [(index, character) for index, text in parts for character in text]
        for is_space, group in itertools.groupby(characters, lambda item: item[1] == " "):
            if is_space:
                continue
            origins, word = zip(*group, strict=True)
            ids = self._word_ids("".join(word))
            sizes = [len(self.pieces[id].text.removeprefix(SPACE_MARK)) for id in ids]
            if sum(sizes) != len(origins) or UNK_ID in ids:
                yield from ((origins[0], origins[0]) for _ in ids[:-1])
                yield from ((origins[0], origins[-1] + 1) for _ in ids[-1:])
                continue
            for begin, end in itertools.pairwise(itertools.accumulate(sizes, initial=0)):
                yield origins[begin], origins[end - 1] + 1

    def decode(self, ids: Iterable[Iterable[int]]) -> list[str]:
        """Decodes lists of ids to words separated by spaces; see `Tokenizer.decode`."""
        return ["".join(parts) for parts in self.surfaces(ids)]

    def surfaces(self, ids: Iterable[Iterable[int]]) -> list[list[str]]:
        """Returns the part of the decoded text that each token contributes."""
        result = []
        for row in self._checked(ids):
            texts: list[str] = []
            has_begun = False
            for id in row:
                text = self.pieces[id].text.replace(SPACE_MARK, " " if has_begun else "", 1)
                texts.append(text if id > EOS_ID else "")
                has_begun = has_begun or id > EOS_ID
            result.append(texts)
        return result


def tokenizer_from_bytes(model: bytes) -> Tokenizer:
    """Builds a tokenizer of any kind from untrusted output of its `to_bytes`; raises InputError."""
    if is_feature_tokenizer(model):
        return FeatureTokenizer.from_bytes(model)
    # A SentencePiece model never begins with a brace.
    kind = WordPieceTokenizer if model[:1] == b"{" else Tokenizer
    return kind.from_bytes(model)


_SPECIAL = {"[PAD]": PAD_ID, "[UNK]": UNK_ID, "[CLS]": BOS_ID, "[SEP]": EOS_ID}


def _check(vocabulary: Sequence[str], indices: dict[str, int]) -> None:
    if not len(_SPECIAL) < len(vocabulary) <= MAX_VOCABULARY:
        raise InputError(
            f"{len(vocabulary):,} word pieces, expected {len(_SPECIAL) + 1} to {MAX_VOCABULARY:,}"
        )
    if len(indices) < len(vocabulary):
        raise InputError("a word piece is there twice")
    if missing := [name for name in _SPECIAL if name not in indices]:
        raise InputError(f"no {missing[0]} among the word pieces")
    for piece in vocabulary:
        if not piece or len(piece) > _MAX_PIECE_CHARACTERS or "\n" in piece:
            raise InputError(
                f"received {piece[:60]!r} as a word piece, expected text of up to "
                f"{_MAX_PIECE_CHARACTERS:,} characters on one line"
            )


class _Characters(dict[int, str]):
    """Normalization of characters, for `str.translate`; computed on first use."""

    def __init__(self, strip_accents: bool) -> None:
        super().__init__()
        self._strip_accents = strip_accents

    def __missing__(self, code: int) -> str:
        text = chr(code)
        if self._strip_accents:
            parts = unicodedata.normalize("NFD", text)
            text = "".join(part for part in parts if unicodedata.category(part) != "Mn")
        self[code] = result = "".join(map(_separate, text))
        return result


def _separate(character: str) -> str:
    """Replaces white space with a space, and adds spaces around single-character words."""
    category = unicodedata.category(character)
    if category[0] == "Z" or category in ("Cc", "Cf"):
        return " "
    code = ord(character)
    if (
        category[0] == "P"
        or character in _SYMBOLS
        or any(first <= code <= last for first, last in IDEOGRAPHS)
    ):
        return f" {character} "
    return character


def _fold_case(word: str) -> str:
    """Applies NFKC_Casefold (Unicode, section 3.13)."""
    text = unicodedata.normalize("NFKC", word).casefold()
    text = unicodedata.normalize("NFKC", text)
    if text.isascii():
        return text
    return "".join(part for part in text if ord(part) not in _IGNORED)
