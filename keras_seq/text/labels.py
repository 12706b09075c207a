"""The label set of a classifier or tagger."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .errors import InputError
from .special_ids import EOS_ID, UNK_ID

# Labels follow the special ids.
FIRST_LABEL = EOS_ID + 1
# Bounds the memory of an untrusted file.
MAX_LABELS = 65_536
_MAX_CHARACTERS = 1_000


class Labels:
    """The distinct labels of a classifier or tagger, in a fixed order.

    Label n has the id n + 4, because the special ids come first as in a `Tokenizer`. Id 1 stands
    for an unknown label. A label is not blank and has no line breaks.

    Example:

    >>> labels = Labels(["bad", "good"])
    >>> labels.ids(["good", "bad", "unheard-of"])
    [5, 4, 1]
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        if not 0 < len(self.names) <= MAX_LABELS:
            raise InputError(f"{len(self.names):,} labels, expected from 1 to {MAX_LABELS:,}")
        self._ids = {name: FIRST_LABEL + number for number, name in enumerate(self.names)}
        if len(self._ids) < len(self.names):
            raise InputError("two labels are the same")
        for name in self.names:
            if name != name.strip() or not name or len(name) > _MAX_CHARACTERS or "\n" in name:
                raise InputError(
                    f"received {name[:60]!r} as a label, expected text of up to "
                    f"{_MAX_CHARACTERS:,} characters on one line, no white space around it"
                )

    @classmethod
    def from_bytes(cls, content: bytes) -> Labels:
        """Builds labels from untrusted output of `to_bytes`; raises InputError."""
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            raise InputError("not UTF-8 text") from None
        if not text.endswith("\n"):
            raise InputError("not a list of labels, or truncated")
        return cls(text[:-1].split("\n"))

    def to_bytes(self) -> bytes:
        """Returns the labels, one per line."""
        return "".join(f"{name}\n" for name in self.names).encode()

    @property
    def vocabulary_size(self) -> int:
        """Number of ids, including the special ids."""
        return FIRST_LABEL + len(self.names)

    def ids(self, names: Iterable[str]) -> list[int]:
        """Returns the ids of labels, 1 for unknown labels."""
        return [self._ids.get(name, UNK_ID) for name in names]

    def name(self, id_: int) -> str:
        """Returns the label of an id; "" if the id has no label."""
        number = int(id_) - FIRST_LABEL
        return self.names[number] if 0 <= number < len(self.names) else ""
