"""Checks of the arguments of models."""

from typing import Any


def check_sizes(**sizes: Any) -> None:
    """Raises ValueError for the first size that is not a positive integer."""
    for name, size in sizes.items():
        if not isinstance(size, int) or size < 1:
            raise ValueError(f"`{name}` must be a positive integer, received {size!r}.")


def check_choice(name: str, choice: Any, choices: tuple[str, ...]) -> None:
    """Raises ValueError if the argument `name` is not one of its choices."""
    if choice not in choices:
        raise ValueError(
            f"`{name}` must be one of {', '.join(map(repr, choices))}, received {choice!r}."
        )


def check_vocabularies(share_embeddings: bool, source_size: int, target_size: int) -> None:
    """Raises ValueError if embeddings are shared between vocabularies of different sizes."""
    if share_embeddings and source_size != target_size:
        raise ValueError(
            "`share_embeddings` needs one vocabulary for both sides, received "
            f"{source_size} source and {target_size} target words."
        )
