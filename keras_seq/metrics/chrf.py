"""Corpus chrF."""

import keras
from keras import ops
from sacrebleu.metrics.helpers import extract_all_char_ngrams

from keras_seq.metrics.summed import SummedMetric, add, ratio
from keras_seq.metrics.texts import (
    decode_config,
    decode_of,
    is_text,
    statistics_of_ids,
    statistics_of_lines,
)

ORDERS = 6
BETA = 2


@keras.saving.register_keras_serializable(package="keras_seq")
class ChrF(SummedMetric):
    """Corpus chrF of texts, the F-score of their character n-grams, equal to sacreBLEU's.

        chrF = 100 * 5 P R / (4 P + R)

    P is the mean over n = 1 ... 6 of the share of the predictions' n-grams that are in the
    truth, and R that of the truth's n-grams that are in the predictions. White space does not
    count. Counts are sums over all batches.

    It takes lists of strings, in `update_state` called by hand, or ids with `decode`. Both are
    computed on the host, ids in compiled code too. XLA cannot do that on TensorFlow: with a GPU
    compile the model with `jit_compile=False`. The end token does not count, nor does what
    follows it, nor a row of padding alone.

    Logits come from a model that reads the true tokens before each step (teacher forcing), so
    their chrF is higher than that of translations. For the latter pass the ids that a search
    found.

    Shapes: B batch, T steps, M steps of the prediction, V vocabulary.

    Args:
        decode: Function of a list of lists of ids to as many strings, such as
            `Tokenizer.decode`; None if only strings come. Register it with
            `keras.saving.register_keras_serializable` to save a compiled model.
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
        TypeError: If one side is text and the other is not, or ids come without `decode`.
        ValueError: If a shape does not fit.

    Example:

    >>> round(float(ChrF()(["a dog runs", "a cat"], ["a dog ran", "a cat"])), 2)
    49.74

    Reference:
        Popović, "chrF: character n-gram F-score for automatic MT evaluation", WMT 2015,
        https://aclanthology.org/W15-3049/
    """

    def __init__(self, decode=None, pad_id=0, end_id=3, name="chrf", dtype=None):
        super().__init__(pad_id, name, dtype)
        self.decode = decode
        self.end_id = end_id
        self.found = self.add_sum("found", (ORDERS,))
        self.expected = self.add_sum("expected", (ORDERS,))
        self.matches = self.add_sum("matches", (ORDERS,))

    def update_state(self, y_true, y_pred, sample_weight=None):
        text = is_text(y_true), is_text(y_pred)
        if any(text) and not all(text):
            raise TypeError("`y_true` and `y_pred` must both be lists of strings, or both ids.")
        if all(text):
            sums = statistics_of_lines(_statistics, y_true, y_pred, sample_weight)
        elif self.decode is None:
            raise TypeError(
                "chrF compares characters: pass lists of strings, or make the metric with "
                "`decode`, a function of lists of ids to strings."
            )
        else:
            sums = statistics_of_ids(
                _statistics,
                3 * ORDERS,
                self.decode,
                y_true,
                y_pred,
                sample_weight,
                self.pad_id,
                self.end_id,
            )
        found, expected, matches = ops.split(ops.broadcast_to(sums, (3 * ORDERS,)), 3)
        add(self.found, found)
        add(self.expected, expected)
        add(self.matches, matches)

    def result(self):
        # Orders that one side has no n-gram of are left out of the means.
        found, expected = map(ops.convert_to_tensor, (self.found, self.expected))
        counted = ops.logical_and(found > 0, expected > 0)
        orders = ops.sum(ops.cast(counted, found.dtype))

        def mean(totals):
            return ratio(ops.sum(ops.where(counted, ratio(self.matches, totals), 0.0)), orders)

        precision, recall = mean(found), mean(expected)
        score = ratio((1 + BETA**2) * precision * recall, BETA**2 * precision + recall)
        return ops.cast(100.0 * score, self.dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "decode": decode_config(self.decode),
            "end_id": self.end_id,
        }

    @classmethod
    def from_config(cls, config):
        return cls(**decode_of(config))


def _statistics(truth, prediction):
    """n-grams of the prediction, of the truth and of both, of each order."""
    pairs = list(
        zip(
            extract_all_char_ngrams(prediction, ORDERS, False),
            extract_all_char_ngrams(truth, ORDERS, False),
            strict=True,
        )
    )
    return [
        # As sacreBLEU: n-grams of an order that the truth is too short for are not counted.
        *(found.total() if expected else 0 for found, expected in pairs),
        *(expected.total() for _, expected in pairs),
        *((found & expected).total() for found, expected in pairs),
    ]
