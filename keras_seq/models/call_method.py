"""Methods of a layer as operations of a functional model."""

from collections.abc import Callable
from typing import Any

import keras


class CallMethod(keras.layers.Layer):
    """Calls `layer.<method>(**inputs)` of a built layer in a functional model.

    Keras makes graph nodes of calls of a layer only, while some layers have further methods, such
    as `step` and `project`. Models that contain a `CallMethod` are rebuilt from their constructor's
    arguments, never from a serialized graph.

    `options` are arguments of the method that are not tensors. `spec` is a function of the inputs
    to the outputs as `KerasTensor`s. Without it Keras traces the method, which is slow.
    """

    def __init__(
        self,
        layer: Any,
        method: str,
        options: dict[str, Any] | None = None,
        spec: Callable[[Any], Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(dtype=layer.dtype_policy, **kwargs)
        self.layer = layer
        self.method = method
        self.options = options or {}
        self.spec = spec
        # Keeps the dtypes of the inputs: ids, masks and float32 tensors. `autocast=False` would
        # do this too, but then `method` would not get the weights in the compute dtype.
        self._convert_input_args = False
        self.supports_masking = True
        self.built = True

    def call(self, inputs: Any) -> Any:
        return getattr(self.layer, self.method)(**inputs, **self.options)

    def compute_output_spec(self, inputs: Any) -> Any:
        return super().compute_output_spec(inputs) if self.spec is None else self.spec(inputs)

    def compute_mask(self, inputs: Any, previous_mask: Any = None) -> None:
        return None
