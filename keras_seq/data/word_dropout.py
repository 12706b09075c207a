"""Word dropout: replaces random input tokens by the unknown token."""

import numpy as np

from keras_seq.data.batch import Batch
from keras_seq.data.counter_rng import counter_uniforms
from keras_seq.text import BOS_ID, EOS_ID, PAD_ID, UNK_ID


def drop_words(
    batch: Batch, key: str, rate: float, row_keys: np.ndarray, kept: np.ndarray | None = None
) -> Batch:
    """Replaces random tokens of one input by the unknown token, with probability `rate`.

    Padding, begin and end tokens are never replaced, nor are the ids of `kept`. `target_output` is
    a separate array and does not change. Rows without a key hold padding only.

    Example:

    >>> from keras_seq.data.counter_rng import Purpose, row_keys
    >>> keys = row_keys(1, 0, np.arange(1), Purpose.SOURCE_WORDS)
    >>> batch = {"source": np.array([[*range(4, 14), 3, 0]], np.int32)}
    >>> drop_words(batch, "source", 0.3, keys)["source"].tolist()
    [[4, 5, 1, 1, 8, 9, 1, 11, 1, 13, 3, 0]]

    Reference:
        Bowman et al., "Generating sentences from a continuous space", 2016, section 3.1 (target),
        https://arxiv.org/abs/1511.06349; Sennrich et al., "Edinburgh neural machine translation
        systems for WMT 16", 2016, section 2.2 (source), https://arxiv.org/abs/1606.02891
    """
    ids = batch[key].copy()
    rows = ids[: len(row_keys)]
    dropped = counter_uniforms(row_keys, ids.shape[1]) < rate
    if kept is not None and len(kept):
        dropped &= ~np.isin(rows, kept)
    rows[dropped & (rows != PAD_ID) & (rows != BOS_ID) & (rows != EOS_ID)] = UNK_ID
    return {**batch, key: ids}
