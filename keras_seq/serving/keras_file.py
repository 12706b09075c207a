"""Export of a run's model to a `.keras` file, for fine-tuning in custom code."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

from keras_seq.run import Run
from keras_seq.run.models import load_model
from keras_seq.serving.http.versions import RECORD_NAME
from keras_seq.serving.publishing import (
    check_destination,
    checkpoint_record,
    publish_directory,
)
from keras_seq.text import InputError


def export_keras(
    run: Run, destination: str | os.PathLike[str], *, which: str | int = "best"
) -> Path:
    """Exports the model of a run, including the weights, to a `.keras` file. Returns the path.

    After `import keras_seq.models`, `keras.saving.load_model(file)` restores the model on any
    backend, including `fit`, `encoder` and `decoder_step`. The file does not contain the vocabulary
    (`Run.open(path).source_tokenizer`). The ZIP entry `checkpoint.json` contains the step.

    `which` is `"best"`, `"latest"`, or the step of a checkpoint. Raises InputError if the run has
    no weights, the name does not end in `.keras`, or the file exists or cannot be written.
    """
    destination = Path(destination)
    if destination.suffix != ".keras":
        raise InputError(f"{destination}: expected a name that ends in .keras")
    run.require_weights(which)
    check_destination(destination)
    model = load_model(run, which)

    def write(path: Path) -> None:
        model.save(path)
        # `ZipFile` would replace an archive that it cannot open by a name. Keras ignores additional
        # entries.
        with path.open("r+b") as stream, zipfile.ZipFile(stream, "a") as archive:
            archive.writestr(RECORD_NAME, checkpoint_record([run]))

    return publish_directory(destination, write)
