"""Choice of a metric that fits the references."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

# Scripts without spaces between words: Thai, Lao, Tibetan, Myanmar, Khmer, kana and Han.
_UNSPACED_SCRIPTS = (
    (0x0E00, 0x0FFF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x3040, 0x30FF),
    (0x31F0, 0x31FF),
    (0x3400, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9D),
    (0x20000, 0x323AF),
)


@dataclass(frozen=True)
class MetricChoice:
    """A metric, a second metric to show, and the reason for the choice.

    With `"exact"`, the companion is an error rate, which decides between equal values. The reason
    is a clause such as "the validation references have 1.0 words a line on average".
    """

    metric: str
    companion: str
    reason: str


class _Text:
    """Statistics of the references."""

    def __init__(self, references: Sequence[str]) -> None:
        words = [line.split() for line in references]
        tokens = [token for line in words for token in line]
        # White space does not count as a character.
        characters = max(sum(map(len, tokens)), 1)
        unspaced = sum(_is_unspaced(character) for token in tokens for character in token)
        self.lines, self.distinct = len(references), len(set(references))
        self.words = len(tokens) / self.lines
        self.with_four_words = sum(len(line) >= 4 for line in words) / self.lines
        self.tokens, self.distinct_tokens = len(tokens), len(set(tokens))
        self.token_length = sum(map(len, tokens)) / max(len(tokens), 1)
        self.spaces = (len(tokens) - self.lines) / characters
        self.unspaced_script = unspaced / characters
        self.characters = median(map(len, references))

    @property
    def is_unsegmented(self) -> bool:
        """True if words are not separated: fewer than one space per 20 characters."""
        return self.spaces < 1 / 20 and self.unspaced_script > 0.5


def choose_metric(references: Sequence[str]) -> MetricChoice:
    """Chooses a metric that fits the references, by the first rule that applies:

    1. Exact match for a closed set: at most 20 distinct lines or 5 % of the lines, each at least
       twice on average.
    2. Exact match, with the word error rate, for symbols separated by spaces, such as phones: on
       average at least two per line, of at most 2.5 characters; at most 200 distinct ones, each at
       least five times on average.
    3. chrF for text of more than 8 characters in a script without spaces between words.
    4. Exact match for lines of at most 40 characters with fewer than four words, on average or in
       half of the lines. BLEU would find no sequences of four words.
    5. chrF for longer lines with as few words.
    6. BLEU for everything else.

    Lengths of lines are medians. The choice depends only on the references.

    Example:

    >>> choose_metric(["2034-09-26", "2034-09-27", "2034-09-28"]).metric
    'exact'
    """
    if not references:
        return MetricChoice("bleu", "chrf", "there are no validation references")
    text = _Text(references)
    have = "the validation references have"
    if text.distinct <= max(20, text.lines // 20) and 2 * text.distinct <= text.lines:
        reason = f"{have} {text.distinct:,} distinct values in {text.lines:,} lines"
        return MetricChoice("exact", "cer", reason)
    if (
        text.words >= 2
        and text.token_length <= 2.5
        and text.distinct_tokens <= 200
        and text.tokens >= 5 * text.distinct_tokens
    ):
        reason = (
            f"the validation references are {text.distinct_tokens:,} symbols, of "
            f"{text.token_length:.1f} characters on average, separated by spaces"
        )
        return MetricChoice("exact", "wer", reason)
    if text.is_unsegmented and text.characters > 8:
        return MetricChoice("chrf", "bleu", f"{have} no spaces between words")
    words = f"{have} {text.words:.1f} words a line on average"
    if text.words < 4 or text.with_four_words < 0.5:
        if text.words >= 4:
            share = f"{100 * text.with_four_words:.0f} %"
            words = f"{share} of the validation references have four words or more"
        if text.characters <= 40:
            return MetricChoice("exact", "cer", words)
        return MetricChoice("chrf", "bleu", f"{words}, and {text.characters:.0f} characters")
    return MetricChoice("bleu", "chrf", words)


def choose_bleu_tokenizer(references: Sequence[str]) -> str:
    """Chooses `"char"` for references in a script without spaces between words, else `"13a"`.

    Example:

    >>> choose_bleu_tokenizer(["犬が走っている。"])
    'char'
    """
    return "char" if references and _Text(references).is_unsegmented else "13a"


def _is_unspaced(character: str) -> bool:
    code = ord(character)
    return code >= 0x0E00 and any(first <= code <= last for first, last in _UNSPACED_SCRIPTS)
