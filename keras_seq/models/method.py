"""A layer's other methods as operations of a functional graph."""

import keras


class Method(keras.layers.Layer):
    """Calls `layer.<method>(**inputs)`, so that it can stand in a functional model.

    Keras makes a node of a graph from `Layer.__call__` only, while our layers
    have a second form beside `call`: `step`, `project` and their kin. The
    wrapped layer must be built. Internal: models that hold one are rebuilt
    from their own constructor arguments, never from a serialised graph.

    Args:
        layer: A built Keras layer.
        method: Name of the method of `layer` to run.
        options: Dict of its arguments that are no tensors, or None.
        spec: Optional function of the inputs to what the method gives, as `KerasTensor`s;
            without it Keras traces the method to find that out, which takes a while.

    Call arguments:
        inputs: Dict of the method's arguments, tensors or nested structures.
    """

    def __init__(self, layer, method, options=None, spec=None, **kwargs):
        super().__init__(dtype=layer.dtype_policy, **kwargs)
        self.layer = layer
        self.method = method
        self.options = options or {}
        self.spec = spec
        # The method's inputs keep their dtypes: ids, masks and float32 islands pass through. Not by
        # `autocast`, without which the method would read weights in another dtype than `call` does.
        self._convert_input_args = False
        self.supports_masking = True
        self.built = True

    def call(self, inputs):
        return getattr(self.layer, self.method)(**inputs, **self.options)

    def compute_output_spec(self, inputs):
        return super().compute_output_spec(inputs) if self.spec is None else self.spec(inputs)

    def compute_mask(self, inputs, previous_mask=None):
        return None
