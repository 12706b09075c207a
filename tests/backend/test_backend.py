"""The backend layer: compiled functions, batches of any shape, weights during `fit`."""

import gc
import weakref

import keras
import numpy as np
import pytest
from keras import ops

from keras_seq import backend

pytestmark = pytest.mark.torch


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


def test_backend_name_is_that_of_keras():
    assert backend.name() == keras.config.backend()
    assert backend.name() in ("tensorflow", "jax", "torch")
    assert backend.wants_static_shapes() is (backend.name() == "jax")


def test_a_compiled_function_reads_the_variables_at_each_call():
    weight = keras.Variable(np.array([1.0, 10.0, 100.0]))
    compiled = backend.compiled(lambda ids: ops.take(weight, ids), [weight], ranks=[2])
    assert numpy_of(compiled(np.array([[0, 2]]))).tolist() == [[1, 100]]
    weight.assign([2.0, 3.0, 4.0])
    assert numpy_of(compiled(np.array([[0, 2]]))).tolist() == [[2, 4]]


def test_compiled_function_accepts_any_shape_of_the_given_ranks():
    compiled = backend.compiled(
        lambda table, number: ops.sum(table, axis=1) + number, [], ranks=[2, 0]
    )
    for rows, columns in ((2, 3), (1, 5), (4, 1)):
        got = compiled(np.ones((rows, columns), "int32"), np.int32(10))
        assert numpy_of(got).tolist() == [10 + columns] * rows


def test_compiled_function_converts_integer_inputs_to_int32():
    compiled = backend.compiled(lambda ids: ids, [], ranks=[1])
    for array in (np.array([1, 2], "int64"), np.array([1, 2], "uint8"), [1, 2]):
        result = compiled(array)
        assert keras.backend.standardize_dtype(result.dtype) == "int32"
        assert numpy_of(result).tolist() == [1, 2]


def test_inputs_may_have_their_keys_in_any_order():
    """A functional model on torch reads nested inputs by position."""
    z, y, a = (keras.Input((), name=name) for name in "zya")
    inputs = {"b": {"z": z, "y": y}, "a": a}
    model = keras.Model(inputs, z - 2 * y + 5 * a)
    one, two, three = (ops.array([x]) for x in (1.0, 2.0, 3.0))
    found = backend.call_model(model, {"a": three, "b": {"y": two, "z": one}})
    assert numpy_of(found).tolist() == [1 - 4 + 15]


def test_a_compiled_function_keeps_nothing_for_gradients():
    weight = keras.Variable(np.ones(2))
    compiled = backend.compiled(lambda ids: ops.take(weight, ids) * 2.0, [weight], ranks=[1])
    assert not getattr(compiled(np.array([0, 1])), "requires_grad", False)


@pytest.mark.parametrize(
    ("number", "expected"), [(-1, 2**32 - 1), (2**31 - 1, 2**31 - 1), (-(2**31), 2**31)]
)
def test_words_are_the_lowest_32_bits(number, expected):
    assert int(numpy_of(backend.word(ops.array([number], "int32")))[0]) == expected


def test_a_function_of_the_host_is_called_in_compiled_code():
    def lengths(ids):
        return np.array([sum(map(bool, row)) for row in ids.tolist()], "float32")

    ids = np.array([[5, 0, 0], [6, 7, 0]], "int32")
    called = backend.on_host(lengths, (2,), ops.convert_to_tensor(ids))
    assert numpy_of(called).tolist() == [1, 2]
    compiled = backend.compiled(lambda ids: backend.on_host(lengths, (2,), ids) + 1, [], ranks=[2])
    assert numpy_of(compiled(ids)).tolist() == [2, 3]


def test_shapes_are_those_of_numpy_for_known_and_unknown_sizes():
    assert backend.shape(keras.KerasTensor((None, 3))) == (None, 3)
    assert backend.shape(ops.zeros((2, 3))) == (2, 3)
    assert backend.shape(keras.Variable(np.zeros((4, 1)))) == (4, 1)
    compiled = backend.compiled(
        lambda table: ops.stack([ops.sum(table), *backend.shape(table)]), [], ranks=[2]
    )
    for rows, columns in ((2, 3), (1, 5), (0, 4)):
        table = np.ones((rows, columns), "int32")
        assert numpy_of(compiled(table)).tolist() == [rows * columns, *table.shape]


def test_unknown_sizes_take_two_operations_in_a_graph():
    tf = pytest.importorskip("tensorflow")
    if backend.name() != "tensorflow":
        pytest.skip("JAX knows all sizes")
    with tf.Graph().as_default() as graph:
        tensor = tf.compat.v1.placeholder("float32", (None, None, 7, None))
        sizes = backend.shape(tensor)
    assert len(graph.get_operations()) == 3 and sizes[2] == 7
    assert [size.shape for size in (sizes[0], sizes[1], sizes[3])] == [()] * 3


@pytest.mark.parametrize(
    ("static", "rows", "multiple", "shape"),
    [(False, 8, 4, (3, 5)), (True, None, 4, (4, 8)), (True, 8, 16, (8, 16))],
)
def test_padded_makes_an_array_of_the_required_shape(static, rows, multiple, shape, monkeypatch):
    monkeypatch.setattr("keras_seq.backend.compile.wants_static_shapes", lambda: static)
    array = backend.padded([[5, 6], [], [1, 2, 3, 4, 5]], rows, multiple)
    assert array.dtype == np.int32
    expected = np.zeros(shape)
    expected[0, :2], expected[2, :5] = (5, 6), (1, 2, 3, 4, 5)
    np.testing.assert_array_equal(array, expected)
    assert backend.padded([[]], 1, 1).tolist() == [[0]]


def test_compiled_function_returns_nested_structures():
    weight = keras.Variable(2.0)
    compiled = backend.compiled(
        lambda ids: {"twice": ids * 2, "parts": (ids, weight * 1.0)}, [weight], ranks=[1]
    )
    result = compiled(np.array([3]))
    assert numpy_of(result["twice"]).tolist() == [6]
    assert float(result["parts"][1]) == 2


@pytest.mark.skipif(backend.name() == "torch", reason="torch traces nothing")
def test_compiled_function_is_traced_once_per_shape():
    traced = []

    def function(ids):
        traced.append(ids.shape)
        return ids + 1

    compiled = backend.compiled(function, [], ranks=[1])
    for _ in range(3):
        compiled(np.arange(4))
    assert len(traced) == 1


class MeanOfIds(keras.Model):
    """Predicts a number from ids of any length, with a single weight."""

    def __init__(self):
        super().__init__()
        self.weight = self.add_weight(shape=(), initializer="ones", name="weight")

    def call(self, inputs):
        return self.weight * ops.mean(ops.cast(inputs["ids"], "float32"), axis=1)


def batches():
    """Yields batches with different shapes (rows, steps)."""
    for rows, steps in ((2, 3), (4, 1), (1, 7), (3, 3)):
        yield {"ids": np.full((rows, steps), 2, "int32")}, np.full((rows,), 6, "int32")


def test_fit_takes_batches_of_changing_shapes():
    model = MeanOfIds()
    model.compile(keras.optimizers.SGD(0.05), "mse")
    shapes = []

    def noting():
        for inputs, targets in batches():
            shapes.append(inputs["ids"].shape)
            yield inputs, targets

    feed = backend.batch_feed(noting, next(batches()))
    model.fit(feed, steps_per_epoch=4, verbose=0, shuffle=False)
    # Some backends read the first batch beforehand.
    assert shapes[-4:] == [(2, 3), (4, 1), (1, 7), (3, 3)]
    weight = 1.0
    for _ in range(4):
        # The gradient of (2 w - 6)^2 does not depend on the shape.
        weight -= 0.05 * 4 * (2 * weight - 6)
    assert float(ops.convert_to_numpy(model.weight.value)) == pytest.approx(weight, rel=1e-5)


def test_fit_takes_iterators_that_are_not_generators():
    model = MeanOfIds()
    model.compile(keras.optimizers.SGD(0.05), "mse")
    feed = backend.batch_feed(lambda: iter(list(batches())), next(batches()))
    model.fit(feed, steps_per_epoch=4, verbose=0, shuffle=False)
    assert model.optimizer.iterations == 4


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow's pipeline")
def test_batch_feed_disables_autotuning():
    options = backend.batch_feed(batches, next(batches())).options()
    assert options.autotune.enabled is False


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="TensorFlow's pipeline")
def test_deleted_batch_feed_releases_its_source():
    class Source:
        def __call__(self):
            yield np.zeros((2, 3), "int32")

    source = Source()
    feed = backend.batch_feed(source, next(source()))
    assert len(list(feed)) == 1
    # Iterate a second time, because a feed is used for several epochs.
    iterator, known = iter(feed), weakref.ref(source)
    del feed, source
    gc.collect()
    assert next(iterator).shape == (2, 3)
    del iterator
    gc.collect()
    assert known() is None


def test_weights_are_up_to_date_during_fit():
    model = MeanOfIds()
    model.compile(keras.optimizers.SGD(0.05), "mse")
    seen = []

    def look(batch, logs):
        backend.sync_variables(model)
        seen.append(float(ops.convert_to_numpy(model.weight.value)))

    model.fit(
        backend.batch_feed(batches, next(batches())),
        steps_per_epoch=4,
        verbose=0,
        shuffle=False,
        callbacks=[keras.callbacks.LambdaCallback(on_train_batch_end=look)],
    )
    expected, weight = [], 1.0
    for _ in range(4):
        weight -= 0.05 * 4 * (2 * weight - 6)
        expected.append(weight)
    np.testing.assert_allclose(seen, expected, rtol=1e-5)


def test_error_in_the_batch_feed_is_raised():
    def broken():
        yield from batches()
        raise RuntimeError("the disk is gone")

    model = MeanOfIds()
    model.compile("sgd", "mse")
    with pytest.raises(Exception, match="the disk is gone"):
        model.fit(backend.batch_feed(broken, next(batches())), verbose=0, shuffle=False)


@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("static", [True, False])
def test_gather_equals_numpy_take_along_axis(axes, static):
    values = np.arange(2 * 3 * 4 * 5, dtype="int32").reshape(2, 3, 4, 5)
    index = np.random.default_rng(0).integers(0, values.shape[axes], (2, 3, 6)).astype("int32")
    index = index if axes == 2 else index[:, 0]
    expected = np.take_along_axis(values, index.reshape(index.shape + (1,) * (3 - axes)), axis=axes)
    if static:
        got = backend.gather(ops.array(values), ops.array(index))
    else:
        got = backend.compiled(backend.gather, [], ranks=[4, axes + 1])(values, index)
    np.testing.assert_array_equal(numpy_of(got), expected)
