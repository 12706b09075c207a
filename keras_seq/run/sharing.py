"""Copies of runs that can be shown to others, and their upload to the Hugging Face Hub."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from keras_seq.run.directory import Run
from keras_seq.run.hub_address import PREFIX, HubAddress, explain, library
from keras_seq.settings import Settings
from keras_seq.storage import copy_tree
from keras_seq.text import InputError

# Names of the Hub for what a model does.
_PIPELINES = {
    "translate": "translation",
    "language-model": "text-generation",
    "classify": "text-classification",
    "tag": "token-classification",
    "speech": "automatic-speech-recognition",
    "wake-word": "audio-classification",
}


def push(
    path: str | os.PathLike[str],
    address: str,
    *,
    which: str | int = "best",
    private: bool = False,
    license: str | None = None,
    language: str | None = None,
) -> str:
    """Uploads the model of a run to the Hugging Face Hub.

    One checkpoint, the vocabularies, the settings, the numbers of the training and the model card
    are uploaded, but no text of the training; of the names of its files only the last part.
    `hf auth login` or the variable HF_TOKEN gives the permission.

    Args:
        path: The run directory.
        address: `hf://USER/NAME`. The repository is created if it does not exist.
        which: Checkpoint: `"best"`, `"latest"`, or the step of a stored checkpoint.
        private: Whether a new repository is private.
        license: The license of the model, as the Hub names it, such as `"apache-2.0"`.
        language: The language of the output, such as `"de"`.

    Returns:
        The address of the page of the model.

    Raises:
        InputError: If `path` is not a trained run, the address is wrong, or the upload fails.

    Example:

    >>> keras_seq.push("runs/dates", "hf://anna/dates", license="mit")  # doctest: +SKIP
    'https://huggingface.co/anna/dates'
    """
    repository, revision = HubAddress.parse(address)
    if revision is not None:
        raise InputError(f"{address}: expected an address without a revision")
    hub = library()
    run = Run.open(path)
    run.require_weights(which)
    with tempfile.TemporaryDirectory(prefix="keras-seq-") as folder:
        copy = public_copy(run, Path(folder) / "run", which)
        copy.write_card(card_head(run, license, language) + public_card(run, address))
        try:
            api = hub.HfApi()
            url = api.create_repo(repository, private=private, exist_ok=True)
            api.upload_folder(
                repo_id=repository,
                folder_path=copy.path,
                commit_message=f"Upload a run of keras-seq, step {copy.checkpoints.latest_step}",
                ignore_patterns=[".lock"],
                # Checkpoints of an earlier upload.
                delete_patterns=["checkpoints/*"],
            )
        except Exception as error:
            raise InputError(f"{PREFIX}{repository}: {explain(error)}") from None
    return str(url)


def public_copy(run: Run, directory: Path, which: str | int = "best") -> Run:
    """Creates a run with one checkpoint of another, without texts and paths of its training."""
    copy = run.copy_checkpoint(directory, which)
    copy.mark_best(copy.checkpoints.latest_step or 0)
    copy.update_settings(_public_settings(run.settings))
    for name in ("source.vectors", "target.vectors", "pretrained"):
        source, target = run.path / "data" / name, copy.path / "data" / name
        if source.exists():
            target.parent.mkdir(exist_ok=True)
            (copy_tree if source.is_dir() else shutil.copyfile)(source, target)
    # Numbers of the training, such as the threshold of a detector.
    log = run.path / "metrics.jsonl"
    if log.exists():
        shutil.copyfile(log, copy.path / "metrics.jsonl")
    result = run.read_result()
    if result is not None:
        copy.write_result(result)
    return copy


def public_card(run: Run, address: str) -> str:
    """Returns the model card with an address in place of paths."""
    card = run.read_card()
    # A file may be in the run.
    for name in _file_names(run.settings):
        card = card.replace(name, Path(name).name)
    for path in (str(run.path.resolve()), str(run.path)):
        card = card.replace(f" {path}", f" {address}")
    return card


def card_head(run: Run, license: str | None = None, language: str | None = None) -> str:
    """Returns the data about a model that the Hub reads at the beginning of its card."""
    task = run.settings.task
    data = library().ModelCardData(
        language=language,
        license=license,
        library_name="keras-seq",
        pipeline_tag=_PIPELINES.get(task),
        tags=["keras", "keras-seq", task, run.settings.model.family],
    )
    return f"---\n{data.to_yaml()}\n---\n\n"


def _public_settings(settings: Settings) -> Settings:
    """Returns settings with the last part of each path."""
    update: dict[str, Any] = {}
    for name, value in settings.data.model_dump().items():
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            update[name] = [Path(one).name for one in value]
        elif isinstance(value, str) and os.sep in value:
            update[name] = Path(value).name
    training = {}
    for name in ("from_run", "teacher", "source_embeddings", "target_embeddings"):
        value = getattr(settings.training, name)
        if value is not None:
            training[name] = Path(value).name
    return settings.model_copy(
        update={
            "data": settings.data.model_copy(update=update),
            "training": settings.training.model_copy(update=training),
        }
    )


def _file_names(settings: Settings) -> list[str]:
    values = settings.data.model_dump().values()
    names = [one for value in values for one in (value if isinstance(value, list) else [value])]
    return [name for name in names if isinstance(name, str) and os.sep in name]
