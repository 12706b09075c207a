"""A dense layer whose gradients are right in bfloat16, too."""

import keras

from keras_seq.layers.internal.shapes import dense


class ExactDense(keras.layers.Dense):
    """`keras.layers.Dense` with a plain sum in place of TensorFlow's addition of a bias.

        y = activation(x W + b)

    On a CPU the gradient of that addition adds up all rows of a batch in
    bfloat16, whose sums stand still at 256 times what is added: the gradient
    of the bias was found half wrong. In single precision this is Keras' layer.

    Arguments, shapes and weights are those of `keras.layers.Dense`.
    """

    def call(self, inputs, training=None):
        if self.compute_dtype == self.variable_dtype:
            return super().call(inputs, training=training)
        return self.activation(dense(inputs, self.kernel, self.bias))
