"""Corpus BLEU."""

from typing import Any

import keras
import sacrebleu.metrics
from keras import ops

from keras_seq.metrics.summed import ratio
from keras_seq.metrics.texts import Decode, TextMetric
from keras_seq.metrics.tokens import PREDICTED_FILL, TRUE_FILL

# Shape letters: B batch, N steps of the truth, M steps of the prediction, V vocabulary.

ORDERS = 4


@keras.saving.register_keras_serializable(package="keras_seq")
class BLEU(TextMetric):
    """Corpus BLEU of token ids or texts, equal to that of sacreBLEU.

        BLEU = 100 * min(1, exp(1 - r / c)) * (p_1 p_2 p_3 p_4) ** (1 / 4)
        p_n  = n-grams of the predictions that are in the truth / n-grams of the predictions

    c and r are the lengths of predictions and truth in tokens. All counts are summed over the
    batches of an epoch. An order without a match counts as half the last smoothed precision
    (sacreBLEU's smoothing `exp`).

    There are three ways to call the metric:

    * Ids without `decode`: BLEU of tokens, as sacreBLEU computes for the ids joined by spaces with
      `tokenize="none"`. It runs in compiled code. BLEU of subwords is not comparable to BLEU of
      words.
    * Ids with `decode`: BLEU of the decoded texts, computed on the host, also from compiled code.
      XLA does not support this on TensorFlow, so compile models with `jit_compile=False` on a GPU.
    * Lists of strings, by calling `update_state` directly.

    The end token, the tokens after it, and rows that contain only padding do not count. Logits of a
    training model are computed with teacher forcing, so their BLEU is higher than that of
    translations. To score translations, pass the ids from a search.

    Shapes: B batch, T steps, M steps of the prediction, V vocabulary.

    Args:
        decode: Optional function that decodes a list of rows of ids, such as `Tokenizer.decode`.
            Register it with `keras.saving.register_keras_serializable` to save a compiled model.
        tokenize: Tokenizer of sacreBLEU for texts. Defaults to that of sacreBLEU, "13a".
        pad_id, end_id: Ids of padding, 0 by default, and of the end token, 3 by default; None if no
            id is padding, or if rows end only with padding.
        name, dtype: Name of the metric, and dtype of the result.

    Call arguments:
        y_true: Integer ids `(B, T)`, or B strings.
        y_pred: Float logits `(B, T, V)`, whose Keras mask is respected, integer ids `(B, M)`, or
            B strings.
        sample_weight: Optional weights `(B,)`; a row of weight 2 counts as two rows.

    Returns:
        Float scalar from 0 to 100.

    Raises:
        TypeError: If one side is text and the other is not.
        ValueError: If a shape does not fit.

    Example:

    >>> metric = BLEU()
    >>> true = keras.ops.array([[5, 6, 7, 8, 9, 3]])
    >>> round(float(metric(true, keras.ops.array([[5, 6, 7, 8, 4, 3]]))), 2)
    66.87
    >>> float(BLEU()(["a dog runs fast"], ["a dog runs fast"]))
    100.0

    Reference:
        Papineni et al., "BLEU: a Method for Automatic Evaluation of Machine Translation",
        ACL 2002, https://aclanthology.org/P02-1040/; Post, "A Call for Clarity in Reporting
        BLEU Scores", WMT 2018, https://aclanthology.org/W18-6319/
    """

    default_name = "bleu"
    num_statistics = 2 + 2 * ORDERS

    def __init__(
        self,
        decode: Decode | None = None,
        tokenize: str | None = None,
        pad_id: int | None = 0,
        end_id: int | None = 3,
        name: str | None = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(decode, pad_id, end_id, name, dtype)
        self.tokenize = tokenize
        # `force` silences the warning about texts that look tokenized.
        self._sacrebleu = sacrebleu.metrics.BLEU(tokenize=tokenize, force=True)

    def statistics_of_pair(self, truth: str, prediction: str) -> list[float]:
        score = self._sacrebleu.corpus_score([prediction], [[truth]])
        return [score.sys_len, score.ref_len, *score.counts, *score.totals]

    def statistics_of_tokens(self, *rows: Any) -> Any:
        return _statistics_of_tokens(*rows)

    def result(self) -> Any:
        sums = ops.convert_to_tensor(self.statistics)
        matches, totals = sums[2 : 2 + ORDERS], sums[2 + ORDERS :]
        unmatched = ops.equal(matches, 0)
        # The n-th order without a match counts as 1 / 2^n matches.
        smoothed = ops.power(2.0, -ops.cumsum(ops.cast(unmatched, matches.dtype)))
        precisions = ratio(ops.where(unmatched, smoothed, matches), totals)
        positive = ops.maximum(precisions, 1e-30)
        mean = ops.exp(ops.mean(ops.log(positive)))
        penalty = ops.exp(ops.minimum(1.0 - ratio(sums[1], sums[0]), 0.0))
        # The score is 0 without any match or without any n-gram of length four.
        defined = ops.logical_and(ops.any(matches > 0), ops.all(totals > 0))
        return ops.cast(ops.where(defined, 100.0 * penalty * mean, 0.0), self.dtype)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "tokenize": self.tokenize}


def _statistics_of_tokens(
    true: Any, true_lengths: Any, ids: Any, lengths: Any, weights: Any
) -> Any:
    """Returns the lengths of predictions and truth, matches and totals of each order.

    The ids `(B, N)` are filled with `TRUE_FILL` and `PREDICTED_FILL`; lengths and weights are
    `(B,)`.
    """
    padding = [[0, 0], [0, ORDERS]]
    true = ops.pad(true, padding, constant_values=TRUE_FILL)
    ids = ops.pad(ids, padding, constant_values=PREDICTED_FILL)
    steps = ops.cumsum(ops.ones_like(ids), axis=1)  # (B, M), from 1
    in_truth = in_prediction = None
    matches, totals = [], []
    for order in range(1, ORDERS + 1):
        in_truth = _equal_ngrams(in_truth, ids, true, order)  # (B, M, N)
        in_prediction = _equal_ngrams(in_prediction, ids, ids, order)  # (B, M, M)
        count_in_truth = ops.sum(ops.cast(in_truth, "int32"), axis=2)
        # Occurrence k of an n-gram is a match if the truth contains the n-gram at least k times.
        before = ops.logical_and(in_prediction, steps[:, :, None] >= steps[:, None, :])
        occurrence = ops.sum(ops.cast(before, "int32"), axis=2)
        complete = steps + order - 1 <= lengths[:, None]
        right = ops.logical_and(complete, occurrence <= count_in_truth)
        matches.append(ops.sum(ops.cast(right, "int32"), axis=1))
        totals.append(ops.maximum(lengths - order + 1, 0))
    counts = ops.stack([lengths, true_lengths, *matches, *totals], axis=1)
    return ops.sum(ops.cast(counts, "float32") * weights[:, None], axis=0)


def _equal_ngrams(shorter: Any, left: Any, right: Any, order: int) -> Any:
    """Returns a bool `(B, M, N)`, True if the n-grams at i of `left` and j of `right` are equal.

    `shorter` is the result for n-grams of `order - 1` tokens; None if `order` is 1.
    """
    shift = order - 1
    # Compare tokens at the same offset in each n-gram. The padding differs from every id.
    left = ops.pad(left[:, shift:], [[0, 0], [0, shift]], constant_values=-3)
    right = ops.pad(right[:, shift:], [[0, 0], [0, shift]], constant_values=-4)
    same = ops.equal(left[:, :, None], right[:, None, :])
    return same if shorter is None else ops.logical_and(shorter, same)
