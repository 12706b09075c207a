"""The endless stream of training batches, each a pure function of its number."""

import threading
from collections.abc import Iterator
from typing import TypeVar

import numpy as np

from keras_seq.data.batch import Batch, Pairs, make_batch
from keras_seq.data.corpus import TokenCorpus
from keras_seq.data.counter_rng import Purpose, row_keys
from keras_seq.data.plan import Lengths, Shapes, make_plan
from keras_seq.data.sampled_pairs import PairSampling, SampledPairs, plan_lengths
from keras_seq.data.word_dropout import drop_words

# Tokens of drawn pairs that are kept at hand: enough for the batches of an update.
_RECENT_TOKENS = 2**20
T = TypeVar("T", int, np.ndarray)


class BatchStream:
    """Batches of pairs of like length, shuffled anew in every epoch.

    `batch(k)` depends on the corpus, the settings, the seed and k, and on nothing
    that was asked before: a run that stops after batch k goes on with `batch(k + 1)`
    without going through the ones before it. Each epoch holds every pair once.

    Shapes: B rows, S source steps, T target steps.

    Args:
        corpus: The `TokenCorpus` to draw from; it has at least one pair.
        batch_tokens: Positive integer. B x max(S, T) stays within it, except in
            a batch of a single row.
        seed: Non-negative integer. The order of the pairs follows from it.
        bucket_width: Positive integer. With exact shapes, pairs whose lengths fall into
            the same window of this many steps count as equally long. Wider
            windows mix more and pad more. Defaults to 1.
        shapes: `"exact"` pads a batch to its own longest pair. `"buckets"` pads to
            one of a few fixed shapes, rows included, so that a compiler makes a
            handful of programs; rows that are left over hold only zeros. Defaults
            to `"exact"`.
        max_shapes: Positive integer, how many fixed shapes there may be. They are
            chosen to pad this corpus least. Defaults to 8.
        host: Integer in `[0, hosts)`, which part of the rows this process takes.
        hosts: Positive integer, the number of processes that share each batch. Every
            host gets the same number of rows, the last ones maybe rows of zeros;
            the parts, one below the other, are the batch that one host would get.
        row_multiple: Positive integer. Rows of zeros are added below each host's part
            up to a multiple of it, so that the devices of a host can share the rows.
            They do not count against `batch_tokens`. Defaults to 1.
        word_dropout: Float in [0, 1), the chance of each token of `target_input` but the
            first to be replaced by the unknown one.
        source_word_dropout: Float in [0, 1), the same for `source`, end tokens excepted.
        sampling: Optional `PairSampling`. The words of a pair are then cut anew each time the
            pair comes. Batches are planned for what 99 of 100 pairs become; of a pair that
            becomes longer than its batch has room for, that side stays as the corpus has it.
        first_counted: Non-negative integer. Only target tokens from this id on count in
            `total_weight`: of tags, those of words. Defaults to 0, all of them.

    Raises:
        ValueError: If the corpus is empty or an argument is outside its range.

    Example:

    >>> import tempfile
    >>> from keras_seq.data import write_corpus
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     counts = write_corpus(f"{directory}/corpus", [([5, 6], [7])] * 12,
    ...                           max_source_length=10, max_target_length=10)
    ...     stream = BatchStream(TokenCorpus.open(f"{directory}/corpus"),
    ...                          batch_tokens=12, seed=1)
    ...     batch = stream.batch(7)
    >>> stream.batches_per_epoch, batch["source"].shape
    (3, (4, 3))
    >>> batch["target_input"][0].tolist(), batch["target_output"][0].tolist()
    ([2, 7], [7, 3])
    """

    def __init__(
        self,
        corpus: TokenCorpus,
        *,
        batch_tokens: int,
        seed: int,
        bucket_width: int = 1,
        shapes: Shapes = "exact",
        max_shapes: int = 8,
        host: int = 0,
        hosts: int = 1,
        row_multiple: int = 1,
        word_dropout: float = 0.0,
        source_word_dropout: float = 0.0,
        sampling: PairSampling | None = None,
        first_counted: int = 0,
    ) -> None:
        if seed < 0:
            raise ValueError(f"seed must not be negative, received {seed!r}")
        if not 0 <= host < hosts:
            raise ValueError(
                f"host must be from 0 up to, not with, hosts; received {host!r} of {hosts!r}"
            )
        if row_multiple < 1:
            raise ValueError(f"row_multiple must be a positive integer, received {row_multiple!r}")
        for name, share in (
            ("word_dropout", word_dropout),
            ("source_word_dropout", source_word_dropout),
        ):
            if not 0 <= share < 1:
                raise ValueError(f"{name} must be in [0, 1), received {share!r}")
        self._corpus = corpus
        self._dropout = {
            "source": (source_word_dropout, Purpose.SOURCE_WORDS),
            "target_input": (word_dropout, Purpose.TARGET_WORDS),
        }
        self._sampling = sampling
        self._first_counted = first_counted
        self._seed = seed
        self._fixed = shapes == "buckets"
        self._host = host
        self._hosts = hosts
        self._row_multiple = row_multiple
        lengths: Lengths = corpus
        if sampling is not None and len(corpus):
            lengths = plan_lengths(corpus, sampling, seed)
        self._plan = make_plan(
            lengths,
            batch_tokens=batch_tokens,
            bucket_width=bucket_width,
            shapes=shapes,
            max_shapes=max_shapes,
        )
        # One tuple, set at once: threads that fetch ahead never see half an epoch.
        self._epoch: tuple[int, np.ndarray, np.ndarray] | None = None
        # What was drawn lately, so that a batch and its total are not drawn twice.
        self._recent: dict[int, SampledPairs] = {}
        self._recent_lock = threading.Lock()

    @property
    def batches_per_epoch(self) -> int:
        """The number of batches in every epoch."""
        return len(self._plan)

    @property
    def bounds(self) -> np.ndarray:
        """What no batch exceeds: int64 `(M, 3)`, rows, source and target steps of each."""
        bounds = self._plan.shape.copy()
        bounds[:, 0] = self._filled(self._share(bounds[:, 0]))
        return bounds

    def shapes(self) -> list[tuple[int, int, int]]:
        """All shapes `(rows, source steps, target steps)` that this host's batches can have.

        Returns:
            The shapes, ascending.

        Raises:
            ValueError: If the stream was made with `shapes="exact"`.
        """
        if not self._fixed:
            raise ValueError(
                'Exact shapes have no list; make the stream with shapes="buckets" for a few fixed '
                "ones."
            )
        return sorted({(rows, source, target) for rows, source, target in self.bounds.tolist()})

    def batch(self, k: int) -> Batch:
        """Makes batch k of the stream; the first is batch 0.

        Args:
            k: Non-negative integer.

        Returns:
            A dict of int32 arrays, zeros behind and below: `source` `(B, S)`, the tokens and the
            end token; `target_input` `(B, T)`, the begin token and the tokens; `target_output`
            `(B, T)`, the tokens and the end token. Where the corpus has them, float32
            arrays too: `weight` `(B,)`, and `alignment` `(B, T, S)`, whose row t has shares
            of 1 where source tokens are linked to token t of `target_output`, or zeros.

        Raises:
            ValueError: If `k` is negative.
        """
        number, members = self._members(k)
        pairs, places = self._read_from(k, number, members)
        rows, source_steps, target_steps = self._plan.shape[number].tolist()
        if not self._fixed:
            source_steps = int(pairs.source_lengths[places].max()) + 1
            target_steps = int(pairs.target_lengths[places].max()) + 1
        # Rows of zeros are the last ones of the whole batch, and of those before them each has the
        # place that it has on one host: what is drawn for a place is drawn for the same pair.
        share = self._filled(self._share(rows))
        mine = slice(self._host * share, (self._host + 1) * share)
        batch = make_batch(pairs, places[mine], share, source_steps, target_steps)
        for key, (chance, purpose) in self._dropout.items():
            if chance:
                epoch = k // len(self._plan)
                keys = row_keys(self._seed, epoch, members[mine], purpose)
                batch = drop_words(batch, key, chance, keys)
        return batch

    def total_weight(self, k: int) -> float:
        """The target tokens of batch k on all hosts together, each times the weight of its pair.

        End tokens count. Found from lengths and weights alone, unless words are cut anew or only
        some tokens count.

        Args:
            k: Non-negative integer.

        Returns:
            The sum; without weights the number of tokens.

        Raises:
            ValueError: If `k` is negative.
        """
        number, members = self._members(k)
        pairs, places = self._read_from(k, number, members)
        tokens = pairs.target_lengths[places].astype(np.float64)
        if self._first_counted:
            ids = pairs.padded("target", places, int(tokens.max()))
            tokens = (ids >= self._first_counted).sum(-1).astype(np.float64)
        if not pairs.is_packed:
            tokens += 1
        return float((tokens * pairs.weights(places)).sum())

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """Makes one batch after the other, without end, from batch `start` on."""
        k = start
        while True:
            yield self.batch(k)
            k += 1

    def _members(self, k: int) -> tuple[int, np.ndarray]:
        """The place of batch k in the plan, and its pairs on all hosts."""
        if k < 0:
            raise ValueError(f"k must not be negative, received {k!r}")
        epoch, place = divmod(k, len(self._plan))
        pairs, order = self._order(epoch)
        number = int(order[place])
        return number, pairs[self._plan.cuts[number] : self._plan.cuts[number + 1]]

    def _read_from(self, k: int, number: int, members: np.ndarray) -> tuple[Pairs, np.ndarray]:
        """Where the pairs of batch k are read, and their places there: all hosts' pairs."""
        if self._sampling is None:
            return self._corpus, members
        with self._recent_lock:
            drawn = self._recent.get(k)
        if drawn is None:
            _, source_steps, target_steps = self._plan.shape[number].tolist()
            drawn = SampledPairs(
                self._corpus,
                members,
                self._sampling,
                self._seed,
                k // len(self._plan),
                (source_steps - 1, target_steps - 1),
            )
            with self._recent_lock:
                held = drawn.tokens + sum(pairs.tokens for pairs in self._recent.values())
                while self._recent and held > _RECENT_TOKENS:
                    held -= self._recent.pop(next(iter(self._recent))).tokens
                self._recent[k] = drawn
        return drawn, np.arange(len(members))

    def _share(self, rows: T) -> T:
        """The rows that each host takes of so many, at least."""
        return -(-rows // self._hosts)

    def _filled(self, share: T) -> T:
        """The rows of a host's batch, those of zeros included."""
        return -(-share // self._row_multiple) * self._row_multiple

    def _order(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        known = self._epoch
        if known is None or known[0] != epoch:
            # Let the old order go first: with many pairs, two at a time are a lot of memory.
            self._epoch = known = None
            self._epoch = known = (epoch, *self._plan.shuffled(self._seed, epoch))
        return known[1], known[2]
