"""Tokenizer based on SentencePiece."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from .errors import Notice
from .languages import language_ids
from .learning import SAMPLE_CHUNKS, Kind, VocabularyPlan, learn_model, without_surrogates
from .normalization import Form, TextRules
from .special_ids import EOS_ID, UNK_ID
from .stored_model import (
    BYTE,
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
    """A piece of the vocabulary.

    `text` has U+2581 for a space. `score` is the log-probability or, for BPE, the negated rank of
    the merge. `is_text` is False for bytes and special tokens. `is_symbol` is True for user-defined
    symbols, which are never split.
    """

    text: str
    score: float
    is_text: bool
    is_symbol: bool = False


class Tokenizer:
    """Converts lines of text to token ids and back.

    The special ids are 0 pad, 1 unknown, 2 begin and 3 end of sentence; the pieces follow. `encode`
    never returns special ids: a literal `</s>` in the text is encoded as plain characters, and
    unknown characters are encoded as UTF-8 bytes (256 of the pieces), so that no text is lost.

    Text is normalized first, by default to NFC only, so `decode` returns the NFC form of the text.
    If the training sentences have no leading, trailing or repeated spaces, such spaces are removed.

    Create a tokenizer with `train` or `from_bytes`; it is immutable. The same sentences give
    the same model, byte for byte. All kinds of vocabulary are SentencePiece models.

    Example:

    >>> tokenizer = Tokenizer.train(["A dog runs.", "A cat sleeps."], size=280)
    >>> tokenizer.decode(tokenizer.encode(["A  cat runs 😀"]))
    ['A cat runs 😀']
    >>> phones = Tokenizer.train(["k \u02b0 a", "a k"], kind="word")
    >>> [phones.pieces[id].text for id in phones.encode(["k a"])[0]]
    ['\u2581k', '\u2581a']

    Reference:
        Kudo and Richardson, "SentencePiece: A simple and language independent subword tokenizer and
        detokenizer for Neural Text Processing", EMNLP 2018, https://arxiv.org/abs/1808.06226
    """

    # Ids of the tags of target languages, by language; see `with_languages`.
    languages: Mapping[str, int] = MappingProxyType({})

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
        min_count: int = 1,
        sample_size: int = SAMPLE_CHUNKS,
        seed: int = 1,
        notice: Notice | None = None,
    ) -> Self:
        """Learns a vocabulary from a stream of sentences.

        Memory is bounded: if there are more than `sample_size` sentences, the vocabulary is learned
        from a uniform random sample. Lines of more than 512 characters count as several sentences.

        Args:
            sentences: Strings; blank ones are skipped.
            size: The number of ids, including 4 special ids and 256 bytes. For characters and
                words, this is the maximum, and the most frequent ones are kept.
            kind: `"unigram"` (subwords of a unigram language model), `"bpe"` (subwords by merges),
                `"char"` (characters), `"word"` (words between separators), or `"byte"` (UTF-8).
            normalization: `"none"`, `"nfc"`, `"nfd"` or `"nfkc"`; see `TextRules`.
            lowercase: Boolean, whether to lowercase the text.
            separator: The string that separates words, for kind `"word"`.
            symbols: Strings that are always one token. They are normalized like the text. In a
                vocabulary of words they are recognized inside words, too.
            keep_spaces: Boolean, whether to keep leading, trailing and repeated spaces. None keeps
                them if the sentences have any.
            split_digits: Boolean, whether each digit is a piece, for data in which numbers are
                read rather than copied.
            lower_if_small: Boolean, for subwords. If the text is too small for `size`, True lowers
                the size with a notice, and False raises InputError.
            min_count: How often a word or character must occur to be in the vocabulary. Subwords
                and bytes ignore it.
            sample_size: The maximum number of sentences to learn from.
            seed: The random seed of the sample.
            notice: Called with one line if the size is lowered or the corpus is sampled. None is
                silent.

        Returns:
            A tokenizer with `vocabulary_size <= size`.

        Raises:
            ValueError: If `size`, `min_count` or `sample_size` is not a positive integer, `kind` or
                `normalization` is unknown, or a symbol or separator is invalid.
            InputError: If there is no text; `size` is too small for the characters of the text; or
                `size` is too large for the text and `lower_if_small` is False. The message names
                the possible size.
        """
        plan = VocabularyPlan(
            TextRules(kind, normalization, lowercase, separator if kind == "word" else " "),
            size,
            tuple(symbols),
            keep_spaces,
            split_digits,
            lower_if_small,
            min_count,
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
        """Builds a tokenizer from untrusted output of `to_bytes`; raises InputError."""
        return cls(load(bytes(model)))

    def to_bytes(self) -> bytes:
        """Returns the SentencePiece model as bytes."""
        return bytes(self._processor.serialized_model_proto())

    @property
    def kind(self) -> str:
        """The kind of vocabulary: "unigram", "bpe", "char", "word" or "byte"."""
        return self.rules.kind or model_kind(self.to_bytes())

    @functools.cached_property
    def pieces(self) -> list[Piece]:
        """The pieces in the order of their ids."""
        return [
            Piece(text, score, type in (NORMAL, USER_DEFINED), type == USER_DEFINED)
            for text, score, type in stored_pieces(self.to_bytes())
        ]

    def with_languages(self) -> Tokenizer:
        """Returns the same tokenizer with `languages`, for sources that begin with a tag.

        A symbol such as `<2fr>` of the vocabulary is then the tag of a target language; see
        `with_languages` for the lines. Otherwise it is a symbol like others.
        """
        symbols = ((id, piece.text) for id, piece in enumerate(self.pieces) if piece.is_symbol)
        result = Tokenizer(self._processor)
        result.languages = language_ids(symbols)
        return result

    @property
    def byte_ids(self) -> list[int]:
        """Ids of the pieces that stand for single bytes; empty for some imported vocabularies."""
        stored = stored_pieces(self.to_bytes())
        return [id for id, (_, _, type) in enumerate(stored) if type == BYTE]

    @property
    def vocabulary_size(self) -> int:
        """Number of ids, including the special ids."""
        return int(self._processor.vocab_size())

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """Encodes lines without begin and end tokens. A blank line has no ids.

        Lone surrogates are replaced by U+FFFD. The unknown id occurs only with an imported model
        without byte pieces. Raises TypeError if `lines` is one string, or an item is not a string.
        """
        if isinstance(lines, str):
            raise TypeError("lines must be a list of strings, not one string: encode([line])")
        batch = list(lines)
        for index, line in enumerate(batch):
            if not isinstance(line, str):
                raise TypeError(f"lines[{index}] must be a string, not {type(line).__name__}")
        return self._encode(batch, int)

    def offsets(self, lines: Sequence[str]) -> list[list[tuple[int, int]]]:
        """Returns the character span of each token of `encode` in its line, before normalization.

        White space belongs to the token after it. If several tokens make up one character, all but
        the last have zero width and precede the character.
        """
        batch = list(lines)
        result = []
        for line, tokens in zip(batch, self._encode(batch, "offset_mapping"), strict=True):
            offsets = tokens["offsets"]
            line = without_surrogates(line)
            if self.rules.apply(line) != line:
                normalized = self.rules.apply_with_offsets(line)
                offsets = [normalized.original_span(*span) for span in offsets]
            result.append(offsets)
        return result

    def _encode(self, lines: list[str], return_type: Any) -> list[Any]:
        # Starting threads costs as much as encoding a few dozen lines.
        threads = 1 if len(lines) < 64 else -1
        apply = self.rules.apply
        encode = functools.partial(
            self._processor.encode, num_threads=threads, return_type=return_type
        )
        try:
            return encode([apply(line) for line in lines])
        except TypeError:
            # All items are strings, so the cause is a lone surrogate in a line.
            return encode([apply(without_surrogates(line)) for line in lines])

    def decode(self, ids: Iterable[Iterable[int]]) -> list[str]:
        """Decodes lists or integer arrays of ids to lines; special ids are skipped.

        Bytes that are not UTF-8 become U+FFFD, and line breaks become spaces. Raises ValueError if
        an id is not in `[0, vocabulary_size)`.
        """
        rows = [[token for token in row if token > EOS_ID] for row in self._checked(ids)]
        if not rows:
            return []
        undo = self.rules.undo
        return [_on_one_line(undo(line)) for line in self._processor.decode(rows)]

    def surfaces(self, ids: Iterable[Iterable[int]]) -> list[list[str]]:
        """Returns the part of the decoded text that each token contributes.

        Joined, the parts of a list of ids are the output of `decode`. Special ids contribute "". If
        several tokens make up one character, the last one contributes it. Next to an unknown token,
        `decode` may omit some white space.
        """
        result: list[list[str]] = []
        for row in self._checked(ids):
            # Unknown tokens are part of the text; pad, begin and end tokens are not.
            tokens = [token for token in row if token > EOS_ID or token == UNK_ID]
            decoded = self._processor.decode(tokens, return_type="offset_mapping")
            spans = iter(decoded["offsets"])
            parts = []
            for token in row:
                begin, end = next(spans) if token > EOS_ID or token == UNK_ID else (0, 0)
                parts.append("" if token == UNK_ID else decoded["text"][begin:end])
            result.append([_on_one_line(part) for part in self.rules.undo_parts(parts)])
        return result

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
