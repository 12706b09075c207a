"""Corpus chrF."""

from typing import Any

import keras
from keras import ops
from sacrebleu.metrics.helpers import extract_all_char_ngrams

from keras_seq.metrics.summed import ratio
from keras_seq.metrics.texts import TextMetric

ORDERS = 6
BETA = 2


@keras.saving.register_keras_serializable(package="keras_seq")
class ChrF(TextMetric):
    """Corpus chrF of texts, the F-score of character n-grams, equal to that of sacreBLEU.

        chrF = 100 * 5 P R / (4 P + R)

    P is the fraction of the predictions' n-grams that are in the truth. R is the fraction of the
    truth's n-grams that are in the predictions. Both are means over n = 1 ... 6. White
    space is ignored. All counts are summed over the batches of an epoch.

    Pass lists of strings by calling `update_state` directly, or ids with `decode`. Both are
    computed on the host, ids also from compiled code. XLA does not support this on TensorFlow, so
    compile models with `jit_compile=False` on a GPU. The end token, the tokens after it, and rows
    that contain only padding do not count. To score translations, pass the ids from a search. As
    for `BLEU`, logits of a training model score higher.

    Shapes: B batch, T steps, M steps of the prediction, V vocabulary.

    Args:
        decode: Function that decodes a list of rows of ids, such as `Tokenizer.decode`, or None if
            only strings are passed. Register it to save a compiled model, as for `BLEU`.
        pad_id, end_id, name, dtype: As for `BLEU`.

    Call arguments:
        y_true: B strings, or integer ids `(B, T)`.
        y_pred: B strings, float logits `(B, T, V)`, whose Keras mask is respected, or integer ids
            `(B, M)`.
        sample_weight: Optional weights `(B,)`; a row of weight 2 counts as two rows.

    Returns:
        Float scalar from 0 to 100.

    Raises:
        TypeError: If one side is text and the other is not, or ids are passed without `decode`.
        ValueError: If a shape does not fit.

    Example:

    >>> round(float(ChrF()(["a dog runs", "a cat"], ["a dog ran", "a cat"])), 2)
    49.74

    Reference:
        Popović, "chrF: character n-gram F-score for automatic MT evaluation", WMT 2015,
        https://aclanthology.org/W15-3049/
    """

    default_name = "chrf"
    num_statistics = 3 * ORDERS

    def statistics_of_pair(self, truth: str, prediction: str) -> list[float]:
        """Returns the n-grams of the prediction, of the truth and of both, for each order."""
        sides = (extract_all_char_ngrams(text, ORDERS, False) for text in (prediction, truth))
        pairs = list(zip(*sides, strict=True))
        return [
            # As in sacreBLEU, skip n-gram orders that are longer than the reference.
            *(predicted.total() if expected else 0 for predicted, expected in pairs),
            *(expected.total() for _, expected in pairs),
            *((predicted & expected).total() for predicted, expected in pairs),
        ]

    def result(self) -> Any:
        # Average only over the orders for which both prediction and truth have n-grams.
        predicted, expected, matches = ops.split(ops.convert_to_tensor(self.statistics), 3)
        counted = ops.logical_and(predicted > 0, expected > 0)
        orders = ops.sum(ops.cast(counted, predicted.dtype))

        def mean(totals: Any) -> Any:
            return ratio(ops.sum(ops.where(counted, ratio(matches, totals), 0.0)), orders)

        precision, recall = mean(predicted), mean(expected)
        score = ratio((1 + BETA**2) * precision * recall, BETA**2 * precision + recall)
        return ops.cast(100.0 * score, self.dtype)
