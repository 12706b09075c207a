"""What a translation model looks at while it writes a given sentence."""

from __future__ import annotations

import keras
import numpy as np

from keras_seq import backend
from keras_seq.data.ids import BOS, EOS
from keras_seq.text import Tokenizer


class AttentionView:
    """The attention of a model's last decoder layer to the tokens of the source.

    Args:
        model: A model of `keras_seq.models`. Nothing is compiled before the first call.
        source_tokenizer: Turns sources into ids.
        target_tokenizer: Turns targets into ids.
        max_length: Longer sources and targets are cut to so many tokens.
    """

    def __init__(
        self,
        model: keras.Model,
        source_tokenizer: Tokenizer,
        target_tokenizer: Tokenizer,
        max_length: int,
    ) -> None:
        self._model = model
        self._source_tokenizer = source_tokenizer
        self._target_tokenizer = target_tokenizer
        self._max_length = max_length
        self._attend = backend.compiled(self._attention, model.variables, ranks=[2, 2])

    def __call__(self, source: str, target: str) -> np.ndarray:
        """Attention while `target` is written.

        Returns:
            float32 `(T, S)`, rows sum to 1. A row for each token of the target and for its
            end, a column for each token of the source and for its end.
        """
        sources = [*self._source_tokenizer.encode([source])[0][: self._max_length], EOS]
        targets = [BOS, *self._target_tokenizer.encode([target])[0][: self._max_length]]
        attention = self._attend(backend.padded([sources]), backend.padded([targets]))
        array: np.ndarray = keras.ops.convert_to_numpy(attention)
        return array[0, : len(targets), : len(sources)]

    def _attention(self, source, target):  # type: ignore[no-untyped-def]
        inputs = {"source": source, "target": target}
        return self._model.with_attention()(inputs, training=False)["attention"]
