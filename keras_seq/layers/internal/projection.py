"""Dense layer whose weights have the names of weights of the layer around it."""

from typing import Any

import keras

from keras_seq.layers.internal.exact_dense import ExactDense
from keras_seq.layers.internal.weight_arguments import new_initializer


class Projection(ExactDense):
    """`ExactDense` that names its weights as if the layer around it had added them.

    The layer around it builds it by `build_sizes`. A projection `qkv_projection` in a layer
    `attention` has the weights `attention/qkv_kernel` and `attention/qkv_bias`, so one path per
    kernel is enough in checkpoints. As a Keras layer, it has `quantize` and `enable_lora`.
    """

    def __init__(self, kernel_initializer: Any = "glorot_uniform", **kwargs: Any) -> None:
        super().__init__(1, kernel_initializer="zeros", **kwargs)
        # Keras would draw a seed at construction, but the seeds of a model follow the order in
        # which its layers are built.
        self.kernel_initializer = kernel_initializer

    def build_sizes(self, inputs: int, outputs: int) -> None:
        """Adds a kernel `(inputs, outputs)` and, with `use_bias`, a bias."""
        self.units = outputs
        self.build((None, inputs))

    def add_weight(
        self,
        name: str,
        shape: Any,
        initializer: Any,
        dtype: Any = None,
        trainable: bool = True,
        autocast: bool = True,
        regularizer: Any = None,
        constraint: Any = None,
        overwrite_with_gradient: bool = False,
    ) -> Any:
        *outside, parent, own = self.path.split("/")
        with keras.name_scope(parent, override_parent="/".join(outside)):
            # The caller stores the variable in an attribute, by which Keras tracks it.
            weight = keras.Variable(
                new_initializer(initializer),
                shape=shape,
                dtype=dtype or self.variable_dtype,
                trainable=trainable,
                autocast=autocast,
                name=own.removesuffix("projection") + name,
            )
        weight.regularizer = regularizer
        weight.constraint = constraint
        weight.overwrite_with_gradient = overwrite_with_gradient
        return weight
