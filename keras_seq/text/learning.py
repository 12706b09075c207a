"""Learns the SentencePiece model of a vocabulary from sentences."""

from __future__ import annotations

import io
import itertools
import math
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from .errors import InputError, Notice, silent
from .normalization import SPACE_MARK, TextRules
from .special_ids import BOS_ID, EOS_ID, PAD_ID, UNK_ID
from .stored_model import (
    BYTE_PIECES,
    MAX_VOCABULARY,
    NORMAL,
    SPECIAL_PIECES,
    USER_DEFINED,
    Engine,
    ModelParts,
    StoredPiece,
    with_normalizer_name,
)

Kind = Literal["unigram", "bpe", "char", "word", "byte"]
KINDS: tuple[Kind, ...] = get_args(Kind)

# The SentencePiece trainer silently skips lines of more than 4,192 bytes, so long lines are split,
# preferably at white space, which no subword crosses.
_CHUNK_CHARACTERS = 512
# Enough sentences to learn tens of thousands of pieces. With 2,320,000 captions, learning takes 8 s
# and 350 MB; a sample of 500,000 would take 18 s and 850 MB.
SAMPLE_CHUNKS = 200_000
# Float sums of the trainer depend on the number of threads, so the number is fixed to make the
# model independent of the machine.
_TRAINING_THREADS = 4
# The trainer reserves this character and skips lines that contain it.
_RESERVED = "\u2585"
_MAX_SYMBOLS = 10_000
_MAX_SYMBOL_CHARACTERS = 100


@dataclass(frozen=True)
class VocabularyPlan:
    """Options of a vocabulary to learn; `Tokenizer.train` describes them."""

    rules: TextRules
    size: int
    symbols: tuple[str, ...] = ()
    keep_spaces: bool | None = None
    split_digits: bool = False
    lower_if_small: bool = True
    min_count: int = 1

    def __post_init__(self) -> None:
        if self.rules.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, not {self.rules.kind!r}")
        if not isinstance(self.size, int) or not 1 <= self.size <= MAX_VOCABULARY:
            raise ValueError(
                f"size must be a whole number from 1 to {MAX_VOCABULARY:,}, not {self.size!r}"
            )
        if not isinstance(self.min_count, int) or self.min_count < 1:
            raise ValueError(f"min_count must be a whole number above 0, not {self.min_count!r}")
        check_symbols(self.symbols)


def check_symbols(symbols: Sequence[str]) -> None:
    """Raises ValueError if a vocabulary cannot have these symbols."""
    if isinstance(symbols, str):
        raise ValueError(f"symbols must be a list of strings, not one string: {symbols[:60]!r}")
    if len(symbols) > _MAX_SYMBOLS:
        raise ValueError(f"symbols: received {len(symbols):,}, expected at most {_MAX_SYMBOLS:,}")
    reserved = {piece.text for piece in (*SPECIAL_PIECES, *BYTE_PIECES)}
    for symbol in symbols:
        if (
            not isinstance(symbol, str)
            or not 1 <= len(symbol) <= _MAX_SYMBOL_CHARACTERS
            or len(symbol.split()) != 1
            or symbol != symbol.strip()
            or SPACE_MARK in symbol
            or symbol in reserved
        ):
            raise ValueError(
                f"symbols: received {str(symbol)[:60]!r}, expected a string of 1 to "
                f"{_MAX_SYMBOL_CHARACTERS} characters without white space that is not the name of "
                "a special token"
            )


def learn_model(
    sentences: Iterable[str],
    plan: VocabularyPlan,
    *,
    sample_size: int = SAMPLE_CHUNKS,
    seed: int = 1,
    notice: Notice | None = None,
) -> bytes:
    """Learns a vocabulary and returns its SentencePiece model as bytes; see `Tokenizer.train`."""
    if not isinstance(sample_size, int) or sample_size < 1:
        raise ValueError(f"sample_size must be a whole number above 0, not {sample_size!r}")
    notice = notice or silent
    spaces = _Spaces(plan.keep_spaces)
    rules = plan.rules
    chunks = _chunks(map(rules.apply, map(without_surrogates, sentences)), spaces)
    sample, total = _sample(chunks, sample_size, seed)
    if not sample:
        raise InputError("the corpus has no text to learn a vocabulary from: add sentences")
    if total > len(sample):
        notice(f"vocabulary learned from a sample of {len(sample):,} of {total:,} sentences")
    symbols = list(dict.fromkeys(rules.apply(symbol) for symbol in plan.symbols))
    if rules.kind in ("unigram", "bpe"):
        return _train_subwords(sample, plan, symbols, spaces.keep)
    return _count_units(sample, plan, symbols, spaces.keep)


def without_surrogates(text: str) -> str:
    """Replaces lone surrogates, which are not text, by U+FFFD."""
    # A fast path: `isascii` is a flag lookup.
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class _Spaces:
    """Decides whether to keep leading, trailing and repeated spaces."""

    def __init__(self, keep: bool | None) -> None:
        self.keep = bool(keep)
        self._decided = keep is not None

    def add(self, sentence: str) -> None:
        if not self._decided:
            self.keep = self._decided = has_extra_spaces(sentence)


def has_extra_spaces(sentence: str) -> bool:
    """Tests if a line has leading, trailing or repeated spaces."""
    return bool(sentence) and (sentence[0] == " " or sentence[-1] == " " or "  " in sentence)


def _chunks(sentences: Iterable[str], spaces: _Spaces) -> Iterator[str]:
    """Yields the sentences that are not blank; splits long ones."""
    for sentence in sentences:
        sentence = sentence.replace(_RESERVED, " ")
        if not sentence.strip():
            continue
        spaces.add(sentence)
        start = 0
        while start < len(sentence):
            stop = start + _CHUNK_CHARACTERS
            if stop < len(sentence):
                space = sentence.rfind(" ", start + 1, stop)
                stop = space if space > 0 else stop
            chunk = sentence[start:stop]
            if chunk.strip():
                yield chunk
            start = stop


def _count_units(sample: list[str], plan: VocabularyPlan, symbols: list[str], keep: bool) -> bytes:
    """Builds a vocabulary of the most frequent units of the text."""
    rules = plan.rules
    counts: Counter[str] = Counter()
    pattern = re.compile("|".join(map(re.escape, sorted(symbols, key=len, reverse=True))))
    for chunk in sample if rules.kind != "byte" else ():
        text = pattern.sub(" ", chunk) if symbols else chunk
        counts.update(text if rules.kind == "char" else text.split(" "))
    del counts["" if rules.kind == "word" else " "]
    room = plan.size - len(SPECIAL_PIECES) - len(BYTE_PIECES) - len(symbols)
    if rules.kind == "byte":
        units: list[str] = []
    else:
        # The vocabulary always includes the space, because it also separates unknown units.
        enough = [unit for unit, count in counts.items() if count >= plan.min_count]
        frequent = sorted(enough, key=lambda unit: (-counts[unit], unit))[: max(room - 1, 0)]
        mark = SPACE_MARK if rules.kind == "word" else ""
        units = [SPACE_MARK, *(mark + unit for unit in frequent)]
    if room < len(units[:1]):
        minimum = plan.size - room + 1
        more = f", {len(symbols):,} symbols" if symbols else ""
        raise InputError(
            f"a vocabulary of {plan.size:,} has no room for one {rules.kind}: at least {minimum:,} "
            f"({len(SPECIAL_PIECES)} special ids, {len(BYTE_PIECES)} bytes{more})"
        )
    pieces = [
        *SPECIAL_PIECES,
        *BYTE_PIECES,
        *(StoredPiece(symbol, 0.0, USER_DEFINED) for symbol in symbols),
        # Scores matter only for words, where the longest known piece must win. An unknown character
        # costs 10 more than the least likely piece.
        *(StoredPiece(unit, -1.0 - rank * 1e-6, NORMAL) for rank, unit in enumerate(units)),
    ]
    engine: Engine = "unigram" if rules.kind == "word" else "char"
    prefix, mark_spaces = rules.kind == "word", rules.kind != "byte"
    return ModelParts(pieces, engine, rules.name, prefix, keep, mark_spaces).build()


def _train_subwords(
    sentences: list[str], plan: VocabularyPlan, symbols: list[str], keep: bool
) -> bytes:
    # Imported lazily: settings and `--help` do not need it.
    import sentencepiece

    model = io.BytesIO()
    rules = plan.rules
    try:
        sentencepiece.SentencePieceTrainer.Train(
            sentence_iterator=iter(sentences if keep else map(str.strip, sentences)),
            model_writer=model,
            model_type=rules.kind,
            vocab_size=plan.size,
            hard_vocab_limit=not plan.lower_if_small,
            split_digits=plan.split_digits,
            user_defined_symbols=symbols,
            pad_id=PAD_ID,
            unk_id=UNK_ID,
            bos_id=BOS_ID,
            eos_id=EOS_ID,
            byte_fallback=True,
            normalization_rule_name="identity",
            remove_extra_whitespaces=not keep,
            allow_whitespace_only_pieces=keep,
            num_threads=_TRAINING_THREADS,
            minloglevel=3,
        )
    except RuntimeError as error:
        raise _training_error(str(error), plan.size) from None
    return with_normalizer_name(model.getvalue(), rules.name)


def _sample(items: Iterator[str], size: int, seed: int) -> tuple[list[str], int]:
    """Samples up to `size` items uniformly in one pass; also returns the total number of items.

    Reservoir sampling with geometric skips (Li, "Reservoir-sampling algorithms of time complexity
    O(n(1 + log(N/n)))", 1994): only items that enter the reservoir need random numbers.
    """
    reservoir = list(itertools.islice(items, size))
    total = len(reservoir)
    generator = random.Random(seed)
    weight = 1.0
    while True:
        weight *= math.exp(math.log(1.0 - generator.random()) / size)
        skip = int(math.log(1.0 - generator.random()) / math.log1p(-weight)) if weight < 1 else 0
        skipped = sum(1 for _ in itertools.islice(items, skip))
        item = next(items, None)
        total += skipped + (item is not None)
        if item is None:
            return reservoir, total
        reservoir[generator.randrange(size)] = item


def _training_error(message: str, size: int) -> InputError:
    if match := re.search(r"too high.*<= (\d+)", message):
        return InputError(
            f"a vocabulary of {size:,} is larger than this corpus allows: "
            f"at most {int(match[1]):,} here; lower the size or add text"
        )
    if match := re.search(r"smaller than required_chars. \d+ vs (\d+)", message):
        return InputError(
            f"a vocabulary of {size:,} is too small for the characters of this corpus: "
            f"at least {int(match[1]):,} here (4 special ids, 256 bytes, the characters)"
        )
    if "all_chars_count" in message:
        return InputError(
            "the corpus has no visible characters to learn a vocabulary from: add sentences"
        )
    return InputError(f"the vocabulary could not be learned: {message}")
