"""Checks the token ids of a run, which may come from a stranger, before a training."""

from __future__ import annotations

from pathlib import Path

from keras_seq.data import SAMPLE_IDS, TokenCorpus
from keras_seq.plugins import plugin_of
from keras_seq.run import Run
from keras_seq.settings import TASKS
from keras_seq.text import WORD_CHARACTERS


def check_corpora(run: Run, valid_directory: Path | None = None) -> None:
    """Checks the training text of a run and its validation text.

    `valid_directory` is the directory of the validation text, by default that of the run. Raises
    InputError; see `check_corpus`.
    """
    check_corpus(run, run.train_directory)
    check_corpus(run, valid_directory or run.valid_directory)


def check_corpus(run: Run, directory: Path) -> None:
    """Checks that the model of a run can be trained with the token ids in `directory`.

    Reads the ids once, as fast as the disk. Checking each batch would need no such read, but would
    end a training after hours, in a thread that makes batches. Corpora of a plugin's task, which
    alone knows their ids, are not checked. Raises InputError; see `TokenCorpus.check`.
    """
    settings = run.settings
    if plugin_of("task", settings.task) is not None:
        return
    task = TASKS[settings.task]
    source, target = (vocabulary.vocabulary_size for vocabulary in run.vocabularies)
    sizes = (SAMPLE_IDS if task.reads_sounds else source, target)
    lengths = task.max_source_length(settings), task.max_target_length(settings)
    reads_characters = settings.model.reads_characters and task.has_labels
    corpus = TokenCorpus.open(directory)
    corpus.check(sizes, lengths, WORD_CHARACTERS if reads_characters else None)
