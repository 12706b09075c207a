"""Builds the arrays of one batch."""

import math
from typing import Protocol, TypeAlias

import numpy as np

from keras_seq.data.layout import Part
from keras_seq.text import BOS_ID, EOS_ID

Batch: TypeAlias = dict[str, np.ndarray]


class Pairs(Protocol):
    """The part of the interface of a `TokenCorpus` that a batch needs."""

    source_lengths: np.ndarray
    target_lengths: np.ndarray
    has_weights: bool
    has_alignments: bool
    is_packed: bool
    has_features: bool
    token_features: int
    max_features: int

    def padded(self, part: Part, indices: np.ndarray, length: int) -> np.ndarray:
        """Ids of sequences, zero-padded on the right: int32 `(B, length)`."""

    def weights(self, indices: np.ndarray) -> np.ndarray:
        """Weights of the pairs in the loss: float32 `(B,)`."""

    def links(self, indices: np.ndarray) -> np.ndarray:
        """Returns links as position in `indices`, source token, target token: int64 `(L, 3)`."""


def features_shape(corpus: Pairs, rows: int, source_steps: int) -> tuple[int, ...]:
    """Returns the shape of the features of a batch."""
    if corpus.token_features:
        return rows, source_steps, corpus.token_features
    return rows, max(corpus.max_features, 1)


def make_batch(
    corpus: Pairs, pairs: np.ndarray, rows: int, source_steps: int, target_steps: int
) -> Batch:
    """Builds the arrays of a batch, zero-padded on the right and at the bottom.

    Returns int32 `source` `(B, S)`, tokens and end token; `target_input` `(B, T)`, begin token and
    tokens; `target_output` `(B, T)`, tokens and end token, for B `rows`, S `source_steps` and T
    `target_steps`. The targets of a packed corpus contain their end tokens already. If the corpus
    has weights, also float32 `weight` `(B,)`, 0 for empty rows. If the corpus has alignments, also
    float32 `alignment` `(B, T, S)`: row t distributes 1 equally over the source tokens that are
    linked to token t of `target_output`, or is all zeros. The end tokens are linked to each other.
    If the corpus has features, also int32 `features`: `(B, F)` for F features of any pair at most,
    or `(B, S, F)` for F features of each token.
    """
    filled = np.arange(len(pairs))
    source = np.zeros((rows, source_steps), np.int32)
    source[: len(pairs)] = corpus.padded("source", pairs, source_steps)
    source[filled, corpus.source_lengths[pairs]] = EOS_ID
    target_output = np.zeros((rows, target_steps), np.int32)
    target_output[: len(pairs)] = corpus.padded("target", pairs, target_steps)
    target_input = np.zeros((rows, target_steps), np.int32)
    target_input[: len(pairs), 0] = BOS_ID
    target_input[:, 1:] = target_output[:, :-1]
    if not corpus.is_packed:
        target_output[filled, corpus.target_lengths[pairs]] = EOS_ID
    batch: Batch = {"source": source, "target_input": target_input, "target_output": target_output}
    if corpus.has_weights:
        batch["weight"] = np.zeros(rows, np.float32)
        batch["weight"][: len(pairs)] = corpus.weights(pairs)
    if corpus.has_features:
        shape = features_shape(corpus, rows, source_steps)
        features = np.zeros((rows, math.prod(shape[1:])), np.int32)
        features[: len(pairs)] = corpus.padded("features", pairs, features.shape[1])
        batch["features"] = features.reshape(shape)
    if corpus.has_alignments:
        row, source_token, target_token = corpus.links(pairs).T
        alignment = np.zeros((rows, target_steps, source_steps), np.float32)
        alignment[row, target_token, source_token] = 1
        alignment[filled, corpus.target_lengths[pairs], corpus.source_lengths[pairs]] = 1
        link_counts = alignment.sum(-1, keepdims=True)
        batch["alignment"] = np.divide(alignment, link_counts, out=alignment, where=link_counts > 0)
    return batch
