"""Replaces tokens that both sides of a pair have by random bytes, to teach a model to copy."""

from typing import NamedTuple

import numpy as np

from keras_seq.data.batch import Batch
from keras_seq.data.counter_rng import uniforms_at

# Random numbers from this counter on choose the byte; the others choose the tokens to replace.
_BYTES_FROM = 1 << 32


class UnseenTokens(NamedTuple):
    """Selects the tokens to replace, and the bytes that replace them.

    Attributes:
        rate: Float in [0, 1), the probability of replacing a token in a pair.
        is_text: Bool `(V,)`, True for the ids that may be replaced.
        bytes: Int32 ids of the byte tokens.
    """

    rate: float
    is_text: np.ndarray
    bytes: np.ndarray


def replace_tokens(batch: Batch, unseen: UnseenTokens, row_keys: np.ndarray) -> Batch:
    """Replaces random tokens by random bytes, wherever the token is in its pair.

    Only tokens of both source and target are replaced. Text that is not in the vocabulary consists
    of bytes, so a model that copies tokens learns to copy such text as well. Rows without a key
    hold padding only.

    Example:

    >>> from keras_seq.data.counter_rng import Purpose, row_keys
    >>> keys = row_keys(1, 0, np.arange(1), Purpose.UNSEEN_TOKENS)
    >>> is_text = np.arange(300) >= 260
    >>> unseen = UnseenTokens(0.5, is_text, np.arange(4, 260, dtype=np.int32))
    >>> batch = {name: np.array([[*ids, 3]], np.int32) for name, ids in
    ...     {"source": [270, 280, 290], "target_input": [2, 280, 270], "target_output":
    ...     [280, 270, 280]}.items()}
    >>> for name, ids in replace_tokens(batch, unseen, keys).items():
    ...     print(name, ids.tolist())
    source [[151, 149, 290, 3]]
    target_input [[2, 149, 151, 3]]
    target_output [[149, 151, 149, 3]]
    """
    count = len(row_keys)
    source, target = batch["source"][:count], batch["target_output"][:count]
    replaced = dict(batch)
    for name, other in (("source", target), ("target_input", source), ("target_output", source)):
        ids = batch[name].copy()
        rows = ids[:count]
        known = np.minimum(rows, len(unseen.is_text) - 1)
        chosen = uniforms_at(row_keys, rows) < unseen.rate
        chosen &= unseen.is_text[known] & (rows == known)
        chosen &= (rows[:, :, None] == other[:, None, :]).any(axis=2)
        number = uniforms_at(row_keys, rows.astype(np.int64) + _BYTES_FROM) * len(unseen.bytes)
        rows[chosen] = unseen.bytes[number.astype(np.int64)][chosen]
        replaced[name] = ids
    return replaced
