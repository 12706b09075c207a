"""A parallel corpus in one or several files, with optional weights and alignments."""

import glob
import itertools
import os
import stat
from collections.abc import Iterator, Sequence, Set
from typing import NamedTuple

from .column_choice import LABELED, PAIR, TAGGED, parse_columns
from .columns import Links, check_links, read_alignments, read_weights
from .errors import InputError, Notice
from .labeled_lines import read_labeled
from .reading import check_readable, display_name, read_lines, read_pairs, zip_lines
from .tables import read_table

FileNames = str | Sequence[str]

_TEXTS = ("source", "target", "pairs", "text", "labeled")
_FILES = (*_TEXTS, "weights", "alignments")


class Example(NamedTuple):
    """A pair of lines with its weight and word alignment.

    A pair of weight 2 counts like two equal pairs. `links` are pairs `(source word, target word)`,
    counted from 0. `target_only` is True if there is no source, as for a language model.
    """

    source: str
    target: str
    weight: float = 1.0
    links: Links = ()
    target_only: bool = False

    @property
    def usable(self) -> bool:
        """True if both sides have text and the weight is not 0."""
        has_source = self.target_only or self.source.strip()
        return bool(self.weight and self.target.strip() and has_source)

    @property
    def key(self) -> str:
        """The text that must not occur in both training and validation data."""
        return self.target if self.target_only else self.source


def expand_names(names: FileNames) -> tuple[str, ...]:
    """Expands glob patterns such as `"train.*.en.gz"`; the matches are sorted by name.

    The name of an existing file that contains `*`, `?` or `[` is not a pattern. Names without a
    pattern need not exist. Raises InputError if a pattern matches no file.
    """
    expanded: list[str] = []
    for name in [names] if isinstance(names, str) else names:
        # Keep a name with a NUL. No path may contain it, and the reader reports the error.
        if "\0" in name or not glob.has_magic(name) or os.path.lexists(name):
            expanded.append(name)
            continue
        matches = sorted(glob.glob(name))
        if not matches:
            raise InputError(f"{name}: no file has a name like this")
        expanded += matches
    return tuple(expanded)


class PairFiles:
    """A parallel corpus in one or several files, with optional weights and alignments.

    The text is given by one of four options: `source` and `target`, `pairs`, `text`, or `labeled`.
    File N of one option belongs to file N of all other options.

    Args:
        source, target: Parallel files, as for `expand_names`.
        pairs, labeled: Files of `source<TAB>target` or `text<TAB>label` lines, or other tables, as
            for `read_table`.
        text: Files of lines without a source, as for a language model.
        autoencoding: Boolean, whether each line of `text` is also its source.
        tagged: Boolean, whether `labeled` has one tag per word instead of a label.
        columns: The columns of `pairs` or `labeled`, as `"source=1,target=3"`.
        weights: Files with one number per line of the text.
        alignments: Files with the word alignment of each line of the text.
        file_weights: One number per file, which multiplies the weights of its pairs.
        option: Prefix of the options in error messages.

    Raises:
        InputError: If not exactly one of the four options is given, a pattern matches no file, or
            the options have different numbers of files.

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
        file_weights: Sequence[float] | None = None,
        tagged: bool = False,
        columns: str | None = None,
        autoencoding: bool = False,
        option: str = "--",
        **files: FileNames | None,
    ) -> None:
        if unknown := files.keys() - set(_FILES):
            raise TypeError(f"unknown option {min(unknown)!r}, expected {', '.join(_FILES)}")
        texts = {key: names for key in _FILES if (names := files.get(key)) is not None}
        _check_options(texts.keys(), option)
        self.names = {key: expand_names(names) for key, names in texts.items()}
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
            roles = TAGGED if tagged else LABELED
            parse_columns(columns, roles if self.is_labeled else PAIR)
        self.tagged = tagged
        self.columns = columns
        self.autoencoding = autoencoding
        self.file_weights = None if file_weights is None else tuple(map(float, file_weights))

    @property
    def has_weights(self) -> bool:
        return "weights" in self.names or self.file_weights is not None

    @property
    def target_only(self) -> bool:
        """True if there is no source."""
        return self.has_lines and not self.autoencoding

    @property
    def has_lines(self) -> bool:
        """True if the corpus has lines instead of pairs."""
        return "text" in self.names

    @property
    def unit(self) -> str:
        """The unit of the corpus: `"line"` or `"pair"`."""
        return "line" if self.has_lines or self.is_labeled else "pair"

    @property
    def is_labeled(self) -> bool:
        """True if the targets are labels or tags."""
        return "labeled" in self.names

    @property
    def has_features(self) -> bool:
        """True if the sources are followed by a tab and features; see `FeatureTokenizer`."""
        if self.columns is None or self.is_labeled:
            return False
        return parse_columns(self.columns, PAIR).has_features

    @property
    def has_languages(self) -> bool:
        """True if the sources begin with the tag of a target language; see `add_language`."""
        if self.columns is None or self.is_labeled:
            return False
        return parse_columns(self.columns, PAIR).has_languages

    @property
    def has_alignments(self) -> bool:
        return "alignments" in self.names

    def read(self, notice: Notice | None = None) -> Iterator[Example]:
        """Yields the pairs of all files, including blank pairs."""
        for index in range(self.count):
            yield from self._read_file(index, notice)

    def read_usable(self, notice: Notice | None = None) -> Iterator[Example]:
        """Yields the pairs with text on both sides and a weight above 0."""
        return (example for example in self.read(notice) if example.usable)

    def check(self) -> None:
        """Raises InputError if a file cannot be opened, or cannot be read more than once."""
        for name in itertools.chain.from_iterable(self.names.values()):
            check_readable(name)
            if name == "-" or stat.S_ISFIFO(os.stat(name).st_mode):
                raise InputError(
                    f"{display_name(name)}: the text is read more than once: name a file"
                )

    def describe(self, key: str) -> str:
        """Returns a short description of the files of one option."""
        names = self.names[key]
        return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1:,} more"

    def __str__(self) -> str:
        return ", ".join(self.describe(key) for key in _TEXTS if key in self.names)

    def _read_file(self, index: int, notice: Notice | None) -> Iterator[Example]:
        file = {key: names[index] for key, names in self.names.items()}
        scale = 1.0 if self.file_weights is None else self.file_weights[index]
        text: Iterator[tuple[str, str]]
        if "text" in file:
            lines = read_lines(file["text"], notice=notice)
            text = ((line if self.autoencoding else "", line) for line in lines)
        elif "pairs" in file:
            text = read_table(file["pairs"], columns=self.columns, notice=notice)
        elif "labeled" in file:
            text = read_labeled(
                file["labeled"], tagged=self.tagged, columns=self.columns, notice=notice
            )
        else:
            text = read_pairs(file["source"], file["target"], notice=notice)
        if not self.has_weights and not self.has_alignments:
            for pair in text:
                yield Example(*pair, target_only=self.target_only)
            return
        names = [next(iter(file.values()))]
        columns: list[Iterator] = [text]
        for key, read in (("weights", read_weights), ("alignments", read_alignments)):
            if key in file:
                names.append(file[key])
                columns.append(read(file[key], notice=notice))
        for number, ((source, target), *rest) in enumerate(zip_lines(names, columns), 1):
            weight = scale * rest.pop(0) if "weights" in file else scale
            links = rest.pop(0) if "alignments" in file else ()
            check_links(f"{file.get('alignments')}:{number}", links, source, target)
            yield Example(source, target, weight, links, self.target_only)


def _check_options(names: Set[str], option: str) -> None:
    """Raises InputError unless the options define exactly one text."""
    both = sorted({"source", "target"} & names)
    if "text" in names and (both or "pairs" in names):
        raise InputError(
            f"both {option}text and {option}source, {option}target or {option}pairs given: "
            "choose one"
        )
    if "pairs" in names and both:
        raise InputError(f"both {option}pairs and {option}source/{option}target given: choose one")
    if len(both) < 2 and not {"labeled", "text", "pairs"} & names:
        missing, present = ("target", "source") if both == ["source"] else ("source", "target")
        raise InputError(f"{option}{present} without {option}{missing}: both are needed")


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"
