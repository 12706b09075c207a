"""Strings to token ids and back, by SentencePiece."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from .errors import Notice
from .learning import SAMPLE_CHUNKS, Kind, VocabularyPlan, learn_model, without_surrogates
from .normalization import Form, TextRules
from .special_ids import EOS_ID, UNK_ID
from .stored_model import (
    NORMAL,
    USER_DEFINED,
    load,
    model_kind,
    normalizer_name,
    stored_pieces,
)

if TYPE_CHECKING:
    import sentencepiece


class Piece(NamedTuple):
    """The text of a token id.

    Attributes:
        text: Characters, with U+2581 for a space.
        score: Logarithm of its probability, or minus its place in the order of merges.
        is_text: False for bytes and what is never in a text.
        is_symbol: Whether it is a symbol that the user named, which is never cut.
    """

    text: str
    score: float
    is_text: bool
    is_symbol: bool = False


class Tokenizer:
    """Turns lines of text into lists of token ids and back.

    Ids are fixed: 0 pad, 1 unknown, 2 begin, 3 end of sentence; pieces follow.
    `encode` gives none of the four, whatever the text says: a literal `</s>`
    is five ordinary characters, and a character that training never saw is
    spelled in UTF-8 bytes (256 of the pieces), so that every string comes back.

    Text is normalized before it is cut. By default accents are composed (NFC) and nothing else
    is changed, so `decode` gives back the NFC form of the text. If the sentences
    that the vocabulary is learned from have no spaces at the ends of lines and no runs of spaces,
    such spaces are dropped.

    A tokenizer is made by `train` or `from_bytes`, not by its constructor, and
    does not change afterwards. The same sentences give the same model, byte for
    byte. All kinds of vocabulary are SentencePiece models.

    Example:

    >>> tokenizer = Tokenizer.train(["A dog runs.", "A cat sleeps."], size=280)
    >>> tokenizer.decode(tokenizer.encode(["A  cat runs 😀"]))
    ['A cat runs 😀']
    >>> phones = Tokenizer.train(["k \u02b0 a", "a k"], kind="word")
    >>> [phones.pieces[id].text for id in phones.encode(["k a"])[0]]
    ['\u2581k', '\u2581a']

    Reference:
        Kudo and Richardson, "SentencePiece: A simple and language independent
        subword tokenizer and detokenizer for Neural Text Processing", EMNLP
        2018, https://arxiv.org/abs/1808.06226
    """

    def __init__(self, processor: sentencepiece.SentencePieceProcessor) -> None:
        self._processor = processor
        self.rules = TextRules.from_name(normalizer_name(self.to_bytes()))

    @classmethod
    def train(
        cls,
        sentences: Iterable[str],
        *,
        size: int = 8000,
        kind: Kind = "unigram",
        normalization: Form = "nfc",
        lowercase: bool = False,
        separator: str = " ",
        symbols: Sequence[str] = (),
        keep_spaces: bool | None = None,
        split_digits: bool = False,
        lower_if_small: bool = True,
        sample_size: int = SAMPLE_CHUNKS,
        seed: int = 1,
        notice: Notice | None = None,
    ) -> Self:
        """Learns a vocabulary from sentences, read once and as a stream.

        Memory is bounded: of a corpus of more than `sample_size` sentences
        (stretches of 512 characters where lines are longer) a uniform sample
        of that many, drawn from `seed`, is learned from.

        Args:
            sentences: Strings; blank ones are skipped.
            size: Wanted number of ids, among them 4 special ones and 256 bytes. For characters
                and words the largest number: the most frequent ones are taken.
            kind: `"unigram"` (subwords by a language model), `"bpe"` (subwords by merges),
                `"char"` (characters), `"word"` (words between separators), or `"byte"`
                (bytes of UTF-8).
            normalization: `"nfc"`, `"nfkc"` or `"none"`; see `TextRules`.
            lowercase: Whether letters are lowercased.
            separator: What separates the words of kind `"word"`.
            symbols: Strings that stay one token wherever they are. They are normalized
                as text is. In a vocabulary of words they are known inside words, too.
            keep_spaces: Whether spaces at the ends of a line and runs of spaces are kept.
                None keeps them if the sentences have any.
            split_digits: Whether each digit is a piece by itself, for data in
                which numbers are read rather than copied.
            lower_if_small: Where the text is too small for `size`: True takes
                what is possible, with a notice; False refuses. For subwords.
            sample_size: The number of sentences to learn from at most.
            seed: Makes the sample reproducible.
            notice: Called with one line of text when the size was lowered or
                the corpus sampled. None is silent.

        Returns:
            A tokenizer with `vocabulary_size <= size`.

        Raises:
            ValueError: If `size` or `sample_size` is no positive integer, `kind` or
                `normalization` is unknown, or a symbol or separator is not possible.
            InputError: If there is no text; if `size` has no room for the
                characters of the text, with the least size; if it is larger
                than the text allows and `lower_if_small` is False, with the
                largest.
        """
        plan = VocabularyPlan(
            TextRules(kind, normalization, lowercase, separator if kind == "word" else " "),
            size,
            tuple(symbols),
            keep_spaces,
            split_digits,
            lower_if_small,
        )
        model = learn_model(sentences, plan, sample_size=sample_size, seed=seed, notice=notice)
        tokenizer = cls.from_bytes(model)
        if notice and kind in ("unigram", "bpe") and tokenizer.vocabulary_size < size:
            notice(
                f"vocabulary lowered from {size:,} to {tokenizer.vocabulary_size:,}: "
                "the corpus is too small for more"
            )
        return tokenizer

    @classmethod
    def from_bytes(cls, model: bytes) -> Self:
        """Make a tokenizer of a stored model, which need not be trusted.

        Args:
            model: What `to_bytes` gave.

        Returns:
            The tokenizer.

        Raises:
            InputError: If the bytes are not a whole SentencePiece model, or
                one whose special ids are not 0, 1, 2, 3, or one with absurd
                pieces.
        """
        return cls(load(bytes(model)))

    def to_bytes(self) -> bytes:
        """Return the SentencePiece model, to be stored in a file."""
        return bytes(self._processor.serialized_model_proto())

    @property
    def kind(self) -> str:
        """The kind of vocabulary: "unigram", "bpe", "char", "word" or "byte"."""
        return self.rules.kind or model_kind(self.to_bytes())

    @cached_property
    def pieces(self) -> list[Piece]:
        """The pieces in the order of their ids."""
        return [
            Piece(piece.text, piece.score, piece.type in (NORMAL, USER_DEFINED), is_symbol)
            for piece in stored_pieces(self.to_bytes())
            for is_symbol in (piece.type == USER_DEFINED,)
        ]

    @property
    def vocabulary_size(self) -> int:
        """The number of ids; each id is smaller."""
        return int(self._processor.vocab_size())

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """Turn lines into ids; a blank line gives no ids.

        Args:
            lines: A list of strings (one string alone is refused). Lone
                surrogates, which no text has, count as U+FFFD.

        Returns:
            One list of ids for each line, all of them > 3 (1 only from a
            foreign model without byte pieces), without begin and end.

        Raises:
            TypeError: If `lines` is a string or holds anything else.
        """
        if isinstance(lines, str):
            raise TypeError("lines must be a list of strings, not one string: encode([line])")
        batch = list(lines)
        for index, line in enumerate(batch):
            if not isinstance(line, str):
                raise TypeError(f"lines[{index}] must be a string, not {type(line).__name__}")
        return self._encode(batch, int)

    def offsets(self, lines: Sequence[str]) -> list[list[tuple[int, int]]]:
        """Say which characters of its line each token stands for.

        Args:
            lines: A list of strings.

        Returns:
            For each token of `encode` the place of its first character and
            the place behind its last one, counted in the line as it was given. White space
            belongs to the token behind it. Of several tokens for one character
            all but the last have no width and stand before it.
        """
        batch = list(lines)
        found = []
        for line, tokens in zip(batch, self._encode(batch, "offset_mapping"), strict=True):
            offsets = tokens["offsets"]
            line = without_surrogates(line)
            if self.rules.apply(line) != line:
                normalized = self.rules.apply_with_places(line)
                offsets = [normalized.place(*span) for span in offsets]
            found.append(offsets)
        return found

    def _encode(self, lines: list[str], result: Any) -> list[Any]:
        # Starting threads costs as much as encoding a few dozen lines.
        threads = 1 if len(lines) < 64 else -1
        apply = self.rules.apply
        normalized = [apply(line) for line in lines]
        try:
            return self._processor.encode(normalized, num_threads=threads, return_type=result)
        except TypeError:
            # All are strings, so one of them has a lone surrogate.
            normalized = [apply(without_surrogates(line)) for line in lines]
            return self._processor.encode(normalized, num_threads=threads, return_type=result)

    def decode(self, ids: Iterable[Iterable[int]]) -> list[str]:
        """Turn lists of ids into lines; pad, unknown, begin and end are dropped.

        Args:
            ids: Lists or integer arrays, one for each line.

        Returns:
            One string for each list. Bytes that are not UTF-8 come out as
            U+FFFD and line ends as spaces, so that a line stays one line.

        Raises:
            ValueError: If an id is negative or not below `vocabulary_size`.
        """
        rows = [[token for token in row if token > EOS_ID] for row in self._checked(ids)]
        if not rows:
            return []
        undo = self.rules.undo
        return [_on_one_line(undo(line)) for line in self._processor.decode(rows)]

    def surfaces(self, ids: Iterable[Iterable[int]]) -> list[list[str]]:
        """Say which characters of the decoded text each token stands for.

        Args:
            ids: As for `decode`.

        Returns:
            For each list as many strings, which joined are what `decode` gives. "" for pad,
            unknown, begin and end. Of several tokens for one character the last has it.
            Beside an unknown token there is all the white space that the others stand for,
            and `decode` may leave some out.

        Raises:
            ValueError: As `decode`.
        """
        # Ends of a sentence are no text, but what is unknown has its place among the others.
        rows = self._checked(ids)
        kept = [[token for token in row if token > EOS_ID or token == UNK_ID] for row in rows]
        found: list[list[str]] = []
        for row, tokens in zip(rows, kept, strict=True):
            decoded = self._processor.decode(tokens, return_type="offset_mapping")
            spans = iter(decoded["offsets"])
            parts = []
            for token in row:
                begin, end = next(spans) if token > EOS_ID or token == UNK_ID else (0, 0)
                parts.append("" if token == UNK_ID else decoded["text"][begin:end])
            found.append([_on_one_line(part) for part in self.rules.undo_parts(parts)])
        return found

    def _checked(self, ids: Iterable[Iterable[int]]) -> list[list[int]]:
        size = self.vocabulary_size
        rows = [[int(token) for token in row] for row in ids]
        for index, row in enumerate(rows):
            if row and not (0 <= min(row) and max(row) < size):
                wrong = next(token for token in row if not 0 <= token < size)
                raise ValueError(f"ids[{index}] has {wrong}, expected ids from 0 to {size - 1}")
        return rows


def _on_one_line(text: str) -> str:
    return text.replace("\n", " ").replace("\r", " ")
