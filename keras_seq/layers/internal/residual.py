"""The residual connection with normalisation that surrounds each half of a block."""

import keras

from keras_seq.layers.internal.dropout import Dropout
from keras_seq.layers.internal.layer_normalization import LayerNormalization


class Residual(keras.layers.Layer):
    """Layer normalisation, dropout and the residual sum around a function.

        pre:   y = x + dropout(f(norm(x)))
        post:  y = norm(x + dropout(f(x)))

    Used inside blocks through `around`; it holds the norm's weights.

    Args:
        norm: `"pre"` or `"post"`.
        dropout: Float in [0, 1).
        seed: Optional integer, makes the dropout reproducible.

    Raises:
        ValueError: If `norm` is neither "pre" nor "post".
    """

    def __init__(self, norm="pre", dropout=0.0, seed=None, **kwargs):
        super().__init__(**kwargs)
        if norm not in ("pre", "post"):
            raise ValueError(f'`norm` must be "pre" or "post", received {norm!r}.')
        if not 0 <= dropout < 1:
            raise ValueError(f"`dropout` must be in [0, 1), received {dropout!r}.")
        self.norm = norm
        # 1e-5 is what PyTorch and CTranslate2 use; Keras' default is 1e-3.
        self.layer_norm = LayerNormalization(epsilon=1e-5, dtype=self.dtype_policy, name="norm")
        self.dropout_layer = Dropout(dropout, seed=seed, dtype=self.dtype_policy)

    def build(self, input_shape):
        self.layer_norm.build(input_shape)

    def around(self, function, inputs, training=None):
        """Applies the residual around `function`, which maps `(B, T, D)` to the same shape."""
        if self.norm == "pre":
            outputs = function(self.layer_norm(inputs, training=training))
            return inputs + self.dropout_layer(outputs, training=training)
        outputs = inputs + self.dropout_layer(function(inputs), training=training)
        return self.layer_norm(outputs, training=training)
