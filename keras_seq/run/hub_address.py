"""Addresses of runs on the Hugging Face Hub, and their download."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from keras_seq.text import InputError

PREFIX = "hf://"
# What a run needs to be used; other files of a repository are not downloaded.
FILES = (
    "settings.toml",
    "tokenizer/*",
    "checkpoints/best",
    "checkpoints/latest",
    "checkpoints/step-*/*",
    "data/source.vectors",
    "data/target.vectors",
    "data/pretrained/*",
    "result.json",
    "metrics.jsonl",
    "README.md",
)
_NAME = re.compile(r"([\w.-]+/[\w.-]+)(?:@([\w./-]+))?")


class HubAddress(NamedTuple):
    """A repository on the Hugging Face Hub, and a branch, tag or commit; None for the main branch.

    Example:

    >>> HubAddress.parse("hf://anna/dates@v2")
    HubAddress(repository='anna/dates', revision='v2')
    """

    repository: str
    revision: str | None

    @classmethod
    def parse(cls, text: str) -> HubAddress:
        """Reads an address, or raises InputError."""
        found = _NAME.fullmatch(text.removeprefix(PREFIX)) if is_hub_address(text) else None
        if found is None or ".." in text:
            raise InputError(f"{text}: expected hf://USER/NAME or hf://USER/NAME@REVISION")
        return cls(found[1], found[2])


def is_hub_address(path: str | os.PathLike[str]) -> TypeGuard[str]:
    """Tests if a path is an address on the Hugging Face Hub."""
    return isinstance(path, str) and path.startswith(PREFIX)


def library() -> Any:
    """Returns the package huggingface_hub, or raises InputError if it is not installed."""
    try:
        import huggingface_hub
    except ImportError:
        raise InputError(
            "runs on the Hugging Face Hub need huggingface_hub: "
            "python -m pip install 'keras-seq[share]'"
        ) from None
    return huggingface_hub


def fetch(text: str) -> Path:
    """Downloads the run at an address, or what changed since the last download.

    The directory is in `KERAS_SEQ_CACHE`, by default `~/.cache/keras-seq`. Without a network, the
    last download is used. Raises InputError if there is none, or the address leads nowhere.
    """
    address = HubAddress.parse(text)
    cache = os.environ.get("KERAS_SEQ_CACHE") or Path.home() / ".cache" / "keras-seq"
    directory = Path(cache, "hub", *address.repository.split("/"), address.revision or "main")
    try:
        download(address, directory)
    except InputError:
        if not (directory / "settings.toml").exists():
            raise
    return directory


def download(address: HubAddress, directory: Path) -> None:
    """Downloads the run at an address into a directory. Raises InputError if that fails."""
    hub = library()
    try:
        hub.snapshot_download(
            address.repository,
            revision=address.revision,
            local_dir=directory,
            allow_patterns=list(FILES),
            library_name="keras-seq",
        )
    except Exception as error:
        # The library raises errors of its own, of its HTTP client and of the system.
        raise InputError(f"{PREFIX}{address.repository}: {explain(error)}") from None
    if not (directory / "settings.toml").exists():
        raise InputError(f"{PREFIX}{address.repository}: not a run of keras-seq")


def explain(error: Exception) -> str:
    """Returns one line about an error of huggingface_hub."""
    kind = type(error).__name__
    if kind in ("RepositoryNotFoundError", "RevisionNotFoundError"):
        return "no such repository or revision; to see a private one, log in with `hf auth login`"
    if kind in ("LocalEntryNotFoundError", "ConnectError", "ConnectTimeout"):
        return "the Hub cannot be reached"
    lines = str(error).strip().splitlines() or [kind]
    return " ".join(lines[0].split())[:300]
