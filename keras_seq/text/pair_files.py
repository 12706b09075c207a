"""A parallel corpus in one file or many, with what goes line by line with it."""

import glob
import os
import stat
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .column_choice import LABELLED, PAIR, TAGGED, parse_columns
from .columns import Links, check_links, in_step, read_alignments, read_weights
from .errors import InputError, Notice
from .labelled_lines import read_labelled
from .reading import check_readable, read_lines, read_pairs
from .tables import read_table

Names = tuple[str, ...]


class Example(NamedTuple):
    """A pair of lines and what is known of it.

    Attributes:
        source: A line.
        target: Its counterpart.
        weight: What the pair counts in the loss; a pair of 2 counts as that pair twice.
        links: `(source word, target word)`, counted from 0.
        target_only: Whether there is no source, only text.
    """

    source: str
    target: str
    weight: float = 1.0
    links: Links = ()
    target_only: bool = False

    @property
    def usable(self) -> bool:
        """Whether there is text on both sides and the pair counts."""
        return bool(
            self.weight and self.target.strip() and (self.target_only or self.source.strip())
        )

    @property
    def key(self) -> str:
        """What must not be met in training if it is validated on."""
        return self.target if self.target_only else self.source


def expand_names(names: str | Sequence[str]) -> Names:
    """The files that a name, a pattern or a list of both stands for.

    Args:
        names: `"train.en"`, or `"train.*.en.gz"` for all files that match, sorted by
            name, or a list of such. A file whose name has `*`, `?` or `[` in it, and
            is there, is meant itself.

    Returns:
        The names, in the order given. Those without a pattern need not exist.

    Raises:
        InputError: If nothing matches a pattern.
    """
    found: list[str] = []
    for name in [names] if isinstance(names, str) else names:
        # A name may hold what no path can, such as NUL: let the reader say so.
        if "\0" in name or not glob.has_magic(name) or os.path.lexists(name):
            found.append(name)
            continue
        matches = sorted(glob.glob(name))
        if not matches:
            raise InputError(f"{name}: no file has a name like this")
        found += matches
    return tuple(found)


class PairFiles:
    """Parallel files, or files with a pair in each line, read as one text.

    Args:
        source, target: A name, a pattern or a list of them, as `expand_names` takes it. The
            first file of one goes line by line with the first of the other, and so on.
        pairs: The same, of files of `source<TAB>target` lines or of more columns, as `read_table`
            takes them, in place of the two.
        text: The same, of files of lines that have no source, in place of all three.
        autoencoding: Whether a line of `text` is its own source.
        data: The same, of files of `text<TAB>label` lines, in place of all four.
        tagged: Whether there is a tag for each word in place of a label.
        columns: The columns of `pairs` or `data`, as `"source=1,target=3"`; see `read_table`.
        weights: The same, of files with a number for each line of the text.
        alignments: The same, of files with the links of each line of the text.
        file_weights: One number for each file, by which all its pairs are weighted.
        option: What an option for `source` would be called, without the name; for messages.

    Raises:
        InputError: If too little or too much is given, if nothing matches a pattern, or if
            there are not as many files of one kind as of the other.

    Example:

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for number in (1, 2):
    ...         _ = (pathlib.Path(folder) / f"{number}.tsv").write_text(f"a{number}\\tb\\n")
    ...     files = PairFiles(pairs=f"{folder}/?.tsv", file_weights=[1, 0.5])
    ...     [(example.source, example.weight) for example in files.read()]
    [('a1', 1.0), ('a2', 0.5)]
    """

    def __init__(
        self,
        *,
        source: str | Sequence[str] | None = None,
        target: str | Sequence[str] | None = None,
        pairs: str | Sequence[str] | None = None,
        text: str | Sequence[str] | None = None,
        data: str | Sequence[str] | None = None,
        weights: str | Sequence[str] | None = None,
        alignments: str | Sequence[str] | None = None,
        file_weights: Sequence[float] | None = None,
        tagged: bool = False,
        columns: str | None = None,
        autoencoding: bool = False,
        option: str = "--",
    ) -> None:
        if text is not None and not source is target is pairs is None:
            raise InputError(
                f"both {option}text and {option}source, {option}target or {option}pairs given: "
                "choose one"
            )
        if pairs is not None and (source is not None or target is not None):
            raise InputError(
                f"both {option}pairs and {option}source/{option}target given: choose one"
            )
        if data is text is pairs is None and (source is None or target is None):
            lacking = "source" if source is None else "target"
            other = "target" if source is None else "source"
            raise InputError(f"{option}{other} without {option}{lacking}: both are needed")
        given = {
            "source": source,
            "target": target,
            "pairs": pairs,
            "text": text,
            "data": data,
            "weights": weights,
            "alignments": alignments,
        }
        self.names: dict[str, Names] = {
            key: expand_names(names) for key, names in given.items() if names is not None
        }
        first = next(iter(self.names))
        self.count = len(self.names[first])
        for key, names in self.names.items():
            if len(names) != self.count:
                raise InputError(
                    f"{option}{first} names {_files(self.count)}, but {option}{key} "
                    f"{_files(len(names))}: file N of one must go with file N of the other"
                )
        if file_weights is not None and len(file_weights) != self.count:
            raise InputError(
                f"data.file_weights has {len(file_weights)} numbers for {_files(self.count)}: "
                "give one for each"
            )
        if columns is not None:
            labelled = TAGGED if tagged else LABELLED
            parse_columns(columns, labelled if self.is_labelled else PAIR)
        self.tagged = tagged
        self.columns = columns
        self.autoencoding = autoencoding
        self.file_weights = None if file_weights is None else tuple(map(float, file_weights))

    @property
    def has_weights(self) -> bool:
        """Whether pairs are weighted."""
        return "weights" in self.names or self.file_weights is not None

    @property
    def target_only(self) -> bool:
        """Whether there is text alone, and no source."""
        return self.has_lines and not self.autoencoding

    @property
    def has_lines(self) -> bool:
        """Whether there are lines in place of pairs."""
        return "text" in self.names

    @property
    def unit(self) -> str:
        """What there are many of, in a word."""
        return "line" if self.has_lines or self.is_labelled else "pair"

    @property
    def is_labelled(self) -> bool:
        """Whether targets are labels."""
        return "data" in self.names

    @property
    def has_alignments(self) -> bool:
        """Whether words are linked."""
        return "alignments" in self.names

    def read(self, notice: Notice | None = None) -> Iterator[Example]:
        """The pairs of all files, blank ones included.

        Args:
            notice: As for `read_lines`.

        Raises:
            InputError: While iterating, for whatever is wrong with a file.
        """
        for index in range(self.count):
            yield from self._read_file(index, notice)

    def read_usable(self, notice: Notice | None = None) -> Iterator[Example]:
        """The pairs with text on both sides and a weight above 0."""
        return (example for example in self.read(notice) if example.usable)

    def check(self) -> None:
        """InputError for a file that cannot be opened, or cannot be read more than once."""
        for name in (name for names in self.names.values() for name in names):
            check_readable(name)
            if name == "-" or stat.S_ISFIFO(os.stat(name).st_mode):
                shown = "standard input" if name == "-" else name
                raise InputError(f"{shown}: training reads its text more than once: name a file")

    def shown(self, key: str) -> str:
        """The files of one kind in few words."""
        names = self.names[key]
        return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1:,} more"

    def __str__(self) -> str:
        text = [key for key in ("source", "target", "pairs", "text", "data") if key in self.names]
        return ", ".join(self.shown(key) for key in text)

    def _read_file(self, index: int, notice: Notice | None) -> Iterator[Example]:
        file = {key: names[index] for key, names in self.names.items()}
        scale = 1.0 if self.file_weights is None else self.file_weights[index]
        text: Iterator[tuple[str, str]]
        if "text" in file:
            lines = read_lines(file["text"], notice=notice)
            text = ((line if self.autoencoding else "", line) for line in lines)
        elif "pairs" in file:
            text = read_table(file["pairs"], columns=self.columns, notice=notice)
        elif "data" in file:
            text = read_labelled(
                file["data"], tagged=self.tagged, columns=self.columns, notice=notice
            )
        else:
            text = read_pairs(file["source"], file["target"], notice=notice)
        if not self.has_weights and not self.has_alignments:
            for pair in text:
                yield Example(*pair, target_only=self.target_only)
            return
        names = [next(file[key] for key in ("text", "pairs", "data", "source") if key in file)]
        columns: list[Iterator] = [text]
        if "weights" in file:
            names.append(file["weights"])
            columns.append(read_weights(file["weights"], notice=notice))
        if "alignments" in file:
            names.append(file["alignments"])
            columns.append(read_alignments(file["alignments"], notice=notice))
        for number, ((source, target), *rest) in enumerate(in_step(names, columns), 1):
            weight = scale * rest.pop(0) if "weights" in file else scale
            links = rest.pop(0) if "alignments" in file else ()
            check_links(f"{file.get('alignments')}:{number}", links, source, target)
            yield Example(source, target, weight, links, self.target_only)


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"
