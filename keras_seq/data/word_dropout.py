"""Words of a batch that the model does not get to see."""

import numpy as np

from keras_seq.data.batch import Batch
from keras_seq.data.counter_rng import counter_uniforms
from keras_seq.data.ids import BOS, EOS, PAD, UNK


def drop_words(batch: Batch, key: str, share: float, keys: np.ndarray) -> Batch:
    """Puts the unknown token in the place of some others.

    Padding, begin and end tokens stay. What is to be predicted stays too: `target_output`
    is another array.

    Args:
        batch: A batch as `BatchStream.batch` makes it.
        key: `"source"` or `"target_input"`.
        share: Float in [0, 1), the chance of each token to be replaced.
        keys: Uint64 array from `row_keys`, at most one for each row; rows without one
            hold padding.

    Returns:
        The batch with another array for `key`.

    Example:

    >>> from keras_seq.data.counter_rng import Purpose, row_keys
    >>> keys = row_keys(1, 0, np.arange(1), Purpose.SOURCE_WORDS)
    >>> batch = {"source": np.array([[*range(4, 14), 3, 0]], np.int32)}
    >>> drop_words(batch, "source", 0.3, keys)["source"].tolist()
    [[4, 5, 1, 1, 8, 9, 1, 11, 1, 13, 3, 0]]

    Reference:
        Bowman et al., "Generating sentences from a continuous space", 2016, section 3.1
        (target), https://arxiv.org/abs/1511.06349; Sennrich et al., "Edinburgh neural
        machine translation systems for WMT 16", 2016, section 2.2 (source),
        https://arxiv.org/abs/1606.02891
    """
    ids = batch[key].copy()
    rows = ids[: len(keys)]
    dropped = counter_uniforms(keys, ids.shape[1]) < share
    rows[dropped & (rows != PAD) & (rows != BOS) & (rows != EOS)] = UNK
    return {**batch, key: ids}
