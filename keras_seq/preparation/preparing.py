"""Prepares a run; finds all errors in the user's files before Keras is imported."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

from keras_seq.data import TokenPair, pack, write_corpus
from keras_seq.preparation.concatenation import Concatenation, check_concatenation
from keras_seq.preparation.encoding import Encoded, Encoder, PairEncoder, encode_here
from keras_seq.preparation.files import (
    PairCounts,
    count_pairs,
    required_sides,
    training_files,
    validation_files,
)
from keras_seq.preparation.held_out import HeldOutEnd, HeldOutText
from keras_seq.preparation.record import make_record
from keras_seq.preparation.reporting import EncodingReport, report, report_unknown_labels
from keras_seq.preparation.share_of_text import first_share, random_share
from keras_seq.preparation.sharing import SharedText, share_prepared, with_prepared
from keras_seq.preparation.teacher import copy_teacher, open_teacher
from keras_seq.preparation.units import check_whole_words, with_units
from keras_seq.preparation.vocabularies import VocabularyLearner, check_labels, with_learned
from keras_seq.preparation.warm_start import (
    check_initial_checkpoint,
    copy_initial_checkpoint,
    keeps_vocabulary,
    starts_with_vocabulary,
)
from keras_seq.run import Run, Vocabulary, check_new, lock_directory, with_languages_of
from keras_seq.settings import TASKS, Settings
from keras_seq.storage import DirectoryLock
from keras_seq.text import (
    Example,
    InputError,
    Labels,
    Notice,
    Tokenizer,
    feature_notice,
    with_languages,
)

Tokenizers = tuple[Tokenizer, Tokenizer]


class Executor(Protocol):
    """Runs the expensive steps of a preparation; see `keras_seq.jobs`."""

    def tokenizers(self, settings: Settings, learn: Callable[[], Tokenizers]) -> Tokenizers:
        """Returns the stored tokenizers of source and target, or else the result of `learn`."""

    def encode(self, encoder: PairEncoder, pairs: Iterator[Example]) -> Iterator[Encoded]:
        """Encodes all pairs, in order."""

    def finish(self) -> None:
        """Deletes intermediate results, because the run is prepared."""


def prepare_run(
    settings: Settings,
    directory: str | os.PathLike[str],
    *,
    overwrite: bool = False,
    notice: Notice | None = None,
    counts: PairCounts | None = None,
    executor: Executor | None = None,
) -> Run:
    """Creates a run that is ready to train. If it fails, no run is left.

    The text is streamed several times, so the corpus need not fit in memory. Without validation
    files, a random sample of the training text is held out. Returns the run, locked for this
    process. Raises InputError if a file is invalid, or the directory cannot be used.

    Args:
        settings: Settings with the training files in the section `data`.
        directory: A new or empty directory, or a run to delete if `overwrite` is True.
        notice: Called with each line for the user.
        counts: The result of `count_pairs`, if the text has been read already.
        executor: Learns tokenizers and encodes the text; by default this process.
    """
    check_new(directory, overwrite=overwrite)
    return create_prepared_run(
        with_prepared(settings, counts), directory, overwrite, notice, executor
    )


def create_prepared_run(
    shared: SharedText,
    directory: str | os.PathLike[str],
    overwrite: bool,
    notice: Notice | None,
    executor: Executor | None,
    lock: DirectoryLock | None = None,
) -> Run:
    """Implements `prepare_run` in a checked directory. `lock` is its lock if already held."""
    notice = notice or (lambda line: None)
    settings, counts, prepared = shared
    _check_bleu_tokenizer(settings.score.tokenize)
    check_schedule(settings)
    check_concatenation(settings)
    validation_files(settings.data, settings.task)
    base = check_initial_checkpoint(settings, directory, notice)
    kept = base if starts_with_vocabulary(settings) else prepared
    teacher = open_teacher(settings, directory, kept, notice)
    if counts is None:
        counts = count_pairs(settings.data, notice, settings.task)
    if prepared is None:
        settings = TASKS[settings.task].complete(settings)
    if prepared is None and not keeps_vocabulary(settings):
        settings = with_units(settings, counts, notice)
    lock = lock or lock_directory(directory)
    # `create` checks the directory again: another process may have used it in the meantime.
    run = Run.create(directory, settings, overwrite=overwrite, notice=notice, lock=lock)
    try:
        if prepared is None:
            _Preparation(run, counts, base, teacher, executor, notice).write()
        else:
            share_prepared(run, prepared, notice)
            copy_initial_checkpoint(run, base, notice)
            copy_teacher(run, teacher, notice)
        run.write_preparation(make_record(run, settings.data, settings.tokenizer, counts))
        if executor is not None:
            executor.finish()
    except BaseException:
        run.discard()
        raise
    return run


def check_schedule(settings: Settings) -> None:
    """Raises InputError if the learning rate follows the end of a training without an end."""
    training = settings.training
    if training.schedule == "cosine" and training.max_steps is None and training.max_epochs is None:
        raise InputError(
            "training.schedule: received 'cosine', which needs the end of the training: set "
            "training.max_epochs or training.max_steps"
        )


def _check_bleu_tokenizer(name: str) -> None:
    """Raises InputError if a tokenizer of BLEU needs a package or a file that is missing."""
    if name == "auto":
        return
    # Importing sacreBLEU takes time.
    from keras_seq.scoring import bleu_tokenizer

    try:
        bleu_tokenizer(name)
    except ValueError as error:
        raise InputError(f"score.tokenize: {error}") from None


class _Preparation:
    """Writes the vocabularies, token ids and validation text of one new run."""

    def __init__(
        self,
        run: Run,
        counts: PairCounts,
        base: Run | None,
        teacher: Run | None,
        executor: Executor | None,
        notice: Notice,
    ) -> None:
        self.run, self.counts, self.base, self.notice = run, counts, base, notice
        self.teacher = teacher
        settings = run.settings
        self.has_labels = TASKS[settings.task].has_labels
        # Encoding labeled text is too little work for several workers.
        self.executor = None if self.has_labels else executor
        self.train_files = training_files(settings.data, settings.task)
        self.valid_files = validation_files(settings.data, settings.task)
        self.held_out: HeldOutEnd | HeldOutText | None = None
        self.read: Callable[[], Iterator[Example]] = self.train_files.read

    def write(self) -> None:
        valid = self._validation_pairs()
        source, target = self._vocabularies()
        self.run.save_vocabularies(source, target)
        try:
            # Encoding the training text may take long, so the few validation pairs come first.
            with_languages([pair.source for pair in valid], source.languages)
        except InputError as error:
            raise InputError(f"validation: {error}") from None
        copy_initial_checkpoint(self.run, self.base, self.notice)
        copy_teacher(self.run, self.teacher, self.notice)
        settings = self.run.settings
        encoder = TASKS[settings.task].encoder(settings, source, target, self.read)
        longest_source, longest_target = self._max_lengths()
        write = functools.partial(
            write_corpus,
            max_source_length=longest_source,
            max_target_length=longest_target,
            vocabulary_size=max(
                source.vocabulary_size, target.vocabulary_size, encoder.num_source_ids
            ),
            target_only=self.train_files.target_only,
            features=encoder.features,
            token_features=encoder.token_features,
        )
        self._write_training(encoder, write)
        self._write_validation(encoder, valid, write)
        if message := feature_notice([pair.source for pair in valid], source):
            self.notice(f"validation: {message}")
        if isinstance(target, Labels):
            report_unknown_labels(valid, target, self.notice, tagged=settings.task == "tag")

    def _validation_pairs(self) -> list[Example]:
        """Returns the validation pairs, and excludes held-out pairs from `read`."""
        packed = self.run.settings.data.packed
        if self.valid_files is None:
            self.held_out = (
                HeldOutEnd(self.train_files, self.counts, self.notice)
                if packed
                else HeldOutText(self.train_files, self.counts, self.run.settings.seed, self.notice)
            )
            self.read = self.held_out.read
            return self.held_out.pairs
        pairs = list(self.valid_files.read(self.notice))
        usable = [pair for pair in pairs if pair.usable]
        if not usable:
            raise InputError(
                f"{self.valid_files}: no {self.train_files.unit} to validate on has "
                f"text{required_sides(self.valid_files)}"
            )
        return pairs if packed else usable

    def _vocabularies(self) -> tuple[Tokenizer, Vocabulary]:
        """Learns the vocabularies or takes them from another run, and updates the settings."""
        settings = self.run.settings
        kept = self.base if starts_with_vocabulary(settings) else self.teacher
        if kept is not None:
            source, target = kept.vocabularies
            check_whole_words(settings, source.kind, f" in {kept.path}")
            self._check_kept_languages(kept)
            if isinstance(target, Labels):
                check_labels(settings, self.read, self.train_files, target)
            update = {"tokenizer": kept.settings.tokenizer}
            self.run.update_settings(settings.model_copy(update=update))
            self.notice(f"the vocabulary is that of {kept.path}")
            return with_languages_of(settings, source, target)

        files, notice = self.train_files, self.notice
        learn = VocabularyLearner(settings, self.read, files, notice, self.counts).learn
        source, target = self.executor.tokenizers(settings, learn) if self.executor else learn()
        if path := settings.tokenizer.of_side("source").model:
            check_whole_words(settings, source.kind, f" in {path}")
        self.run.update_settings(with_learned(settings, source, target))
        return with_languages_of(settings, source, target)

    def _check_kept_languages(self, kept: Run) -> None:
        """Raises InputError if the text has target languages and the kept vocabulary not."""
        has_languages = self.run.settings.data.has_languages
        if has_languages == bool(kept.languages):
            return
        expected = "no target_language" if has_languages else "the column target_language"
        key, advice = "teacher", ""
        if kept is self.base:
            key, advice = "from_run", ", or training.from_run_vocabulary=new"
        raise InputError(
            f"data.columns: received {self.run.settings.data.columns!r}, expected {expected} as in "
            f"training.{key} ({kept.path}){advice}"
        )

    def _write_training(self, encoder: Encoder, write: Callable[..., Any]) -> None:
        settings, files = self.run.settings, self.train_files
        data = settings.data
        losses = EncodingReport()

        def token_pairs() -> Iterator[TokenPair]:
            encode: Callable[..., Iterator[Encoded]] = encode_here
            if self.executor is not None and isinstance(encoder, PairEncoder):
                encode = self.executor.encode
            for encoded in encode(encoder, self._training_text()):
                losses.add(encoded)
                yield from encoded.pairs

        join = Concatenation(
            data.concatenation,
            self._max_lengths(),
            encoder.separators,
            settings.seed,
            encoder.max_parts,
        )
        written = write(
            self.run.train_directory,
            self._packed(token_pairs()) if data.packed else join(token_pairs()),
            weights=files.has_weights or data.class_weights != "none",
            alignments=files.has_alignments,
            packed=data.packed or self.has_labels,
        )
        if self.held_out is not None:
            self.held_out.report_duplicates(self.notice)
        from_text = replace(written, kept=written.kept - join.added)
        report("training", from_text, settings, files, self.notice)
        if join.added:
            self.notice(
                f"{join.added:,} training pairs added, each of joined pairs (data.concatenation)"
            )
        losses.report(self.notice)

    def _training_text(self) -> Iterator[Example]:
        """Yields the part of the training text that `data.share` selects."""
        data = self.run.settings.data
        if data.share is None or data.share == 1:
            return self.read()
        if not data.packed:
            return random_share(self.read(), data.share, self.run.settings.seed)
        held_out = self.held_out
        lines = held_out.num_lines if isinstance(held_out, HeldOutEnd) else self.counts.pairs
        return first_share(self.read(), data.share, lines)

    def _max_lengths(self) -> tuple[int, int]:
        """Returns the largest numbers of ids of a source and of a target."""
        settings = self.run.settings
        task = TASKS[settings.task]
        return task.max_source_length(settings), task.max_target_length(settings)

    def _packed(self, pairs: Iterable[TokenPair]) -> Iterator[TokenPair]:
        """Yields pieces of the text of all lines; empty lines are part of the text."""
        length = self.run.settings.data.max_target_length
        return (TokenPair((), piece) for piece in pack((pair.target for pair in pairs), length))

    def _write_validation(
        self, encoder: Encoder, valid: Sequence[Example], write: Callable[..., Any]
    ) -> None:
        run = self.run
        pairs = (pair for encoded in encode_here(encoder, valid) for pair in encoded.pairs)
        packed = run.settings.data.packed
        written = write(
            run.valid_directory,
            self._packed(pairs) if packed else pairs,
            packed=packed or self.has_labels,
        )
        files = self.valid_files or self.train_files
        report("validation", written, run.settings, files, self.notice)
        run.save_valid_lines((pair.source for pair in valid), (pair.target for pair in valid))
