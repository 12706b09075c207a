"""A row in a SavedModel returns the same numbers for all sizes, without Keras and XLA."""

import keras
import pytest
from conformance.harness import built, make_arrays, run, symbolic_inputs
from conformance.table import FIRST, ROWS, marked
from weekly import SLOW_AND_WEEKLY

from keras_seq import models

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="only TensorFlow writes a SavedModel"
)


# The exports of each change save models; here they take a third of the time.
@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=row.name, marks=SLOW_AND_WEEKLY)
        if hasattr(models, row.public_name)
        else marked(row)
        for row in ROWS
        if row.name in FIRST.values()
    ],
)
def test_a_saved_model_gives_equal_outputs(row, tmp_path):
    import tensorflow as tf

    layer = built(row)
    module = tf.Module()
    # Save raw variables: a Keras object as an attribute does not load in a model server.
    module.variables_of_layer = [weight.value for weight in layer.variables]
    module.serve = tf.function(
        lambda **inputs: {
            f"output_{index}": output
            for index, output in enumerate(keras.tree.flatten(row.call(layer, inputs)))
        },
    )
    signature = module.serve.get_concrete_function(
        **{
            name: tf.TensorSpec(tensor.shape, tensor.dtype, name=name)
            for name, tensor in symbolic_inputs(row).items()
        }
    )
    tf.saved_model.save(module, str(tmp_path), signatures={"serving_default": signature})

    batches = [make_arrays(row, longer=longer) for longer in ({}, {"B": -1, "T": 2, "S": 3})]
    expected = [run(row, layer, arrays) for arrays in batches]
    # Load in a session, as model servers do. `tf.saved_model.load` finds more variables than they
    # do.
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        loaded = tf.compat.v1.saved_model.load(session, ["serve"], str(tmp_path))
        assert not [op.name for op in session.graph.get_operations() if op.type.startswith("Xla")]
        served = loaded.signature_def["serving_default"]
        names = [served.outputs[f"output_{index}"].name for index in range(len(expected[0]))]
        for arrays, outputs in zip(batches, expected, strict=True):
            feeds = {served.inputs[name].name: array for name, array in arrays.items()}
            for got, before in zip(session.run(names, feeds), outputs, strict=True):
                assert got.shape == before.shape
                assert abs(got - before).max() <= row.tolerance
