"""The common base of the metrics: state variables that are sums over rows."""

import keras
from keras import ops


class SummedMetric(keras.metrics.Metric):
    """A metric whose state is a set of sums, so batches can be split and ordered freely. Abstract.

    Args:
        pad_id: Id of padding in `y_true`, or None if no id is padding.
        name: Name of the metric.
        dtype: Dtype of the result. Sums are float32 at least.
    """

    def __init__(self, pad_id, name, dtype):
        super().__init__(name=name, dtype=dtype)
        self.pad_id = pad_id

    def add_sum(self, name, shape=()):
        """A state variable of zeros.

        Args:
            name: Name of the variable.
            shape: Its shape.
        """
        # A sum in half precision stops growing at a few thousand.
        dtype = keras.backend.result_type(self.dtype, "float32")
        return self.add_variable(shape, "zeros", dtype=dtype, name=name)

    def get_config(self):
        return {**super().get_config(), "pad_id": self.pad_id}


def add(variable, increment):
    """Adds a tensor to a state variable."""
    variable.assign(variable + ops.cast(increment, variable.dtype))


def ratio(numerator, denominator):
    """`numerator / denominator`, 0 where the denominator is 0."""
    # On JAX not every operation takes a variable.
    numerator, denominator = map(ops.convert_to_tensor, (numerator, denominator))
    empty = ops.equal(denominator, 0)
    return ops.where(empty, 0.0, numerator / ops.where(empty, 1.0, denominator))
