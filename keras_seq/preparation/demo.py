"""Prepares the embedded corpus of `keras-seq demo`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from keras_seq.preparation.preparing import prepare_run
from keras_seq.run import Run, check_new
from keras_seq.settings import load_settings
from keras_seq.storage import make_directory, write_file
from keras_seq.text import Notice
from keras_seq.text.dates import DateCorpus, Pair, date_corpus


def prepare_demo(
    directory: str | os.PathLike[str],
    *,
    overrides: Iterable[str] | None = None,
    overwrite: bool = False,
    notice: Notice | None = None,
) -> tuple[Run, list[Pair]]:
    """Generates the date corpus and prepares a run that is ready to train on it.

    The text is written to the folder `corpus` of the new or empty directory. `overrides` are
    `key=value` settings over the preset `demo`. Returns the run and the pairs of the test split.
    """
    settings = load_settings(preset="demo", overrides=overrides)
    check_new(directory, overwrite=overwrite)
    corpus = date_corpus(settings.seed)
    with tempfile.TemporaryDirectory() as folder:
        paths = _write(corpus, Path(folder))
        data = settings.data.model_copy(update=paths)
        run = prepare_run(
            settings.model_copy(update={"data": data}),
            directory,
            overwrite=overwrite,
            notice=notice,
        )
    # The text can be written into the run only once the run exists.
    data = run.settings.data.model_copy(update=_write(corpus, run.corpus_directory))
    run.update_settings(run.settings.model_copy(update={"data": data}))
    return run, corpus.test


def _write(corpus: DateCorpus, folder: Path) -> dict[str, str]:
    """Writes six files; maps settings to the names of the training and validation files."""
    make_directory(folder)
    names = {}
    for split, prefix in (("train", ""), ("valid", "valid_"), ("test", None)):
        pairs = getattr(corpus, split)
        for side, suffix, index in (("source", "date", 0), ("target", "iso", 1)):
            path = folder / f"{split}.{suffix}"
            write_file(path, "".join(f"{pair[index]}\n" for pair in pairs).encode())
            if prefix is not None:
                names[f"{prefix}{side}"] = str(path)
    return names
