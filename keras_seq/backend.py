"""The one place that asks which Keras backend runs.

Everything else uses `keras.ops`. What Keras has no public word for is here:
compiling a function, feeding batches of changing shapes, and bringing a
model's variables up to date in the middle of `fit`.
"""

import contextlib
import importlib
import itertools
import math
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import keras
import numpy as np


def name() -> str:
    """Name of the Keras backend: "tensorflow", "jax" or "torch"."""
    return str(keras.backend.backend())


def device() -> tuple[str, tuple[int, int] | None]:
    """What computes: "cpu", "gpu" or "tpu", and the compute capability of an NVIDIA GPU."""
    capability: Any = None
    if name() == "tensorflow":
        import tensorflow as tf

        if tf.config.get_visible_devices("TPU"):
            return "tpu", None
        gpus = tf.config.get_visible_devices("GPU")
        if not gpus:
            return "cpu", None
        capability = tf.config.experimental.get_device_details(gpus[0]).get("compute_capability")
        return "gpu", capability
    if name() == "jax":
        import jax

        first = jax.devices()[0]
        capability = getattr(first, "compute_capability", None)
        if first.platform != "gpu" or not capability:
            return first.platform, None
        major, _, minor = str(capability).partition(".")
        return "gpu", (int(major), int(minor or 0))
    return "cpu", None


def product_seconds(*dtypes: str, size: int = 512) -> list[float]:
    """Seconds that a product of two square matrices takes in each dtype, the least of 12."""
    matrices = [keras.ops.cast(keras.ops.ones((size, size)), dtype) for dtype in dtypes]

    def once(matrix: Any) -> float:
        start = time.perf_counter()
        # The clock is read when a number is there.
        float(keras.ops.cast(keras.ops.matmul(matrix, matrix)[0, 0], "float32"))
        return time.perf_counter() - start

    # In turn, for others may be at work on the machine.
    turns = [[once(matrix) for matrix in matrices] for _ in range(12)]
    return [min(seconds) for seconds in zip(*turns, strict=True)]


def wake(compute: bool = True) -> None:
    """Imports what `fit` will import, and computes something unless told not to."""
    if compute:
        keras.ops.zeros(1)
    # `fit` asks for it on any backend.
    with contextlib.suppress(ImportError):
        importlib.import_module("tensorflow")


def wants_static_shapes() -> bool:
    """Whether every new shape costs a compilation, so that few shapes should be used."""
    return name() == "jax"


def padded(
    lists: Sequence[Sequence[int]], rows: int | None = None, multiple: int = 16
) -> np.ndarray:
    """Lists of ids as one array, 0 behind each; as large as they are where shapes cost nothing.

    Args:
        lists: One at least.
        rows: How many rows there are where every shape is compiled; the next power of two
            unless told otherwise.
        multiple: Of what the width is a multiple there.

    Returns:
        Int32 array, one list a row, then rows of zeros; one column at least.
    """
    height, width = len(lists), max(1, *map(len, lists))
    if wants_static_shapes():
        height = rows or 1 << (height - 1).bit_length()
        width = -(-width // multiple) * multiple
    batch = np.zeros((height, width), np.int32)
    for row, ids in enumerate(lists):
        batch[row, : len(ids)] = ids
    return batch


def compiled(
    function: Callable[..., Any],
    variables: Sequence[Any],
    ranks: Sequence[int],
    dtypes: Sequence[str] | None = None,
) -> Callable[..., Any]:
    """Compiles a function of tensors that reads a model's variables.

    Args:
        function: Takes tensors, returns a structure of tensors.
        variables: Keras variables that it reads. Their values are looked up
            at each call, so the function may be used while they are trained.
        ranks: Rank of each argument. On TensorFlow one graph serves every
            shape of these ranks; on JAX each shape is compiled.
        dtypes: Of each argument; "int32" by default.

    Returns:
        A function of numpy arrays.
    """
    dtypes = dtypes or ["int32"] * len(ranks)
    if name() == "tensorflow":
        import tensorflow as tf

        signature = [
            tf.TensorSpec([None] * rank, dtype) for rank, dtype in zip(ranks, dtypes, strict=True)
        ]
        graph = tf.function(function, input_signature=signature, autograph=False)
        return lambda *arrays: graph(*map(tf.constant, arrays, dtypes))
    if name() == "jax":
        import jax

        @jax.jit
        def pure(values: Any, *arrays: Any) -> Any:
            with keras.StatelessScope(state_mapping=list(zip(variables, values, strict=True))):
                return function(*arrays)

        return lambda *arrays: pure([v.value for v in variables], *map(np.asarray, arrays, dtypes))
    return lambda *arrays: function(
        *map(keras.ops.convert_to_tensor, map(np.asarray, arrays, dtypes))
    )


def on_host(function: Callable[..., np.ndarray], shape: Sequence[int], *arrays: Any) -> Any:
    """Calls a function of numpy arrays, in compiled code too.

    XLA cannot compile the call on TensorFlow, so a model needs `jit_compile=False` there.

    Args:
        function: Takes numpy arrays, returns a float32 array. It must not use Keras.
        shape: Shape of the array that the function returns.
        *arrays: Tensors.

    Returns:
        Float32 tensor.
    """
    if name() == "tensorflow":
        import tensorflow as tf

        result = tf.numpy_function(function, arrays, tf.float32)
        result.set_shape(shape)
        return result
    if name() == "jax":
        import jax

        def call(*values: Any) -> np.ndarray:
            return function(*map(np.asarray, values))

        return jax.pure_callback(call, jax.ShapeDtypeStruct(tuple(shape), np.float32), *arrays)
    return keras.ops.convert_to_tensor(function(*map(to_numpy, arrays)))


def gather(values: Any, index: Any) -> Any:
    """Picks along an axis: `(A, ..., B, ...)` by `(A, ..., J)` -> `(A, ..., J, ...)`.

    The axes before the last of `index` are those of `values`, one to one.
    """
    if name() == "tensorflow":
        import tensorflow as tf

        # One operation, where rows of a flattened tensor are a dozen, with arithmetic on shapes.
        return tf.gather(values, index, batch_dims=len(index.shape) - 1)
    axes, shape = len(index.shape) - 1, keras.ops.shape(values)
    rows = index
    for axis in range(axes):
        stride = math.prod(shape[axis + 1 : axes + 1])
        place = keras.ops.arange(shape[axis], dtype=index.dtype) * stride
        rows = rows + keras.ops.reshape(place, (-1,) + (1,) * (axes - axis))
    flat = keras.ops.reshape(values, (-1, *shape[axes + 1 :]))
    return keras.ops.take(flat, rows, axis=0)


def computes_on_one_processor() -> bool:
    """Whether TensorFlow computes, on a processor that is one device, and without a strategy.

    Calls of a compiled function do not hinder each other then.
    """
    if name() != "tensorflow":
        return False
    import tensorflow as tf

    kinds = [one.device_type for one in tf.config.list_logical_devices()]
    return kinds == ["CPU"] and not tf.distribute.has_strategy()


def batch_feed(batches: Callable[[], Iterator[Any]], example: Any) -> Any:
    """Wraps a generator function so that `fit` takes batches of changing shapes.

    Args:
        batches: Returns an iterator over structures of int32 arrays.
        example: One such structure, for the ranks.

    Returns:
        What `keras.Model.fit` takes as its data.
    """
    if name() == "tensorflow":
        import tensorflow as tf

        signature = keras.tree.map_structure(
            lambda array: tf.TensorSpec([None] * array.ndim, array.dtype), example
        )
        source = [batches]
        feed = tf.data.Dataset.from_generator(_counted(source), output_signature=signature)
        # TensorFlow keeps the function as long as the process lives, and with it, by this one,
        # all that a training needed.
        weakref.finalize(feed, source.clear).atexit = False
        options = tf.data.Options()
        # There is nothing to tune, and the thread that would sleeps for up to ten seconds after the
        # last batch, for which the end of `fit` waits.
        options.autotune.enabled = False
        return feed.prefetch(2).with_options(options)
    return batches()


def wait_for_feeds(seconds: float = 2.0) -> None:
    """Waits until threads of TensorFlow's have let go of all that `batch_feed` gave.

    Args:
        seconds: How long at most.
    """
    with _feeds_end:
        _feeds_end.wait_for(lambda: not _open_feeds, timeout=seconds)


_open_feeds: set[int] = set()
_feeds_end = threading.Condition()
_feed_numbers = itertools.count()


def _counted(source: list[Callable[[], Iterator[Any]]]) -> Callable[[], Iterator[Any]]:
    """The function that is the only one in a list, made to say when its iterators have ended."""

    def counted() -> Iterator[Any]:
        number = next(_feed_numbers)
        _open_feeds.add(number)
        try:
            yield from source[0]()
        finally:
            with _feeds_end:
                _open_feeds.discard(number)
                _feeds_end.notify_all()

    return counted


def to_numpy(value: Any) -> np.ndarray:
    """A copy of the value of a tensor or of a Keras variable.

    If several hosts have parts of it, all of them must ask.
    """
    # A copy on several devices is a tensor only then.
    value = keras.ops.convert_to_tensor(value)
    if name() == "jax" and not (value.is_fully_addressable or value.is_fully_replicated):
        from jax.experimental import multihost_utils

        value = multihost_utils.process_allgather(value, tiled=True)
    return np.array(keras.ops.convert_to_numpy(value))


def dense(gradient: Any) -> Any:
    """A gradient as a tensor: TensorFlow gives that of a table as rows and their numbers."""
    if name() == "tensorflow":
        import tensorflow as tf

        if isinstance(gradient, tf.IndexedSlices):
            # Rows that come more than once are added up.
            return tf.math.unsorted_segment_sum(
                gradient.values, gradient.indices, gradient.dense_shape[0]
            )
    return gradient


def product_or_zero(values: Any, factor: Any) -> Any:
    """`values * factor`, 0 where the factor is 0, even times NaN: padding pulls nowhere."""
    if name() == "tensorflow":
        import tensorflow as tf

        return tf.math.multiply_no_nan(values, factor)
    return keras.ops.where(keras.ops.equal(factor, 0), 0.0, values * factor)


def sum_of_squares(tensors: Sequence[Any]) -> Any:
    """Float32 scalar, the sum over all numbers of tensors, each in one pass where there is one."""
    tensors = [keras.ops.cast(tensor, "float32") for tensor in tensors]
    if name() == "tensorflow":
        import tensorflow as tf

        return 2.0 * tf.add_n([tf.nn.l2_loss(tensor) for tensor in tensors])
    return sum(keras.ops.sum(keras.ops.square(tensor)) for tensor in tensors)


def apply_adam(
    variables: Sequence[Any],
    momentums: Sequence[Any],
    velocities: Sequence[Any],
    gradients: Sequence[Any],
    step: Any,
    numbers: Mapping[str, Any],
) -> None:
    """An update of Adam, each weight in one pass, on TensorFlow, where all are on one device.

    What all weights share is computed once: an operation for each takes longer to trace and to
    optimize than all of them to run.

    Args:
        variables: Keras variables.
        momentums: Keras variables, the means of gradients.
        velocities: Keras variables, the means of their squares.
        gradients: Tensors of those shapes.
        step: Integer tensor, number of this update, from 1.
        numbers: `lr`, `beta1`, `beta2` and `epsilon`, floats or tensors.
    """
    import tensorflow as tf

    shared: dict[Any, dict[str, Any]] = {}
    for variable, momentum, velocity, gradient in zip(
        variables, momentums, velocities, gradients, strict=True
    ):
        kind = variable.value.dtype
        if kind not in shared:
            made = {key: keras.ops.cast(value, variable.dtype) for key, value in numbers.items()}
            for beta in ("beta1", "beta2"):
                made[f"{beta}_power"] = made[beta] ** tf.cast(step, kind)
            shared[kind] = made
        tf.raw_ops.ResourceApplyAdam(
            var=variable.value.handle,
            m=momentum.value.handle,
            v=velocity.value.handle,
            grad=tf.cast(gradient, kind),
            **shared[kind],
        )


def strategy_of_all_replicas() -> Any:
    """The `tf.distribute` strategy whose replicas are all seen here, None within one of them."""
    if name() == "tensorflow":
        import tensorflow as tf

        if tf.distribute.in_cross_replica_context():
            return tf.distribute.get_strategy()
    return None


def strategy_of_this_replica() -> Any:
    """The `tf.distribute` strategy within one of whose replicas this is, None elsewhere.

    That of one device is none of these: within it all is as without.
    """
    if name() == "tensorflow":
        import tensorflow as tf

        strategy = tf.distribute.get_strategy()
        if (
            tf.distribute.has_strategy()
            and not tf.distribute.in_cross_replica_context()
            and not isinstance(strategy, tf.distribute.OneDeviceStrategy)
        ):
            return strategy
    return None


def sync_variables(model: Any) -> None:
    """Writes what a running `fit` holds back into the model's variables (JAX)."""
    if name() == "jax":
        model.jax_state_sync()
