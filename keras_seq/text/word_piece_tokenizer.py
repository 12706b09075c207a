"""Strings to the ids of a pretrained encoder's word pieces, without Keras and TensorFlow."""

import functools
import itertools
import json
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, NoReturn, Self

from .errors import InputError
from .learning import without_surrogates
from .special_ids import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from .stored_model import MAX_VOCABULARY
from .tokenizer import Piece, Tokenizer

FORMAT = 1
# Longer words are unknown; bytes of UTF-8.
MAX_WORD_BYTES = 100
_MAX_PIECE_CHARACTERS = 1_000
_SUFFIX = "##"
_BEGIN = "\u2581"
# Symbols of ASCII part words, too, as punctuation does.
_SYMBOLS = frozenset("$+<=>^`|~")
# What has a word of its own for each character.
IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)
# Default_Ignorable_Code_Point, as far as characters are no format characters (Cf), at which
# words part: fillers of Hangul, inherent vowels of Khmer, and variation selectors.
_IGNORED = frozenset(
    (
        *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x3164, 0xFFA0),
        *range(0x180B, 0x1810),
        *range(0xFE00, 0xFE10),
        *range(0xE0100, 0xE01F0),
    )
)


class WordPieceTokenizer(Tokenizer):
    """Turns lines of text into ids of word pieces, as an encoder like BERT was trained with.

    Text is cut at white space, at punctuation and around ideographs; in each word
    the longest piece that fits is taken from the left, again and again. A word that
    cannot be covered is one unknown token. As the tokenizers of BERT, DistilBERT in
    KerasHub, but that every white space of Unicode parts words.

    Ids are in the order of this package: 0 `[PAD]`, 1 `[UNK]`, 2 `[CLS]`, 3 `[SEP]`,
    and then the other pieces in their order; `original_ids` has the places of all in
    the vocabulary as it was.

    It is not learned from text, and does not change.

    Args:
        vocabulary: All pieces, in the order of the pretrained model's table, `##` before
            those that go on with a word; the four named above among them.
        lowercase: Whether text is brought to NFKC without case.
        strip_accents: Whether accents are taken off.

    Raises:
        InputError: A piece twice, none of the four, or absurd pieces.

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
        places = {piece: place for place, piece in enumerate(self.vocabulary)}
        _check(self.vocabulary, places)
        special = [places[name] for name in _SPECIAL]
        known = set(special)
        self.original_ids = (*special, *(id for id in places.values() if id not in known))
        ids = {self.vocabulary[place]: id for id, place in enumerate(self.original_ids)}
        self._ids = {piece: id for piece, id in ids.items() if id > EOS_ID}
        self._characters = _Characters(strip_accents)
        # Words come again and again.
        self._kept_ids = functools.lru_cache(1 << 16)(self._cut)

    @classmethod
    def train(cls, *arguments: Any, **options: Any) -> NoReturn:
        """Is not possible: pieces come with a pretrained model.

        Raises:
            TypeError: Always.
        """
        raise TypeError("word pieces come with a pretrained model; `Tokenizer.train` learns others")

    @classmethod
    def from_bytes(cls, model: bytes) -> Self:
        """Make a tokenizer of a stored one, which need not be trusted.

        Raises:
            InputError: If the bytes are not what `to_bytes` gave.
        """
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
        """Return the tokenizer as JSON, to be stored in a file."""
        stored = {
            "format": FORMAT,
            "lowercase": self.lowercase,
            "strip_accents": self.strip_accents,
            "vocabulary": self.vocabulary,
        }
        return json.dumps(stored, ensure_ascii=False, indent=0).encode("utf-8", "surrogatepass")

    @property
    def kind(self) -> Any:
        """`"wordpiece"`."""
        return "wordpiece"

    @cached_property
    def pieces(self) -> list[Piece]:
        """What each id stands for; U+2581 before those that begin a word."""
        found = []
        for id, place in enumerate(self.original_ids):
            text = self.vocabulary[place]
            shown = text.removeprefix(_SUFFIX) if text.startswith(_SUFFIX) else _BEGIN + text
            found.append(Piece(shown if id > EOS_ID else text, -float(id), id > EOS_ID))
        return found

    @property
    def vocabulary_size(self) -> int:
        """The number of ids; each id is smaller."""
        return len(self.vocabulary)

    def offsets(self, lines: Sequence[str]) -> list[list[tuple[int, int]]]:
        """Say which characters of its line each token stands for; see `Tokenizer.offsets`.

        Where a word is shorter or longer without case and accents, its last token has all of it.
        """
        return [[*self._spans(without_surrogates(line))] for line in lines]

    def _encode(self, lines: list[str], result: Any) -> list[Any]:
        return [
            [id for word in self._words(line) for id in self._word_ids(word)]
            for line in map(without_surrogates, lines)
        ]

    def _words(self, line: str) -> list[str]:
        return [word for word in line.translate(self._characters).split(" ") if word]

    def _word_ids(self, word: str) -> tuple[int, ...]:
        # What is longer is unknown anyway, and would fill a memory.
        return self._kept_ids(word) if len(word) <= 4 * MAX_WORD_BYTES else self._cut(word)

    def _cut(self, word: str) -> tuple[int, ...]:
        """The ids of a word: the longest piece that fits, from the left."""
        text = _folded(word) if self.lowercase else word
        if len(text.encode("utf-8")) > MAX_WORD_BYTES:
            return (UNK_ID,)
        found = []
        start, prefix = 0, ""
        while start < len(text):
            for stop in range(len(text), start, -1):
                id = self._ids.get(prefix + text[start:stop])
                if id is not None:
                    break
            else:
                return (UNK_ID,)
            found.append(id)
            start, prefix = stop, _SUFFIX
        return tuple(found)

    def _spans(self, line: str) -> Iterator[tuple[int, int]]:
        # Each character alone gives what it gives in its line.
        parts = ((place, self._characters[ord(character)]) for place, character in enumerate(line))
        found = [(place, part) for place, text in parts for part in text]
        for is_space, group in itertools.groupby(found, lambda item: item[1] == " "):
            if is_space:
                continue
            places, word = zip(*group, strict=True)
            ids = self._word_ids("".join(word))
            sizes = [len(self.pieces[id].text.removeprefix(_BEGIN)) for id in ids]
            if sum(sizes) != len(places) or UNK_ID in ids:
                yield from ((places[0], places[0]) for _ in ids[:-1])
                yield from ((places[0], places[-1] + 1) for _ in ids[-1:])
                continue
            ends = [*itertools.accumulate(sizes)]
            for begin, end in zip([0, *ends], ends, strict=False):
                yield places[begin], places[end - 1] + 1

    def decode(self, ids: Iterable[Iterable[int]]) -> list[str]:
        """Turn lists of ids into lines of words with a space between; see `Tokenizer.decode`."""
        return ["".join(parts) for parts in self.surfaces(ids)]

    def surfaces(self, ids: Iterable[Iterable[int]]) -> list[list[str]]:
        """Say which characters of the decoded text each token stands for."""
        found = []
        for row in self._checked(ids):
            texts: list[str] = []
            begun = False
            for id in row:
                text = self.pieces[id].text.replace(_BEGIN, " " if begun else "", 1)
                texts.append(text if id > EOS_ID else "")
                begun = begun or id > EOS_ID
            found.append(texts)
        return found


def tokenizer_from_bytes(model: bytes) -> Tokenizer:
    """Make a tokenizer of any kind of what its `to_bytes` gave, which need not be trusted.

    Raises:
        InputError: If it is something else.
    """
    # What SentencePiece writes begins with another byte.
    kind = WordPieceTokenizer if model[:1] == b"{" else Tokenizer
    return kind.from_bytes(model)


_SPECIAL = {"[PAD]": PAD_ID, "[UNK]": UNK_ID, "[CLS]": BOS_ID, "[SEP]": EOS_ID}


def _check(vocabulary: Sequence[str], places: dict[str, int]) -> None:
    if not len(_SPECIAL) < len(vocabulary) <= MAX_VOCABULARY:
        raise InputError(
            f"{len(vocabulary):,} word pieces, expected {len(_SPECIAL) + 1} to {MAX_VOCABULARY:,}"
        )
    if len(places) < len(vocabulary):
        raise InputError("a word piece is there twice")
    if missing := [name for name in _SPECIAL if name not in places]:
        raise InputError(f"no {missing[0]} among the word pieces")
    for piece in vocabulary:
        if not piece or len(piece) > _MAX_PIECE_CHARACTERS or "\n" in piece:
            raise InputError(
                f"received {piece[:60]!r} as a word piece, expected text of up to "
                f"{_MAX_PIECE_CHARACTERS:,} characters on one line"
            )


class _Characters(dict[int, str]):
    """What becomes of a character before words are cut; for `str.translate`, found when asked."""

    def __init__(self, strip_accents: bool) -> None:
        super().__init__()
        self._strip_accents = strip_accents

    def __missing__(self, code: int) -> str:
        text = chr(code)
        if self._strip_accents:
            parts = unicodedata.normalize("NFD", text)
            text = "".join(part for part in parts if unicodedata.category(part) != "Mn")
        self[code] = found = "".join(map(_parted, text))
        return found


def _parted(character: str) -> str:
    """A character with a space where words part: in its place, or around it."""
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


def _folded(word: str) -> str:
    """NFKC_Casefold: compatibility characters and case taken away (Unicode, section 3.13)."""
    text = unicodedata.normalize("NFKC", word).casefold()
    text = unicodedata.normalize("NFKC", text)
    if text.isascii():
        return text
    return "".join(part for part in text if ord(part) not in _IGNORED)
