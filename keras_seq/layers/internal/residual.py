"""The residual connection with layer normalization around each part of a block."""

from collections.abc import Callable
from typing import Any

import keras

from keras_seq.layers.internal.checks import check_choice, check_rates
from keras_seq.layers.internal.dropout import Dropout
from keras_seq.layers.internal.normalization import make_normalization
from keras_seq.layers.internal.seeds import split_seed


class Residual(keras.layers.Layer):
    """Layer normalization, dropout and the residual sum around a function.

        pre:   y = x + dropout(f(norm(x)))
        post:  y = norm(x + dropout(f(x)))

    With `layer_dropout`, training leaves out the second term for random rows of the batch.
    Blocks use it through `around`; the layer holds the weights of the normalization.
    """

    def __init__(
        self,
        norm: str = "pre",
        dropout: float = 0.0,
        seed: int | None = None,
        normalization: str = "layer",
        layer_dropout: float = 0.0,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choice("norm", norm, ("pre", "post"))
        check_rates(dropout=dropout, layer_dropout=layer_dropout)
        self.norm = norm
        self.normalization = make_normalization(normalization, self.dtype_policy, "norm")
        self.dropout_layer = Dropout(dropout, seed=seed, dtype=self.dtype_policy)
        # A layer without an effect would still add the state of its seed to every checkpoint.
        self.row_dropout = None
        if layer_dropout:
            self.row_dropout = keras.layers.Dropout(
                layer_dropout,
                noise_shape=(None, 1, 1),
                seed=split_seed(seed, 1)[0],
                dtype=self.dtype_policy,
            )

    def build(self, input_shape: Any) -> None:
        self.normalization.build(input_shape)

    def around(
        self, function: Callable[[Any], Any], inputs: Any, training: bool | None = None
    ) -> Any:
        """Applies the residual around `function`, which maps `(B, T, D)` to the same shape.

        If the function returns a tuple, its other entries are returned unchanged.
        """
        is_pre = self.norm == "pre"
        result = function(self.normalization(inputs, training=training) if is_pre else inputs)
        outputs, *others = result if isinstance(result, tuple) else (result,)
        outputs = self.dropout_layer(outputs, training=training)
        if self.row_dropout is not None:
            outputs = self.row_dropout(outputs, training=training)
        outputs = inputs + outputs
        if not is_pre:
            outputs = self.normalization(outputs, training=training)
        return (outputs, *others) if others else outputs
