"""Labels and their ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .errors import InputError
from .special_ids import EOS_ID, UNK_ID

# The first id of a label; what is below is as of a `Tokenizer`: 0 pad, 1 unknown.
FIRST_LABEL = EOS_ID + 1
# Far above what anybody has, and not enough to fill a memory.
MAX_LABELS = 65_536
_MAX_CHARACTERS = 1_000


class Labels:
    """What a classifier or a tagger may answer, in a fixed order.

    Label n has the id n + 4, as a piece of a `Tokenizer` has, so that labels are
    stored as targets are; 1 is a label that is not known.

    Args:
        names: Different, not blank, on one line each.

    Raises:
        InputError: No, too many, equal or improper names.

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
        """Makes labels of what `to_bytes` gave, which need not be trusted.

        Raises:
            InputError: If it is something else.
        """
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError:
            raise InputError("not UTF-8 text") from None
        if not text.endswith("\n"):
            raise InputError("not a list of labels, or not whole")
        return cls(text[:-1].split("\n"))

    def to_bytes(self) -> bytes:
        """The names, one a line."""
        return "".join(f"{name}\n" for name in self.names).encode()

    @property
    def vocabulary_size(self) -> int:
        """The number of ids; each id is smaller."""
        return FIRST_LABEL + len(self.names)

    def ids(self, names: Iterable[str]) -> list[int]:
        """The ids of some labels, 1 for those that are not known."""
        return [self._ids.get(name, UNK_ID) for name in names]

    def name(self, id_: int) -> str:
        """The label of an id; "" for one that is none."""
        number = int(id_) - FIRST_LABEL
        return self.names[number] if 0 <= number < len(self.names) else ""
