"""The collection of trained models: their index, and the directory of each."""

from __future__ import annotations

import hashlib
import os
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple, TypeGuard

from keras_seq.run.hub_address import FILES, fetch
from keras_seq.settings import METRICS
from keras_seq.storage import hash_file, read_json, reason
from keras_seq.storage.limits import MAX_RECORD_BYTES
from keras_seq.text import InputError

PREFIX = "pretrained:"
VARIABLE = "KERAS_SEQ_PRETRAINED"
SCRIPT = "tools/make_pretrained.py"
INDEX = "index.json"
# The index of the models on the Hub, a copy of the index of the folder that was uploaded.
_HUB_INDEX = Path(__file__).with_name("pretrained_models.json")
_HUB = "hf://keras-seq"
# `keras-seq evaluate` adds to the card of a run.
_CHANGING = ("README.md",)


class PretrainedModel(NamedTuple):
    """The entry of a trained model in an index.

    Attributes:
        task: What the model does.
        data: The data that it was trained on.
        license: The license of the data.
        citation: The paper or the page of the data.
        metric: Name of the score, as in `keras-seq evaluate`.
        score: The score.
        examples: Number of examples that were scored.
        size: Bytes of the files.
        digest: SHA-256 of the files, see `digest`.
        shared: Whether the license of the data allows publishing the model.
    """

    task: str
    data: str
    license: str
    citation: str
    metric: str
    score: float
    examples: int
    size: int
    digest: str
    shared: bool

    def __str__(self) -> str:
        metric = METRICS[self.metric]
        return (
            f"{self.task}; {self.data}; license of the data: {self.license}; {self.citation}; "
            f"{metric.label} {self.score:.{metric.digits}f} on {self.examples:,} examples; "
            f"{self.size / 1e6:.1f} MB"
        )


def is_pretrained_name(path: str | os.PathLike[str]) -> TypeGuard[str]:
    """Tests if a path is the name of a trained model, as in `pretrained:dates`."""
    return isinstance(path, str) and path.startswith(PREFIX)


def pretrained_models() -> dict[str, PretrainedModel]:
    """Returns the models by name, in the folder that KERAS_SEQ_PRETRAINED names or on the Hub.

    Raises InputError if the folder has no valid index.
    """
    folder = _folder()
    return read_index(_HUB_INDEX if folder is None else folder / INDEX)


def read_index(path: Path) -> dict[str, PretrainedModel]:
    """Reads the models of an index by name, or raises InputError."""
    if not path.exists():
        raise InputError(
            f"{path}: no such file: build the models with `python {SCRIPT} {path.parent}`, or name "
            f"another folder in {VARIABLE}"
        )
    try:
        return {
            name: PretrainedModel(**entry)
            for name, entry in read_json(path, MAX_RECORD_BYTES).items()
        }
    except TypeError:
        raise InputError(f"{path}: not an index of trained models: build them again") from None


def find_pretrained(text: str) -> Path:
    """Returns the directory of a trained model, as in `pretrained:dates`.

    The directory is in the folder that KERAS_SEQ_PRETRAINED names. Without that variable, the model
    is downloaded from the Hugging Face Hub. Raises InputError if there is no such model, or its
    files differ from those that were built.
    """
    name, folder = text.removeprefix(PREFIX), _folder()
    models = pretrained_models()
    if name not in models:
        raise InputError(
            f"{text}: {folder or 'the collection'} has no such model, expected one of: "
            f"{', '.join(models)}; `python {SCRIPT} --help` lists the models that can be built"
        )
    directory = _download(name, models[name]) if folder is None else folder / name
    if not directory.is_dir():
        raise InputError(f"{directory}: no such directory; {_advice(name)}")
    if digest(directory) != models[name].digest:
        remedy = "delete the directory, to download it again" if folder is None else _advice(name)
        raise InputError(
            f"{directory}: the files differ from those that were built ({INDEX} has their "
            f"SHA-256); {remedy}"
        )
    return directory


def digest(directory: Path) -> str:
    """Returns the SHA-256 of the list of the files of a model, as `sha256sum` prints the list.

    The list is sorted by name and has no model card, because `keras-seq evaluate` adds to the card.
    Raises InputError if a file cannot be read.
    """
    names = (path.relative_to(directory).as_posix() for path in directory.rglob("*"))
    files = (name for name in names if any(fnmatch(name, one) for one in FILES))
    total = hashlib.sha256()
    for name in sorted(set(files).difference(_CHANGING)):
        path = directory / name
        try:
            if not path.is_dir():
                total.update(f"{hash_file(path)}  {name}\n".encode())
        except OSError as error:
            raise InputError(f"{path}: {reason(error)}") from None
    return total.hexdigest()


def _folder() -> Path | None:
    value = os.environ.get(VARIABLE)
    return Path(value) if value else None


def _download(name: str, model: PretrainedModel) -> Path:
    if not model.shared:
        raise InputError(
            f"{PREFIX}{name}: not on the Hub, because the license of its data is "
            f"{model.license}; {_advice(name)}"
        )
    try:
        return fetch(f"{_HUB}/{name}")
    except InputError as error:
        raise InputError(f"{error}; {_advice(name)}") from None


def _advice(name: str) -> str:
    return f"to build it: python {SCRIPT} FOLDER {name}, then set {VARIABLE}=FOLDER"
