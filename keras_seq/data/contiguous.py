"""Batches whose rows continue the rows of the batch before, for states that are carried over."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from keras_seq.data.batch import Batch, make_batch
from keras_seq.data.corpus import TokenCorpus
from keras_seq.data.plan import Plan
from keras_seq.data.stream import BatchStream
from keras_seq.text import BOS_ID, InputError


class ContiguousStream(BatchStream):
    """Batches of pieces of one text; each row continues the same row of the batch before.

    An epoch has B rows of M consecutive pieces each, and begins at a random piece, because the text
    is a circle. Up to B - 1 pieces are left out of each epoch. A batch also has float32 `carried`
    `(B,)`, 1 if the row continues a piece, and 0 at the begin of an epoch or of the text. A piece
    that continues another one begins with its last token instead of the begin token.

    Args:
        corpus: A packed `TokenCorpus`, of pieces of `length` tokens; only the last may be shorter.
        rows: Positive integer B.
        length: Positive integer, the tokens of a piece.
        seed: Non-negative integer, the random seed.
        kwargs: Rates of word dropout, as for `BatchStream`.

    Raises:
        InputError: If the text has fewer pieces than a batch has rows.
    """

    carries = True

    def __init__(
        self, corpus: TokenCorpus, *, rows: int, length: int, seed: int, **kwargs: Any
    ) -> None:
        super().__init__(corpus, batch_tokens=rows * length, seed=seed, **kwargs)
        pieces = len(corpus)
        if pieces < rows:
            raise InputError(
                f"training.carry_state: the text has {pieces:,} pieces of {length:,} tokens, but a "
                f"batch {rows:,} rows: lower training.batch_tokens or data.max_target_length"
            )
        batches = pieces // rows
        self._pieces = pieces
        self._fixed = True
        shape = np.tile(np.array([[rows, 1, length]], np.int64), (batches, 1))
        cuts = np.arange(batches + 1, dtype=np.int64) * rows
        self._plan = Plan(np.zeros(pieces, np.uint16), cuts, shape)

    def batch(self, k: int) -> Batch:
        """Builds batch k of the stream, counted from 0; see `make_batch` and `carried` above."""
        _, members = self._members(k)
        starts = k % len(self._plan) == 0
        return _continued(super().batch(k), self._corpus, members, starts)

    def _members(self, k: int) -> tuple[int, np.ndarray]:
        if k < 0:
            raise ValueError(f"k must not be negative, received {k!r}")
        epoch, position = divmod(k, len(self._plan))
        bits = np.random.PCG64(np.random.SeedSequence([self._seed, epoch]))
        first = int(bits.random_raw()) % self._pieces
        rows = np.arange(int(self._plan.shape[0, 0]), dtype=np.int64)
        members = (first + rows * len(self._plan) + position) % self._pieces
        return position, members.astype(np.int32)


def contiguous_batches(corpus: TokenCorpus, rows: int, length: int) -> Iterator[Batch]:
    """Yields batches that contain each piece of a text once, in rows that continue each other.

    The arguments and the batches are as in `ContiguousStream`, except that a row may end early; it
    is then empty.
    """
    rows = min(rows, len(corpus))
    batches = -(-len(corpus) // rows)
    for position in range(batches):
        members = np.arange(rows) * batches + position
        # The last rows end early, so that the real rows come first.
        members = members[members < len(corpus)]
        batch = make_batch(corpus, members, rows, 1, length)
        yield _continued(batch, corpus, members, position == 0)


def _continued(batch: Batch, corpus: TokenCorpus, members: np.ndarray, starts: bool) -> Batch:
    """Adds `carried`, and the last token before each piece that continues another one."""
    carried = np.zeros(len(batch["source"]), np.float32)
    inputs = batch["target_input"].copy()
    for row, piece in enumerate(members.tolist()):
        if not starts and piece:
            carried[row] = 1
            inputs[row, 0] = corpus.target(piece - 1)[-1]
        else:
            inputs[row, 0] = BOS_ID
    return {**batch, "target_input": inputs, "carried": carried}
