"""The embedded corpus as a run: what `keras-seq demo` trains on."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

from keras_seq.preparation import prepare_run
from keras_seq.run import Run, check_new
from keras_seq.settings import load_settings
from keras_seq.storage import make_directory, write_file
from keras_seq.text.dates import DateCorpus, date_corpus

Pair = tuple[str, str]


def prepare_demo(
    directory: str | os.PathLike[str],
    *,
    overrides: Iterable[str] | None = None,
    overwrite: bool = False,
    notice: Callable[[str], None] | None = None,
) -> tuple[Run, list[Pair]]:
    """Makes the date corpus and a run that is ready to train on it.

    Args:
        directory: A new or empty directory. The text stays there, in `corpus/`.
        overrides: `key=value` settings over the preset `demo`.
        overwrite: Whether an earlier run there may be deleted.
        notice: Called with a line for each thing done.

    Returns:
        The run, and the pairs of the test split.

    Raises:
        InputError: A directory that cannot be used.
        SettingsError: A wrong override.
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
    # Written again, not moved: the run deletes it with itself if need be.
    data = run.settings.data.model_copy(update=_write(corpus, run.corpus_directory))
    run.update_settings(run.settings.model_copy(update={"data": data}))
    return run, corpus.test


def _write(corpus: DateCorpus, folder: Path) -> dict[str, str]:
    """Writes six files; returns those to train and validate on, by setting."""
    make_directory(folder)
    names = {}
    for split, prefix in (("train", ""), ("valid", "valid_"), ("test", "test_")):
        pairs = getattr(corpus, split)
        for side, index in (("source", 0), ("target", 1)):
            path = folder / f"{split}.{'date' if side == 'source' else 'iso'}"
            write_file(path, "".join(f"{pair[index]}\n" for pair in pairs).encode())
            names[f"{prefix}{side}"] = str(path)
    return {key: path for key, path in names.items() if not key.startswith("test")}
