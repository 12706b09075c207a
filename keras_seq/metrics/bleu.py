"""Corpus BLEU."""

import keras
import sacrebleu.metrics
from keras import ops

from keras_seq.metrics.summed import SummedMetric, add, ratio
from keras_seq.metrics.texts import (
    decode_config,
    decode_of,
    is_text,
    statistics_of_ids,
    statistics_of_lines,
)
from keras_seq.metrics.tokens import PREDICTED_FILL, TRUE_FILL, pairs_of_rows

# Shape letters: B batch, N steps of the truth, M steps of the prediction, V vocabulary.

ORDERS = 4


@keras.saving.register_keras_serializable(package="keras_seq")
class BLEU(SummedMetric):
    """Corpus BLEU, of token ids or of text, equal to sacreBLEU's.

        BLEU = 100 * min(1, exp(1 - r / c)) * (p_1 p_2 p_3 p_4) ** (1 / 4)
        p_n  = n-grams of the predictions that are in the truth / n-grams of the predictions

    c and r are the tokens of the predictions and of the truth. Counts are sums over all batches.
    An order without a match gets half the last smoothed precision (sacreBLEU's `exp`).

    There are three ways to call it:

    * Ids without `decode`: BLEU of tokens, as sacreBLEU computes it of the ids with a space
      between and `tokenize="none"`. It runs in compiled code. With subwords it is not
      comparable to BLEU of words.
    * Ids with `decode`: BLEU of the decoded texts, computed on the host, in compiled code too. XLA
      cannot do that on TensorFlow: with a GPU compile the model with `jit_compile=False`.
    * Lists of strings, in `update_state` called by hand.

    The end token is not text: it does not count, nor does what follows it. A row of padding
    alone, which fills up a batch, does not count.

    Logits come from a model that reads the true tokens before each step (teacher forcing), so
    their BLEU is higher than that of translations. For the latter pass the ids that a search
    found.

    Shapes: B batch, T steps, M steps of the prediction, V vocabulary.

    Args:
        decode: Optional function of a list of lists of ids to as many strings, such as
            `Tokenizer.decode`. Register it with
            `keras.saving.register_keras_serializable` to save a compiled model.
        tokenize: sacreBLEU's tokenizer of texts; None is its default, "13a".
        pad_id: Id of padding, or None if no id is padding.
        end_id: Id of the end token, or None if rows end with padding alone.
        name: Name of the metric.
        dtype: Dtype of the result.

    Call arguments:
        y_true: Integer ids `(B, T)`, or B strings.
        y_pred: Float logits `(B, T, V)`, whose mask is respected, integer ids `(B, M)`, or B
            strings.
        sample_weight: Optional weights `(B,)`; a row of weight 2 counts as two rows.

    Returns:
        Float scalar, 0 to 100.

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

    def __init__(self, decode=None, tokenize=None, pad_id=0, end_id=3, name="bleu", dtype=None):
        super().__init__(pad_id, name, dtype)
        self.decode = decode
        self.tokenize = tokenize
        self.end_id = end_id
        # Of the texts only; `force` keeps it from logging that a text looks tokenized.
        self._texts = sacrebleu.metrics.BLEU(tokenize=tokenize, force=True)
        self.length = self.add_sum("length")
        self.true_length = self.add_sum("true_length")
        self.matches = self.add_sum("matches", (ORDERS,))
        self.totals = self.add_sum("totals", (ORDERS,))

    def update_state(self, y_true, y_pred, sample_weight=None):
        text = is_text(y_true), is_text(y_pred)
        if any(text) and not all(text):
            raise TypeError("`y_true` and `y_pred` must both be lists of strings, or both ids.")
        if all(text):
            sums = statistics_of_lines(self._statistics, y_true, y_pred, sample_weight)
        elif self.decode is not None:
            sums = statistics_of_ids(
                self._statistics,
                2 + 2 * ORDERS,
                self.decode,
                y_true,
                y_pred,
                sample_weight,
                self.pad_id,
                self.end_id,
            )
        else:
            sums = _statistics_of_tokens(
                *pairs_of_rows(
                    y_true, y_pred, sample_weight, self.pad_id, self.end_id, keep_end=False
                )
            )
        sums = ops.broadcast_to(sums, (2 + 2 * ORDERS,))
        add(self.length, sums[0])
        add(self.true_length, sums[1])
        add(self.matches, sums[2 : 2 + ORDERS])
        add(self.totals, sums[2 + ORDERS :])

    def _statistics(self, truth, prediction):
        found = self._texts.corpus_score([prediction], [[truth]])
        return [found.sys_len, found.ref_len, *found.counts, *found.totals]

    def result(self):
        matches, totals = map(ops.convert_to_tensor, (self.matches, self.totals))
        unmatched = ops.equal(matches, 0)
        # The n-th order without a match counts 1 / 2^n matches.
        smoothed = ops.power(2.0, -ops.cumsum(ops.cast(unmatched, matches.dtype)))
        precisions = ratio(ops.where(unmatched, smoothed, matches), totals)
        positive = ops.maximum(precisions, 1e-30)
        mean = ops.exp(ops.mean(ops.log(positive)))
        penalty = ops.exp(ops.minimum(1.0 - ratio(self.true_length, self.length), 0.0))
        # Without any match, or without one n-gram of four, the score is 0.
        defined = ops.logical_and(ops.any(matches > 0), ops.all(totals > 0))
        return ops.cast(ops.where(defined, 100.0 * penalty * mean, 0.0), self.dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "decode": decode_config(self.decode),
            "tokenize": self.tokenize,
            "end_id": self.end_id,
        }

    @classmethod
    def from_config(cls, config):
        return cls(**decode_of(config))


def _statistics_of_tokens(true, true_lengths, ids, lengths, weights):
    """Tokens of the predictions and of the truth, matches and totals of each order.

    Args:
        true: Int32 ids `(B, N)`, filled with `TRUE_FILL`.
        true_lengths: Int32 `(B,)`.
        ids: Int32 ids `(B, M)`, filled with `PREDICTED_FILL`.
        lengths: Int32 `(B,)`.
        weights: Float `(B,)`.
    """
    more = [[0, 0], [0, ORDERS]]
    true = ops.pad(true, more, constant_values=TRUE_FILL)
    ids = ops.pad(ids, more, constant_values=PREDICTED_FILL)
    steps = ops.cumsum(ops.ones_like(ids), axis=1)  # (B, M), from 1
    in_truth = in_prediction = None
    matches, totals = [], []
    for order in range(1, ORDERS + 1):
        in_truth = _longer(in_truth, ids, true, order)  # (B, M, N)
        in_prediction = _longer(in_prediction, ids, ids, order)  # (B, M, M)
        there = ops.sum(ops.cast(in_truth, "int32"), axis=2)
        # The n-th occurrence of an n-gram is a match if the truth has it n times.
        before = ops.logical_and(in_prediction, steps[:, :, None] >= steps[:, None, :])
        occurrence = ops.sum(ops.cast(before, "int32"), axis=2)
        whole = steps + order - 1 <= lengths[:, None]
        right = ops.logical_and(whole, occurrence <= there)
        matches.append(ops.sum(ops.cast(right, "int32"), axis=1))
        totals.append(ops.maximum(lengths - order + 1, 0))
    counts = ops.stack([lengths, true_lengths, *matches, *totals], axis=1)
    return ops.sum(ops.cast(counts, "float32") * weights[:, None], axis=0)


def _longer(shorter, left, right, order):
    """Equality of the n-grams at i of `left` and at j of `right`, bool `(B, M, N)`.

    Args:
        shorter: Equality of the n-grams that are one token shorter; None if n is 1.
        left: Ids `(B, M)`.
        right: Ids `(B, N)`.
        order: Integer n.
    """
    behind = order - 1
    # Ids `behind` steps later; what comes from beyond the end differs from every id.
    left = ops.pad(left[:, behind:], [[0, 0], [0, behind]], constant_values=-3)
    right = ops.pad(right[:, behind:], [[0, 0], [0, behind]], constant_values=-4)
    same = ops.equal(left[:, :, None], right[:, None, :])
    return same if shorter is None else ops.logical_and(shorter, same)
