"""A tokenizer of lines with features, such as a lemma and the form to inflect it to."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn, Self

from .errors import InputError
from .labels import Labels
from .languages import without_languages
from .tokenizer import Piece, Tokenizer

_FORMAT = "keras-seq features, format 1"
_MAX_HEADER_BYTES = 1 << 22
_MAX_SEPARATOR = 100
# Between the source and its features in a line.
_TAB = "\t"


class FeatureTokenizer(Tokenizer):
    """Converts lines `source<TAB>features` to token ids and back.

    The features, such as `V;PST;3`, are separated by a string. Each is one token, which follows
    those of the source. Their ids follow the vocabulary of the source; the first of them stands for
    features that are not in the training text. A line without a tab has no features.

    Args:
        tokenizer: The tokenizer of the source.
        features: The features that are known.
        separator: The string between two features.

    Example:

    >>> letters = Tokenizer.train(["walk", "talk"], kind="char")
    >>> tokenizer = FeatureTokenizer(letters, Labels(["PST", "V"]))
    >>> ids = tokenizer.encode(["walk\\tV;PST", "talk\\tV;FUT"])
    >>> [[id - letters.vocabulary_size for id in row[-2:]] for row in ids]
    [[2, 1], [2, 0]]
    >>> tokenizer.decode(ids)[0]
    'walk\\tV;PST'
    """

    # `Tokenizer.__init__` is not called, because all that it sets up belongs to `source`.
    def __init__(self, tokenizer: Tokenizer, features: Labels, separator: str = ";") -> None:
        if not 1 <= len(separator) <= _MAX_SEPARATOR or _TAB in separator or "\n" in separator:
            raise InputError(f"received {separator[:60]!r} as a separator of features")
        self.source = tokenizer
        self.features = features
        self.separator = separator
        self.rules = tokenizer.rules
        self._unknown = tokenizer.vocabulary_size
        self._ids = {name: self._unknown + 1 + i for i, name in enumerate(features.names)}

    @classmethod
    def train(cls, *arguments: Any, **options: Any) -> NoReturn:
        """Raises TypeError: train a `Tokenizer` of the source, and add features to it."""
        raise TypeError("train a Tokenizer of the source, and add features to it")

    @classmethod
    def from_bytes(cls, model: bytes) -> Self:
        """Builds a tokenizer from untrusted output of `to_bytes`; raises InputError."""
        head, _, rest = bytes(model).partition(b"\n")
        try:
            if len(head) > _MAX_HEADER_BYTES:
                raise ValueError
            stored = json.loads(head)
            separator, names = stored["separator"], stored["features"]
            valid = stored["format"] == _FORMAT and isinstance(separator, str)
            if not valid or not all(isinstance(name, str) for name in names):
                raise ValueError
        except (ValueError, KeyError, TypeError, RecursionError):
            raise InputError("not a tokenizer with features") from None
        return cls(Tokenizer.from_bytes(rest), Labels(names), separator)

    def to_bytes(self) -> bytes:
        """Returns the features as a line of JSON, and then the model of the source."""
        stored = {
            "format": _FORMAT,
            "separator": self.separator,
            "features": list(self.features.names),
        }
        return json.dumps(stored, ensure_ascii=False).encode() + b"\n" + self.source.to_bytes()

    @property
    def kind(self) -> Any:
        return self.source.kind

    @property
    def vocabulary_size(self) -> int:
        """Number of ids: those of the source, of an unknown feature, and of the features."""
        return self.source.vocabulary_size + self.num_features

    @property
    def num_features(self) -> int:
        """Number of the last ids: that of an unknown feature, and those of the features."""
        return 1 + len(self.features.names)

    @property
    def pieces(self) -> list[Piece]:
        """The pieces of the source, followed by the features, which are symbols."""
        names = ["<feature>", *self.features.names]
        return [*self.source.pieces, *(Piece(name, 0.0, True, True) for name in names)]

    def split(self, line: str) -> tuple[str, list[str]]:
        """Returns the source and the features of a line."""
        source, _, features = line.partition(_TAB)
        names = (name.strip() for name in features.split(self.separator))
        return source, [name for name in names if name]

    def unknown_features(self, lines: Iterable[str]) -> list[str]:
        """Returns the features of lines that are not in the training text, each once."""
        names = (name for line in lines for name in self.split(line)[1])
        return list(dict.fromkeys(name for name in names if name not in self._ids))

    def notice_of(self, lines: Sequence[str]) -> str | None:
        """Describes lines without features and unknown features; None if there are none."""
        filled = [line for line in lines if line.strip()]
        without = sum(_TAB not in line for line in filled)
        unknown = self.unknown_features(filled)
        parts = []
        if without:
            parts.append(f"{without:,} without features after a tab")
        if unknown:
            more = f" and {len(unknown) - 1:,} more" if len(unknown) > 1 else ""
            parts.append(f"the feature {unknown[0]!r}{more} is not in the training text")
        return "; ".join(parts) or None

    def encode(self, lines: Sequence[str]) -> list[list[int]]:
        """Encodes lines without begin and end tokens. A line with a blank source has no ids."""
        if isinstance(lines, str):
            raise TypeError("lines must be a list of strings, not one string: encode([line])")
        pairs = [self.split(line) for line in lines]
        rows = self.source.encode([source for source, _ in pairs])
        return [
            [*row, *(self._ids.get(name, self._unknown) for name in names)] if row else []
            for row, (_, names) in zip(rows, pairs, strict=True)
        ]

    def offsets(self, lines: Sequence[str]) -> list[list[tuple[int, int]]]:
        """Returns the character span of each token in its line; see `Tokenizer.offsets`."""
        pairs = [self.split(line) for line in lines]
        result = []
        for line, row, (source, names) in zip(
            lines, self.source.offsets([source for source, _ in pairs]), pairs, strict=True
        ):
            spans, begin = list(row), len(source) + 1
            for name in names if row else ():
                begin = line.index(name, begin)
                spans.append((begin, begin + len(name)))
                begin += len(name)
            result.append(spans)
        return result

    def decode(self, ids: Iterable[Iterable[int]]) -> list[str]:
        """Decodes ids to lines; see `Tokenizer.decode`. An unknown feature becomes "?"."""
        return ["".join(parts) for parts in self.surfaces(ids)]

    def surfaces(self, ids: Iterable[Iterable[int]]) -> list[list[str]]:
        """Returns the part of the decoded line that each token contributes."""
        rows = self._checked(ids)
        sources = [[token if token < self._unknown else 0 for token in row] for row in rows]
        result = []
        for row, parts in zip(rows, self.source.surfaces(sources), strict=True):
            before = _TAB
            for position, token in enumerate(row):
                if token >= self._unknown:
                    number = token - self._unknown - 1
                    name = "?" if number < 0 else self.features.names[number]
                    parts[position] = before + name
                    before = self.separator
            result.append(parts)
        return result


def source_of(line: str) -> str:
    """Returns the source of a line `source<TAB>features`."""
    return line.partition(_TAB)[0]


def plain_sources(lines: Sequence[str], tokenizer: Any) -> Sequence[str]:
    """Returns lines without the features and language tags that a tokenizer of sources reads."""
    if isinstance(tokenizer, FeatureTokenizer):
        lines = [source_of(line) for line in lines]
    return without_languages(lines, tokenizer.languages)


def feature_notice(lines: Sequence[str], tokenizer: Any) -> str | None:
    """Describes missing and unknown features of lines; None if there are none to describe."""
    return tokenizer.notice_of(lines) if isinstance(tokenizer, FeatureTokenizer) else None


def split_features(lines: Iterable[str]) -> tuple[list[str], list[str]]:
    """Returns the sources and the features of lines `source<TAB>features`."""
    parts = [line.partition(_TAB) for line in lines]
    return [source for source, _, _ in parts], [features for _, _, features in parts]


def is_feature_tokenizer(model: bytes) -> bool:
    """Tests if bytes may be output of `FeatureTokenizer.to_bytes`."""
    return model.startswith(f'{{"format": "{_FORMAT}"'.encode())
