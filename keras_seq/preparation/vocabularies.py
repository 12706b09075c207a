"""Tokenizers and labels, learned from the text of a training."""

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

# A text with more labels than this, most of them seen once, has none.
_FEW_LABELS = 100
# How many labels are named in a line.
_SHOWN = 10
# Extra spaces of a source are kept if at least this share of its lines has them.
_MEANT_SPACES = 0.01


def learn_vocabularies(
    settings: Settings,
    kept: Callable[[], Iterator[Example]],
    train: PairFiles,
    say: Notice,
    counts: PairCounts,
) -> tuple[Tokenizer, Vocabulary]:
    """Those of source and target: one object where the vocabulary is joint.

    Args:
        settings: Of the run.
        kept: Reads the pairs that are trained on.
        train: Where they are, for messages.
        say: Called with a line for each vocabulary.
        counts: Of the training text.

    Raises:
        InputError: Too little text, or too small a size; labels that are none.
    """
    if TASKS[settings.task].has_labels:
        return _tokenizer_and_labels(settings, kept, train, say, counts)
    return _train_tokenizers(settings, kept, train, say, counts)


def check_labels(
    settings: Settings, kept: Callable[[], Iterator[Example]], train: PairFiles, labels: Labels
) -> None:
    """InputError where what is trained on has labels that a kept vocabulary has not."""
    what, counts = _counted(settings, kept)
    unknown = sorted(set(counts) - set(labels.names))
    if unknown:
        raise InputError(
            f"{train}: {what} {unknown[0]!r} is not among the {len(labels.names):,} of "
            f"training.from_run ({settings.training.from_run}), which are kept"
            + (f"; nor are {len(unknown) - 1:,} more" if len(unknown) > 1 else "")
        )


def _counted(settings: Settings, kept: Callable[[], Iterator[Example]]) -> tuple[str, Counter[str]]:
    """What labels are called, and how often each comes."""
    tagged = settings.task == "tag"
    counts: Counter[str] = Counter()
    for pair in kept():
        if pair.usable:
            counts.update(words_of(pair.target) if tagged else [pair.target])
    return "tag" if tagged else "label", counts


def with_learned(settings: Settings, source: Tokenizer, target: Vocabulary) -> Settings:
    """Settings with the sizes and kinds of the vocabularies as they came out.

    A vocabulary may be smaller than asked for; of an imported one only the file knows the kind.
    """
    tokenizer = settings.tokenizer
    found: dict[Side, Tokenizer] = {
        side: vocabulary
        for side, vocabulary in zip(SIDES, (source, target), strict=True)
        # Word pieces of a pretrained encoder have the size that they have.
        if isinstance(vocabulary, Tokenizer) and not isinstance(vocabulary, WordPieceTokenizer)
    }

    def values(side: Side) -> dict[str, Any]:
        one, asked = found[side], tokenizer.of_side(side)
        kind = one.kind if asked.model is not None else asked.kind
        form = one.rules.form if asked.model is not None else asked.normalization
        size = min(asked.size or one.vocabulary_size, one.vocabulary_size)
        return {"size": size, "kind": kind, "normalization": form}

    if source is target or len(found) == 1:
        side: Side = next(iter(found), "source")
        update: dict[str, Any] = values(side) if found else {}
    else:
        update = {
            side: getattr(tokenizer, side).model_copy(
                update={
                    key: value
                    for key, value in values(side).items()
                    if value != getattr(tokenizer, key)
                }
            )
            for side in found
        }
    return settings.model_copy(update={"tokenizer": tokenizer.model_copy(update=update)})


def _train_tokenizers(
    settings: Settings,
    kept: Callable[[], Iterator[Example]],
    train: PairFiles,
    say: Notice,
    counts: PairCounts,
) -> tuple[Tokenizer, Tokenizer]:
    def counting() -> Iterator[Example]:
        # What weighs nothing is not trained on; blank lines are skipped by the tokenizer.
        return (pair for pair in kept() if pair.weight)

    if settings.tokenizer.joint:
        if train.has_lines:
            lines: Iterator[str] = (pair.target for pair in counting())
        else:
            lines = itertools.chain.from_iterable(pair[:2] for pair in counting())
        name = "" if train.has_lines else "joint"
        joint = _learn(settings, lines, "target", name, str(train), say, None)
        return joint, joint

    def learned(side: Side, lines: Iterator[str]) -> Tokenizer:
        name = f"{train}, {side}" if "pairs" in train.names else train.shown(side)
        keep = None if side == "target" else _keeps_spaces(counts)
        return _learn(settings, lines, side, side, name, say, keep)

    return (
        _pretrained(settings, say) or learned("source", (pair.source for pair in counting())),
        learned("target", (pair.target for pair in counting())),
    )


def _keeps_spaces(counts: PairCounts) -> bool:
    """Whether extra spaces of the source mean something: they are no rare accident.

    Of the target every one is kept, because a training target must be possible to write.
    """
    statistics = counts.source
    if statistics is None:
        return False
    return statistics.extra_spaces >= max(_MEANT_SPACES * statistics.lines, 1)


def _tokenizer_and_labels(
    settings: Settings,
    kept: Callable[[], Iterator[Example]],
    train: PairFiles,
    say: Notice,
    counted: PairCounts,
) -> tuple[Tokenizer, Labels]:
    what, counts = _counted(settings, kept)
    total = counts.total()
    if len(counts) < 2:
        only = f" ({next(iter(counts))!r})" if counts else ""
        raise InputError(f"{train}: {len(counts)} {what}{only}, expected 2 or more to tell apart")
    if len(counts) > max(_FEW_LABELS, total // 2):
        raise InputError(
            f"{train}: {len(counts):,} different {what}s among {total:,}: expected text<TAB>{what} "
            "lines; are the columns the other way round?"
        )
    # By name, so that the order does not depend on that of the lines.
    labels = Labels(sorted(counts))
    texts = (pair.source for pair in kept() if pair.weight)
    tokenizer = _pretrained(settings, say) or _learn(
        settings, texts, "source", "", str(train), say, _keeps_spaces(counted)
    )
    shown = ", ".join(f"{name} {count:,}" for name, count in counts.most_common(_SHOWN))
    more = f", and {len(counts) - _SHOWN:,} more" if len(counts) > _SHOWN else ""
    say(f"{len(counts):,} {what}s: {shown}{more}")
    return tokenizer, labels


def _pretrained(settings: Settings, say: Notice) -> Tokenizer | None:
    """The tokenizer of the encoder that the training starts from."""
    if settings.training.from_hub is None:
        return None
    pieces = read_word_pieces(preset_directory(settings.training.from_hub))
    say(f"source vocabulary of the encoder's {pieces.vocabulary_size:,} word pieces")
    return pieces


def _learn(
    settings: Settings,
    sentences: Iterator[str],
    side: Side,
    name: str,
    where: str,
    say: Notice,
    keep_spaces: bool | None,
) -> Tokenizer:
    asked = settings.tokenizer.of_side(side)
    if asked.model is not None:
        tokenizer = import_tokenizer(asked.model, sentences)
        say(f"{name} vocabulary of {tokenizer.vocabulary_size:,} of {asked.model}".lstrip())
        return tokenizer
    values: dict[str, Any] = asked.model_dump(exclude={"model", "symbols"})
    try:
        tokenizer = Tokenizer.train(
            sentences,
            **values,
            symbols=as_list(asked.symbols),
            keep_spaces=keep_spaces,
            # A size that somebody asked for is not changed behind their back.
            lower_if_small=not settings.tokenizer.asks_for_size(side),
            seed=settings.seed,
            notice=say,
        )
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    say(f"{name} vocabulary of {tokenizer.vocabulary_size:,} learned".lstrip())
    return tokenizer
