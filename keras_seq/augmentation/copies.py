"""Training pairs that copy text in the target language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from keras_seq.augmentation.pair_lines import before_source, without_tabs
from keras_seq.text import Example


def copied_pairs(lines: Iterable[str], *, tag: str = "") -> Iterator[Example]:
    """Yields each line with text as the source and the target of a pair.

    A tab becomes a space, because it would end the source.

    Args:
        lines: Text in the target language.
        tag: Text before each source, which marks the pairs.

    Reference:
        Currey et al., "Copied Monolingual Data Improves Low-Resource Neural Machine Translation",
        WMT 2017
    """
    begin = before_source(tag)
    for line in lines:
        if line.strip():
            text = without_tabs(line)
            yield Example(begin + text, text)
