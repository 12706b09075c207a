"""Base class of the text classifiers."""

from typing import Any

from keras_seq.layers.internal.dropout import Dropout
from keras_seq.layers.internal.exact_dense import ExactDense
from keras_seq.layers.internal.precision import at_least_float32
from keras_seq.models.functional_model import FunctionalModel

# Shape letters: B batch, U units, N classes or tags.


class TextClassifier(FunctionalModel):
    """Functional model from the ids of a text to the logits of its class. Abstract."""

    def _connect(self, source: Any, vector: Any, seed: int | None, **kwargs: Any) -> None:
        """Makes the model of ids `(B, S)` and vectors `(B, U)`.

        To be called instead of `super().__init__`.
        """
        logits = to_logits(vector, self._arguments.num_classes, self._arguments, seed)
        super().__init__(inputs={"source": source}, outputs=logits, **kwargs)


def to_logits(x: Any, count: int, arguments: Any, seed: int | None) -> Any:
    """Applies dropout and a dense layer; returns logits `(..., N)`, at least float32."""
    dtype = arguments.dtype
    x = Dropout(arguments.dropout, seed=seed, dtype=dtype, name="output_dropout")(x)
    return at_least_float32(ExactDense(count, dtype=dtype, name="logits")(x))
