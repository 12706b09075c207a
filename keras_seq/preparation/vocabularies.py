"""Learns tokenizers and label sets from the training text."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from keras_seq.preparation.files import Notice, PairCounts
from keras_seq.preparation.pretrained import read_word_pieces
from keras_seq.run import Vocabulary
from keras_seq.settings import SIDES, TASKS, Settings, Side, as_list, preset_directory
from keras_seq.text import (
    Example,
    InputError,
    Labels,
    PairFiles,
    Tokenizer,
    WordPieceTokenizer,
    import_tokenizer,
    words_of,
)

# If there are more different labels than this, and most occur once, they are not labels.
_MAX_RARE_LABELS = 100
# Number of labels in the notice.
_LISTED = 10
# Extra spaces of a source are kept if at least this share of its lines has them.
_MIN_SPACES_SHARE = 0.01

ReadPairs = Callable[[], Iterator[Example]]


def learn_vocabularies(
    settings: Settings, read: ReadPairs, files: PairFiles, notice: Notice, counts: PairCounts
) -> tuple[Tokenizer, Vocabulary]:
    """Learns source and target vocabulary; the same object if they are joint.

    `files` are the training files, for messages.
    """
    if TASKS[settings.task].has_labels:
        return _tokenizer_and_labels(settings, read, files, notice, counts)
    return _tokenizers(settings, read, files, notice, counts)


def check_labels(settings: Settings, read: ReadPairs, files: PairFiles, labels: Labels) -> None:
    """Raises InputError if the text has labels that a kept vocabulary does not have."""
    unit, counts = _count_labels(settings, read)
    unknown = sorted(set(counts) - set(labels.names))
    if unknown:
        raise InputError(
            f"{files}: {unit} {unknown[0]!r} is not among the {len(labels.names):,} of "
            f"training.from_run ({settings.training.from_run}), which are kept"
            + (f"; nor are {len(unknown) - 1:,} more" if len(unknown) > 1 else "")
        )


def _count_labels(settings: Settings, read: ReadPairs) -> tuple[str, Counter[str]]:
    """Returns the word for a label, and how often each label occurs."""
    tagged = settings.task == "tag"
    counts: Counter[str] = Counter()
    for pair in read():
        if pair.usable:
            counts.update(words_of(pair.target) if tagged else [pair.target])
    return "tag" if tagged else "label", counts


def with_learned(settings: Settings, source: Tokenizer, target: Vocabulary) -> Settings:
    """Updates the settings with the sizes and kinds of the learned vocabularies.

    A vocabulary may be smaller than requested. The kind of an imported one is in its file only.
    """
    tokenizer = settings.tokenizer
    learned: dict[Side, Tokenizer] = {
        side: vocabulary
        for side, vocabulary in zip(SIDES, (source, target), strict=True)
        # The settings do not describe the word pieces of a pretrained encoder.
        if isinstance(vocabulary, Tokenizer) and not isinstance(vocabulary, WordPieceTokenizer)
    }

    def values(side: Side) -> dict[str, Any]:
        vocabulary, requested = learned[side], tokenizer.of_side(side)
        imported = requested.model is not None
        kind = vocabulary.kind if imported else requested.kind
        form = vocabulary.rules.form if imported else requested.normalization
        size = min(requested.size or vocabulary.vocabulary_size, vocabulary.vocabulary_size)
        return {"size": size, "kind": kind, "normalization": form}

    if source is target or len(learned) == 1:
        side: Side = next(iter(learned), "source")
        update: dict[str, Any] = values(side) if learned else {}
    else:
        update = {
            side: getattr(tokenizer, side).model_copy(
                update={
                    key: value
                    for key, value in values(side).items()
                    if value != getattr(tokenizer, key)
                }
            )
            for side in learned
        }
    return settings.model_copy(update={"tokenizer": tokenizer.model_copy(update=update)})


def _tokenizers(
    settings: Settings, read: ReadPairs, files: PairFiles, notice: Notice, counts: PairCounts
) -> tuple[Tokenizer, Tokenizer]:
    def weighted() -> Iterator[Example]:
        # Pairs of weight 0 are not trained on. The tokenizer skips blank lines.
        return (pair for pair in read() if pair.weight)

    if settings.tokenizer.joint:
        if files.has_lines:
            lines: Iterator[str] = (pair.target for pair in weighted())
        else:
            lines = itertools.chain.from_iterable(pair[:2] for pair in weighted())
        name = "" if files.has_lines else "joint"
        joint = _learn(settings, lines, "target", name, str(files), notice, None)
        return joint, joint

    def learn(side: Side, lines: Iterator[str]) -> Tokenizer:
        where = f"{files}, {side}" if "pairs" in files.names else files.describe(side)
        keep_spaces = None if side == "target" else _keeps_spaces(counts)
        return _learn(settings, lines, side, side, where, notice, keep_spaces)

    return (
        _pretrained(settings, notice) or learn("source", (pair.source for pair in weighted())),
        learn("target", (pair.target for pair in weighted())),
    )


def _keeps_spaces(counts: PairCounts) -> bool:
    """Tests if extra spaces of the source are frequent enough to be intended.

    The target keeps all spaces, because the model must be able to produce each training target.
    """
    statistics = counts.source
    if statistics is None:
        return False
    return statistics.extra_spaces >= max(_MIN_SPACES_SHARE * statistics.lines, 1)


def _tokenizer_and_labels(
    settings: Settings, read: ReadPairs, files: PairFiles, notice: Notice, pair_counts: PairCounts
) -> tuple[Tokenizer, Labels]:
    unit, counts = _count_labels(settings, read)
    total = counts.total()
    if len(counts) < 2:
        only = f" ({next(iter(counts))!r})" if counts else ""
        raise InputError(f"{files}: {len(counts)} {unit}{only}, expected at least 2")
    if len(counts) > max(_MAX_RARE_LABELS, total // 2):
        raise InputError(
            f"{files}: {len(counts):,} different {unit}s among {total:,}: expected text<TAB>{unit} "
            "lines; are the columns the other way round?"
        )
    # Sorted, so that the order does not depend on that of the lines.
    labels = Labels(sorted(counts))
    texts = (pair.source for pair in read() if pair.weight)
    tokenizer = _pretrained(settings, notice) or _learn(
        settings, texts, "source", "", str(files), notice, _keeps_spaces(pair_counts)
    )
    listed = ", ".join(f"{name} {count:,}" for name, count in counts.most_common(_LISTED))
    more = f", and {len(counts) - _LISTED:,} more" if len(counts) > _LISTED else ""
    notice(f"{len(counts):,} {unit}s: {listed}{more}")
    return tokenizer, labels


def _pretrained(settings: Settings, notice: Notice) -> Tokenizer | None:
    """Returns the tokenizer of the pretrained encoder, if any."""
    if settings.training.from_hub is None:
        return None
    pieces = read_word_pieces(preset_directory(settings.training.from_hub))
    notice(f"source vocabulary of the encoder's {pieces.vocabulary_size:,} word pieces")
    return pieces


def _learn(
    settings: Settings,
    sentences: Iterator[str],
    side: Side,
    name: str,
    where: str,
    notice: Notice,
    keep_spaces: bool | None,
) -> Tokenizer:
    requested = settings.tokenizer.of_side(side)
    if requested.model is not None:
        tokenizer = import_tokenizer(requested.model, sentences)
        notice(f"{name} vocabulary of {tokenizer.vocabulary_size:,} of {requested.model}".lstrip())
        return tokenizer
    values: dict[str, Any] = requested.model_dump(exclude={"model", "symbols"})
    try:
        tokenizer = Tokenizer.train(
            sentences,
            **values,
            symbols=as_list(requested.symbols),
            keep_spaces=keep_spaces,
            # A size that the user gave is never changed.
            lower_if_small=not settings.tokenizer.asks_for_size(side),
            seed=settings.seed,
            notice=notice,
        )
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    notice(f"{name} vocabulary of {tokenizer.vocabulary_size:,} learned".lstrip())
    return tokenizer
