"""One batch from the pairs in it."""

from typing import TypeAlias

import numpy as np

from keras_seq.data.corpus import TokenCorpus
from keras_seq.data.ids import BOS, EOS

Batch: TypeAlias = dict[str, np.ndarray]


def make_batch(
    corpus: TokenCorpus, pairs: np.ndarray, rows: int, source_steps: int, target_steps: int
) -> Batch:
    """Makes the arrays of a batch, padded with zeros at the right and below.

    Shapes: B rows, S source steps, T target steps.

    Args:
        corpus: The corpus.
        pairs: Integer array, the pairs in the batch, at most `rows`.
        rows: Integer, B.
        source_steps: Integer, S, at least one more than the tokens of any source.
        target_steps: Integer, T, the same for the targets.

    Returns:
        A dict of int32 arrays: `source` `(B, S)`, tokens and end token; `target_input` `(B, T)`,
        begin token and tokens; `target_output` `(B, T)`, tokens and end token.
    """
    filled = np.arange(len(pairs))
    source = np.zeros((rows, source_steps), np.int32)
    source[: len(pairs)] = corpus.padded("source", pairs, source_steps)
    source[filled, corpus.source_lengths[pairs]] = EOS
    target_output = np.zeros((rows, target_steps), np.int32)
    target_output[: len(pairs)] = corpus.padded("target", pairs, target_steps)
    target_input = np.zeros((rows, target_steps), np.int32)
    target_input[: len(pairs), 0] = BOS
    target_input[:, 1:] = target_output[:, :-1]
    target_output[filled, corpus.target_lengths[pairs]] = EOS
    return {"source": source, "target_input": target_input, "target_output": target_output}
