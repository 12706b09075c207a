"""How much of a batch is real."""

from collections.abc import Iterable

import numpy as np

from keras_seq.data.batch import Batch
from keras_seq.data.ids import PAD


def token_counts(batch: Batch) -> tuple[int, int]:
    """Counts the real positions of a batch, begin and end tokens included.

    Args:
        batch: A batch as `BatchStream.batch` makes it.

    Returns:
        The numbers of source and of target positions that are not padding.
    """
    return (
        int(np.count_nonzero(batch["source"] != PAD)),
        int(np.count_nonzero(batch["target_output"] != PAD)),
    )


def padding_share(batches: Iterable[Batch]) -> tuple[float, float]:
    """The share of positions that are padding, in all the batches together.

    Args:
        batches: Batches as `BatchStream.batch` makes them, at least one.

    Returns:
        The shares of the source and of the target, floats in [0, 1).

    Raises:
        ValueError: If there is no batch.

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
