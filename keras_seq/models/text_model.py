"""What classifiers and taggers have in common as Keras models."""

import keras

from keras_seq.layers.internal.dropout import Dropout
from keras_seq.layers.internal.exact_dense import ExactDense
from keras_seq.layers.internal.precision import at_least_float32


class TextModel(keras.Model):
    """A functional model that is made anew from its constructor's arguments. Abstract."""

    def _remember(self, config, dtype):
        """Keeps what `get_config` gives, once the model is made.

        Args:
            config: Dict of the constructor's arguments.
            dtype: Dtype policy of all layers, or None for the default.
        """
        # A functional model takes no `dtype`, and would have the global policy whatever its layers.
        if dtype is not None:
            self.dtype_policy = dtype
        self._config = config

    def get_config(self):
        return {
            **self._config,
            "name": self.name,
            "dtype": keras.dtype_policies.serialize(self.dtype_policy),
        }

    @classmethod
    def from_config(cls, config, custom_objects=None):
        return cls(**config)


def to_logits(x, count, dropout, seed, dtype):
    """Vectors `(..., U)` -> `count` numbers each, float32 at least.

    Args:
        x: Symbolic tensor.
        count: How many numbers.
        dropout: Float in [0, 1), on the vectors.
        seed: Optional integer, of the dropout.
        dtype: Dtype policy of the layers, or None for the default.
    """
    x = Dropout(dropout, seed=seed, dtype=dtype, name="output_dropout")(x)
    return at_least_float32(ExactDense(count, dtype=dtype, name="logits")(x))
