"""The endless stream of training batches: batch k is a pure function of k."""

import threading
from collections.abc import Collection
from typing import TypeVar

import numpy as np

from keras_seq.data.balance import balanced_rows
from keras_seq.data.batch import Batch, Pairs, features_shape, make_batch
from keras_seq.data.corpus import TokenCorpus
from keras_seq.data.counter_rng import Purpose, row_keys
from keras_seq.data.plan import Lengths, Shapes, make_plan
from keras_seq.data.sampled_pairs import (
    PairSampling,
    PlannedLengths,
    SampledPairs,
    plan_lengths,
)
from keras_seq.data.unseen_tokens import UnseenTokens, replace_tokens
from keras_seq.data.word_dropout import drop_words

# Maximum tokens in the cache of sampled pairs, enough for the batches of one update.
_CACHE_TOKENS = 2**20
T = TypeVar("T", int, np.ndarray)


class BatchStream:
    """Batches of pairs of similar length, reshuffled in every epoch.

    `batch(k)` depends on the corpus, the settings, the seed and k only. A run that stops after
    batch k resumes with `batch(k + 1)` without replaying earlier batches. Each epoch contains every
    pair once, unless `temperature` is above 1.

    Shapes: B rows, S source steps, T target steps.

    Args:
        corpus: The `TokenCorpus`, with at least one pair.
        batch_tokens: Positive integer, the maximum of B x max(S, T). A batch of one row may exceed
            it.
        seed: Non-negative integer, the random seed.
        bucket_width: Positive integer. With exact shapes, pairs whose lengths fall into the same
            window of this many steps are shuffled together. Wider windows shuffle more and pad
            more.
        shapes: `"exact"` pads a batch to its own longest pair. `"buckets"` pads to one of a few
            fixed shapes, so that a compiler builds few programs; unused rows are zero.
        max_shapes: Positive integer, the maximum number of fixed shapes, which are chosen to
            minimize the padding of this corpus.
        word_dropout, source_word_dropout: Floats in [0, 1), the probability of replacing a token of
            `target_input` or `source`, except begin and end tokens, by the unknown token.
        unseen: Optional `UnseenTokens`, which replaces tokens of both sides of a pair by bytes.
        sampling: Optional `PairSampling`, which samples the subwords of a pair anew in every epoch.
            Batches are planned for lengths that 99 % of the pairs fit; a source or target that does
            not fit its batch keeps the stored tokens.
        tags: Token ids of the tags of target languages, which `source_word_dropout` keeps.
        temperature: Float of at least 1. Above 1, an epoch contains the pairs of rare languages
            several times; see `balanced_sizes`. The language of a pair is the one of `tags` that is
            among its first two source tokens.
        first_counted: Non-negative integer. `total_weight` counts only target tokens from this id
            on. For tags, these are the tags of words.
        host: Integer in `[0, hosts)`, the index of this process.
        hosts: Positive integer, the number of processes that share each batch. Every host gets the
            same number of rows; rows of the last hosts may be zero. The concatenated shards are the
            batch of a single host.
        row_multiple: Positive integer. The shard of each host is padded with zero rows to a
            multiple of this number, so that its devices can split the rows. These rows do not count
            against `batch_tokens`.

    Raises:
        ValueError: The corpus is empty or an argument is out of range.

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

    # True if the rows of a batch continue those of the batch before.
    carries = False

    def __init__(
        self,
        corpus: TokenCorpus,
        *,
        batch_tokens: int,
        seed: int,
        bucket_width: int = 1,
        shapes: Shapes = "exact",
        max_shapes: int = 8,
        word_dropout: float = 0.0,
        source_word_dropout: float = 0.0,
        unseen: UnseenTokens | None = None,
        sampling: PairSampling | None = None,
        tags: Collection[int] = (),
        temperature: float = 1.0,
        first_counted: int = 0,
        host: int = 0,
        hosts: int = 1,
        row_multiple: int = 1,
    ) -> None:
        if seed < 0:
            raise ValueError(f"seed must not be negative, received {seed!r}")
        if not 0 <= host < hosts:
            raise ValueError(
                f"host must be from 0 up to, not with, hosts; received {host!r} of {hosts!r}"
            )
        if row_multiple < 1:
            raise ValueError(f"row_multiple must be a positive integer, received {row_multiple!r}")
        for name, rate in (
            ("word_dropout", word_dropout),
            ("source_word_dropout", source_word_dropout),
        ):
            if not 0 <= rate < 1:
                raise ValueError(f"{name} must be in [0, 1), received {rate!r}")
        if temperature < 1:
            raise ValueError(f"temperature must be at least 1, received {temperature!r}")
        self._corpus = corpus
        self._tags = np.array(sorted(tags), np.int32)
        self._dropout = {
            "source": (source_word_dropout, Purpose.SOURCE_WORDS),
            "target_input": (word_dropout, Purpose.TARGET_WORDS),
        }
        self._unseen = unseen
        self._seed, self._sampling, self._first_counted = seed, sampling, first_counted
        self._host, self._hosts, self._row_multiple = host, hosts, row_multiple
        self._fixed = shapes == "buckets"
        lengths: Lengths = corpus
        if sampling is not None and len(corpus):
            lengths = plan_lengths(corpus, sampling, seed)
        # The pairs of an epoch if some occur several times, else None.
        self._rows: np.ndarray | None = None
        if temperature > 1 and len(corpus):
            self._rows = balanced_rows(_languages(corpus, self._tags), temperature)
            lengths = PlannedLengths(
                lengths.source_lengths[self._rows], lengths.target_lengths[self._rows]
            )
        self._plan = make_plan(
            lengths,
            batch_tokens=batch_tokens,
            bucket_width=bucket_width,
            shapes=shapes,
            max_shapes=max_shapes,
        )
        # A single tuple, which is assigned atomically, because prefetching threads read it.
        self._epoch: tuple[int, np.ndarray, np.ndarray] | None = None
        # `batch` and `total_weight` use the same sampled pairs of a batch.
        self._cache: dict[int, SampledPairs] = {}
        self._cache_lock = threading.Lock()

    @property
    def batches_per_epoch(self) -> int:
        """Number of batches in every epoch."""
        return len(self._plan)

    @property
    def bounds(self) -> np.ndarray:
        """Upper bounds of the rows, source and target steps of each batch: int64 `(M, 3)`."""
        bounds = self._plan.shape.copy()
        bounds[:, 0] = self._host_rows(bounds[:, 0])
        return bounds

    def features_shape(self, rows: int, source_steps: int) -> tuple[int, ...] | None:
        """Returns the shape of the features of a batch, or None if there are none."""
        if not self._corpus.has_features:
            return None
        return features_shape(self._corpus, rows, source_steps)

    def batch(self, k: int) -> Batch:
        """Builds batch k of the stream, counted from 0; see `make_batch`."""
        number, members = self._members(k)
        pairs, positions = self._pairs(k, number, members)
        rows, source_steps, target_steps = self._plan.shape[number].tolist()
        if not self._fixed:
            source_steps = int(pairs.source_lengths[positions].max()) + 1
            target_steps = int(pairs.target_lengths[positions].max()) + 1
        # Zero rows are last in the global batch, so `hosts` does not change the row of a pair.
        host_rows = self._host_rows(rows)
        shard = slice(self._host * host_rows, (self._host + 1) * host_rows)
        batch = make_batch(pairs, positions[shard], host_rows, source_steps, target_steps)
        epoch = k // len(self._plan)
        if self._unseen is not None:
            keys = row_keys(self._seed, epoch, members[shard], Purpose.UNSEEN_TOKENS)
            batch = replace_tokens(batch, self._unseen, keys)
        for key, (rate, purpose) in self._dropout.items():
            if rate:
                keys = row_keys(self._seed, epoch, members[shard], purpose)
                batch = drop_words(batch, key, rate, keys, self._tags)
        return batch

    def total_weight(self, k: int) -> float:
        """Sums the weights of the target tokens of batch k, end tokens included, over all hosts.

        The token ids are read only for `sampling` or `first_counted`. A corpus without weights has
        weights of 1.
        """
        number, members = self._members(k)
        pairs, positions = self._pairs(k, number, members)
        tokens = pairs.target_lengths[positions].astype(np.float64)
        if self._first_counted:
            ids = pairs.padded("target", positions, int(tokens.max()))
            tokens = (ids >= self._first_counted).sum(-1).astype(np.float64)
        if not pairs.is_packed:
            tokens += 1
        return float((tokens * pairs.weights(positions)).sum())

    def _members(self, k: int) -> tuple[int, np.ndarray]:
        """Returns the index of batch k in the plan, and the pairs of the batch on all hosts."""
        if k < 0:
            raise ValueError(f"k must not be negative, received {k!r}")
        epoch, position = divmod(k, len(self._plan))
        pairs, order = self._order(epoch)
        number = int(order[position])
        members = pairs[self._plan.cuts[number] : self._plan.cuts[number + 1]]
        return number, members if self._rows is None else self._rows[members]

    def _pairs(self, k: int, number: int, members: np.ndarray) -> tuple[Pairs, np.ndarray]:
        """Returns the corpus, resampled if requested, and the indices of the pairs of batch k."""
        if self._sampling is None:
            return self._corpus, members
        with self._cache_lock:
            sampled = self._cache.get(k)
        if sampled is None:
            _, source_steps, target_steps = self._plan.shape[number].tolist()
            epoch, limits = k // len(self._plan), (source_steps - 1, target_steps - 1)
            sampled = SampledPairs(self._corpus, members, self._sampling, self._seed, epoch, limits)
            with self._cache_lock:
                tokens = sampled.tokens + sum(pairs.tokens for pairs in self._cache.values())
                while self._cache and tokens > _CACHE_TOKENS:
                    tokens -= self._cache.pop(next(iter(self._cache))).tokens
                self._cache[k] = sampled
        return sampled, np.arange(len(members))

    def _host_rows(self, rows: T) -> T:
        """Returns the rows per host, including zero rows, for a global batch of `rows` rows."""
        per_host = -(-rows // self._hosts)
        return -(-per_host // self._row_multiple) * self._row_multiple

    def _order(self, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        cached = self._epoch
        if cached is None or cached[0] != epoch:
            # Free the old order first: with many pairs, two orders take a lot of memory.
            self._epoch = cached = None
            self._epoch = cached = (epoch, *self._plan.shuffled(self._seed, epoch))
        return cached[1], cached[2]


def _languages(corpus: TokenCorpus, tags: np.ndarray) -> np.ndarray:
    """Returns the tag of the target language of each pair, int32 `(N,)`; 0 without one."""
    # A space may precede the tag.
    first = corpus.first_source_ids(2)
    return np.where(np.isin(first, tags), first, 0).max(axis=1, initial=0)
