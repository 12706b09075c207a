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

    def quantize(self, mode: Any = None, type_check: bool = True, config: Any = None) -> None:
        # With `type_check` Keras refuses subclasses, which may compute something else.
        super().quantize(mode, type_check=False, config=config)

    @property
    def dtype_policy(self) -> Any:
        """The policy of this layer, also if its model was loaded with a policy for each path."""
        # Keras looks for the quantization mode in this property when it saves the layer.
        policy = super().dtype_policy
        if isinstance(policy, keras.dtype_policies.DTypePolicyMap) and self.path:
            return policy[self.path]
        return policy

    @dtype_policy.setter
    def dtype_policy(self, policy: Any) -> None:
        keras.layers.Dense.dtype_policy.fset(self, policy)
