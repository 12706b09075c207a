"""The text classifier."""

from typing import Any

import keras

from keras_seq.layers.internal.dropout import Dropout
from keras_seq.layers.internal.exact_dense import ExactDense
from keras_seq.layers.internal.precision import at_least_float32
from keras_seq.layers.internal.seeds import split_seed
from keras_seq.models.checks import check_sizes
from keras_seq.models.functional_model import FunctionalModel
from keras_seq.models.text_encoder import TextEncoder


@keras.saving.register_keras_serializable(package="keras_seq")
class TextClassifier(FunctionalModel):
    """Classifier of texts over any text encoder, as a functional Keras model.

        v = pool(encoder(source));  h = relu(V dropout(v) + c), or v itself without hidden units
        logits = W dropout(h) + b

    Shapes: B batch, S steps, C classes.

    Args:
        encoder: Any `TextEncoder`, such as `BagTextEncoder`, `RecurrentTextEncoder` or
            `TransformerTextEncoder`. The classifier shares its weights.
        num_classes: Positive integer C.
        pooling: "mean" or "max" of the vectors of all tokens; "last", the last one, or the last
            states of both directions of a recurrent encoder; "first", the token `[CLS]` of a
            `BackboneTextEncoder`, which has no "last".
        hidden_units: Integer, 0 for no hidden layer.
        dropout: Float in [0, 1), on the pooled vector and on the hidden units.
        seed: Optional integer, makes this dropout reproducible.
        **kwargs: `name`, and `dtype`, the policy of the layers after the encoder, which defaults
            to the policy of the encoder.

    Call arguments:
        inputs: Dict of int32 ids: `source` `(B, S)`.

    Returns:
        Float32 logits `(B, C)`.

    Raises:
        ValueError: If the encoder does not have the pooling, or a size or rate is out of range.

    Example:

    >>> from keras_seq.models import RecurrentTextEncoder
    >>> model = TextClassifier(RecurrentTextEncoder(20, units=8), 3, pooling="last")
    >>> tuple(model({"source": keras.ops.array([[5, 6, 0]])}).shape)
    (1, 3)
    """

    def __init__(
        self,
        encoder: TextEncoder,
        num_classes: int,
        pooling: str = "mean",
        hidden_units: int = 0,
        dropout: float = 0.1,
        seed: int | None = None,
        **kwargs: Any,
    ) -> None:
        check_sizes(num_classes=num_classes)
        if not isinstance(hidden_units, int) or hidden_units < 0:
            raise ValueError(
                f"`hidden_units` must be an integer, 0 or more, received {hidden_units!r}."
            )
        args = self._arguments
        args.dtype = args.dtype or encoder.dtype_policy
        hidden_seed, output_seed = split_seed(seed, 2)
        x = encoder.pool(pooling)
        if hidden_units:
            x = Dropout(dropout, seed=hidden_seed, dtype=args.dtype, name="pooling_dropout")(x)
            x = ExactDense(hidden_units, activation="relu", dtype=args.dtype, name="hidden")(x)
        logits = to_logits(x, num_classes, args, output_seed)
        super().__init__(inputs=encoder.input, outputs=logits, **kwargs)

    @property
    def encoder(self) -> TextEncoder:
        """The text encoder, which shares its weights with this model."""
        return self._arguments.encoder


def to_logits(x: Any, count: int, arguments: Any, seed: int | None) -> Any:
    """Applies dropout and a dense layer; returns logits `(..., count)`, at least float32."""
    dtype = arguments.dtype
    x = Dropout(arguments.dropout, seed=seed, dtype=dtype, name="output_dropout")(x)
    return at_least_float32(ExactDense(count, dtype=dtype, name="logits")(x))
