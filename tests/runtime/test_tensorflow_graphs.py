"""What a training made of TensorFlow's is garbage once it has ended."""

import gc
import weakref

import keras
import numpy as np
import pytest

from keras_seq import backend
from keras_seq.runtime.tensorflow_graphs import release_graphs

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="graphs are TensorFlow's"
)


@keras.ops.custom_gradient
def half_pulled(values):
    """Its values squared; the gradient is half of what it should be, to be known by."""
    return values * values, lambda *args, upstream=None: (args or (upstream,))[0] * values


def squares():
    """A new graph of it."""
    import tensorflow as tf

    function = tf.function(half_pulled, input_signature=[tf.TensorSpec([None])])
    return function, weakref.ref(function.get_concrete_function().graph)


def names():
    from tensorflow.python.framework import ops

    return {name for name in ops.gradient_registry.list() if name.startswith("CustomGradient")}


def test_custom_gradient_is_released_with_its_graph():
    before = names()
    function, graph = squares()
    assert len(names() - before) == 1
    del function
    gc.collect()
    # As TensorFlow has it. If this fails one day, it lets go of graphs itself.
    assert graph() is not None
    release_graphs()
    gc.collect()
    assert graph() is None
    release_graphs()
    assert names() <= before


def test_a_custom_gradient_stays_while_its_graph_is_used():
    import tensorflow as tf

    function, graph = squares()
    release_graphs()
    gc.collect()
    assert graph() is not None
    values = tf.constant([3.0, -2.0])
    with tf.GradientTape() as tape:
        tape.watch(values)
        # The function that a gradient of a function needs is made only now, by the list.
        total = tf.reduce_sum(tf.function(lambda at: function(at) * 10.0)(values))
    np.testing.assert_allclose(tape.gradient(total, values), [30.0, -20.0])


def test_deleted_batch_feed_releases_its_source():
    class Source:
        def __call__(self):
            yield np.zeros((2, 3), "int32")

    source = Source()
    feed = backend.batch_feed(source, next(source()))
    assert len(list(feed)) == 1
    # Again: a feed is used for several epochs.
    iterator, known = iter(feed), weakref.ref(source)
    del feed, source
    gc.collect()
    assert next(iterator).shape == (2, 3)
    del iterator
    gc.collect()
    assert known() is None


@pytest.mark.slow
def test_finished_training_leaves_no_graph_in_memory(dates_file, tmp_path):
    import tensorflow as tf

    from keras_seq.settings import load_settings
    from keras_seq.training import train

    def graphs():
        # `isinstance` asks torch's deprecated objects for their class, if it is loaded, too.
        return {id(one): one for one in gc.get_objects() if issubclass(type(one), tf.Graph)}

    settings = load_settings(
        preset="demo",
        overrides={
            "data.pairs": str(dates_file),
            "tokenizer.size": 500,
            "model.num_encoder_layers": 1,
            "model.num_decoder_layers": 1,
            "model.units": 8,
            "model.feedforward_units": 8,
            "model.num_heads": 1,
            "training.max_steps": 2,
            "training.validate_every": 2,
            "search.max_length": 4,
        },
    )
    gc.unfreeze()
    # The process has one default graph, made when it is first asked for.
    tf.compat.v1.get_default_graph()
    before = graphs()
    train(settings, tmp_path / "run", notice=lambda line: None)
    gc.collect()
    assert [one for key, one in graphs().items() if key not in before] == []
