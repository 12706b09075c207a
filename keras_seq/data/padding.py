"""Counts of tokens and padding in batches."""

from collections.abc import Iterable

import numpy as np

from keras_seq.data.batch import Batch
from keras_seq.text import PAD_ID


def token_counts(batch: Batch) -> tuple[int, int]:
    """Counts the positions of a batch that are not padding.

    Args:
        batch: A batch from `BatchStream.batch`.

    Returns:
        The numbers of source and of target tokens, end tokens included.
    """
    return (
        int(np.count_nonzero(batch["source"] != PAD_ID)),
        int(np.count_nonzero(batch["target_output"] != PAD_ID)),
    )


def padding_share(batches: Iterable[Batch]) -> tuple[float, float]:
    """Computes the fraction of positions that are padding over all batches.

    Args:
        batches: Batches from `BatchStream.batch`, at least one.

    Returns:
        The fractions of the source and of the target, floats in [0, 1).

    Raises:
        ValueError: `batches` is empty.

    Example:

    >>> padding_share([{"source": np.array([[5, 3], [3, 0]]),
    ...                 "target_output": np.array([[3], [3]])}])
    (0.25, 0.0)
    """
    source = target = source_size = target_size = 0
    for batch in batches:
        counts = token_counts(batch)
        source += counts[0]
        target += counts[1]
        source_size += batch["source"].size
        target_size += batch["target_output"].size
    if not source_size or not target_size:
        raise ValueError("There is no batch to count; give at least one.")
    return 1 - source / source_size, 1 - target / target_size
