"""Dense layer with accurate gradients in bfloat16."""

from typing import Any

import keras

from keras_seq.layers.internal.shapes import dense


class ExactDense(keras.layers.Dense):
    """`keras.layers.Dense` that adds its bias without TensorFlow's BiasAdd.

        y = activation(x W + b)

    On a CPU the gradient of BiasAdd sums all rows of a batch in bfloat16. Such a sum stops growing
    at 256 times a summand, which halved some gradients. In single precision the layer equals
    Keras' layer. Arguments, shapes and weights are the same.
    """

    def call(self, inputs: Any, training: bool | None = None) -> Any:
        if self.compute_dtype == self.variable_dtype:
            return super().call(inputs, training=training)
        return self.activation(dense(inputs, self.kernel, self.bias))
