"""Text to a run that is ready to train: vocabulary, token ids, validation text.

Everything that can be wrong with a user's files is found here, before Keras
is imported.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from keras_seq.data import CorpusCounts, TokenPair, pack, write_corpus
from keras_seq.preparation.concatenation import Concatenation
from keras_seq.preparation.encoding import Encoded, PairEncoder, encode_here
from keras_seq.preparation.files import (
    PairCounts,
    count_pairs,
    training_files,
    validation_files,
    where,
)
from keras_seq.preparation.held_out import hold_out
from keras_seq.preparation.record import make_record
from keras_seq.preparation.reporting import LostTargets, report, report_unknown_labels
from keras_seq.preparation.sharing import share_prepared, with_prepared
from keras_seq.preparation.units import with_units
from keras_seq.preparation.vocabularies import check_labels, learn_vocabularies, with_learned
from keras_seq.preparation.warm_start import (
    check_initial_checkpoint,
    copy_initial_checkpoint,
    keeps_vocabulary,
    vocabulary_run,
)
from keras_seq.run import Run, check_new
from keras_seq.settings import TASKS, Settings
from keras_seq.storage import DirectoryLock, reason
from keras_seq.text import Example, InputError, Labels, Tokenizer

Notice = Callable[[str], None]

Tokenizers = tuple[Tokenizer, Tokenizer]


class Labour(Protocol):
    """Who does what takes long in a preparation; see `keras_seq.jobs`."""

    def tokenizers(self, settings: Settings, learn: Callable[[], Tokenizers]) -> Tokenizers:
        """The tokenizers of source and target, by `learn` if they are not kept."""

    def encode(self, encoder: PairEncoder, pairs: Iterator[Example]) -> Iterator[Encoded]:
        """The ids of all pairs, in their order."""

    def finish(self) -> None:
        """All is written."""


def prepare_run(
    settings: Settings,
    directory: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    notice: Notice | None = None,
    counts: PairCounts | None = None,
    lock: DirectoryLock | None = None,
    labour: Labour | None = None,
) -> Run:
    """Makes a run directory that is ready to train; leaves none behind if it fails.

    Args:
        settings: With the training files in `settings.data`.
        directory: A new or empty directory.
        overwrite: Whether an earlier run there may be deleted.
        notice: Called with a line for each thing done.
        counts: What `count_pairs` said, if the text was read already.
        lock: That of the directory, if this process holds it already.
        labour: Who learns tokenizers and encodes the text; by default this process.

    Returns:
        The run, locked for this process.

    Raises:
        InputError: Wrong files or a directory that cannot be used.
    """
    check_new(directory, overwrite=overwrite)
    _check_scoring(settings)
    validation_files(settings.data, settings.task)
    check_initial_checkpoint(settings, directory, notice)
    if settings.data.prepared is not None:
        shared = with_prepared(settings)
        settings, counts = shared.settings, shared.counts
    counts = counts or count_pairs(settings.data, notice, settings.task)
    if settings.data.prepared is None and not keeps_vocabulary(settings):
        settings = with_units(settings, counts, notice)
    lock = lock or _lock_new(Path(directory))
    # Looked at again: another process may have made a run here in the meantime.
    run = Run.create(directory, settings, overwrite=overwrite, notice=notice, lock=lock)
    try:
        if settings.data.prepared is None:
            prepare(settings, run, notice, counts=counts, labour=labour)
        else:
            share_prepared(run, notice)
            copy_initial_checkpoint(run, notice)
        record = make_record(run, settings.data, settings.tokenizer, counts)
        run.write_preparation(record)
        if labour is not None:
            labour.finish()
    except BaseException:
        run.discard()
        raise
    return run


def _check_scoring(settings: Settings) -> None:
    """InputError if the tokenizer of BLEU needs a package or a file that is missing."""
    tokenize = settings.score.tokenize
    if tokenize == "auto":
        return
    # sacreBLEU takes a moment to import.
    from keras_seq.scoring import bleu_tokenizer

    try:
        bleu_tokenizer(tokenize)
    except ValueError as error:
        raise InputError(f"score.tokenize: {error}") from None


def _lock_new(directory: Path) -> DirectoryLock:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{directory}: cannot be made: {reason(error)}") from None
    return DirectoryLock(directory)


def prepare(
    settings: Settings,
    run: Run,
    notice: Notice | None = None,
    *,
    counts: PairCounts | None = None,
    labour: Labour | None = None,
) -> CorpusCounts:
    """Fills a new run: tokenizers, token ids of both sets, text to validate on.

    Text is read as a stream and more than once, so a corpus need not fit in
    memory. Without validation files a sample is held out of the training
    text, drawn from the seed; pairs with the same source leave the training text too.

    Args:
        settings: With the training files in `settings.data`.
        run: Made by `Run.create`; its settings are replaced where the
            vocabulary came out smaller than wanted.
        notice: Called with a line for each thing done.
        counts: What `count_pairs` said, if the text was read already.
        labour: Who learns tokenizers and encodes the text; by default this process.

    Returns:
        The counts of the pairs trained on.

    Raises:
        InputError: Wrong files, or no pair left to train on.
    """
    say = notice or (lambda line: None)
    # Too little work for several workers.
    labelled = TASKS[settings.task].has_labels
    counts = counts or count_pairs(settings.data, say, settings.task)
    train = training_files(settings.data, settings.task)
    valid_files = validation_files(settings.data, settings.task)
    if valid_files is None:
        valid, kept = hold_out(train, counts, settings.seed, say)
    else:
        valid, kept = list(valid_files.read_usable(say)), train.read
        if not valid:
            raise InputError(
                f"{valid_files}: no {train.unit} to validate on has text{where(valid_files)}"
            )
    base = vocabulary_run(settings)
    if base is not None:
        source, target = base.vocabularies
        if isinstance(target, Labels):
            check_labels(settings, kept, train, target)
        settings = settings.model_copy(update={"tokenizer": base.settings.tokenizer})
        run.update_settings(settings)
        say(f"the vocabulary of {base.path} is kept")
    else:

        def learn() -> Any:
            return learn_vocabularies(settings, kept, train, say, counts)

        source, target = labour.tokenizers(settings, learn) if labour and not labelled else learn()
    if base is None:
        run.update_settings(with_learned(settings, source, target))
    run.save_vocabularies(source, target)
    copy_initial_checkpoint(run, say)
    data = settings.data
    autoencoding = TASKS[settings.task].autoencoding
    lengths: dict[str, Any] = {
        "max_source_length": data.max_target_length if autoencoding else data.max_source_length,
        "max_target_length": data.max_source_length if labelled else data.max_target_length,
        "vocabulary_size": max(source.vocabulary_size, target.vocabulary_size),
        "target_only": train.target_only,
    }
    encoder = TASKS[settings.task].encoder(settings, source, target, kept)
    linked = broken = 0
    lost = LostTargets()

    def tokens() -> Iterator[TokenPair]:
        nonlocal linked, broken
        if labour is not None and isinstance(encoder, PairEncoder):
            every = labour.encode(encoder, kept())
        else:
            every = encode_here(encoder, kept())
        for encoded in every:
            linked += encoded.linked
            broken += encoded.broken
            lost.add(encoded)
            yield from encoded.pairs

    joining = Concatenation(
        data.concatenation, data.max_source_length, data.max_target_length, settings.seed
    )

    def pieces() -> Iterator[TokenPair]:
        lines = (pair.target for pair in tokens() if len(pair.target))
        return (TokenPair((), piece) for piece in pack(lines, data.max_target_length))

    written = write_corpus(
        run.train_directory,
        pieces() if data.packed else joining(tokens()),
        weights=train.has_weights or data.class_weights != "none",
        alignments=train.has_alignments,
        packed=data.packed or labelled,
        **lengths,
    )
    own = replace(written, kept=written.kept - joining.added)
    report("training", own, settings, train, say)
    if joining.added:
        say(
            f"{joining.added:,} training pairs added, two pairs joined in each (data.concatenation)"
        )
    if lost.count:
        say(lost.text)
    if broken:
        say(
            f"alignments: {broken:,} of {linked:,} pairs have links to words that leave no tokens; "
            "without these links"
        )
    on_valid = write_corpus(
        run.valid_directory,
        itertools.chain.from_iterable(encoded.pairs for encoded in encode_here(encoder, valid)),
        packed=labelled,
        **lengths,
    )
    report("validation", on_valid, settings, valid_files or train, say)
    if isinstance(target, Labels):
        report_unknown_labels(valid, target, say, tagged=settings.task == "tag")
    run.save_valid_lines((pair.source for pair in valid), (pair.target for pair in valid))
    return written
