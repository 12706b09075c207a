"""Functions of a small graph cannot expand to a graph that fills the memory."""

import pytest
from foreign_model import change_graph, save_foreign

from keras_seq.serving.graph_file.calls import Body, expanded_nodes
from keras_seq.serving.graph_file.operations import check_trusted
from keras_seq.text import InputError


def test_nodes_are_counted_once_per_call():
    functions = {
        "leaf": Body(5, []),
        "twice": Body(2, ["leaf", "leaf"]),
        "uncalled": Body(100, ["twice"]),
    }
    assert expanded_nodes(Body(3, ["twice", "leaf", "absent"]), functions) == 3 + (2 + 10) + 5


def test_long_chain_of_calls_is_counted_and_doubling_is_exponential():
    chain = {str(i): Body(1, [str(i + 1)]) for i in range(50_000)}
    assert expanded_nodes(Body(0, ["0"]), chain) == 50_000
    doubling = {str(i): Body(1, [str(i + 1)] * 2) for i in range(100)}
    assert expanded_nodes(Body(0, ["0"]), doubling) == 2.0**100


def test_cycle_of_calls_is_infinite():
    functions = {"a": Body(1, ["b"]), "b": Body(1, ["c", "a"]), "c": Body(1, [])}
    assert expanded_nodes(Body(0, ["c"]), functions) == 1
    assert expanded_nodes(Body(0, ["a"]), functions) == float("inf")


def nested(depth):
    """Returns a translation function of `2 ** depth` calls."""
    import tensorflow as tf

    signature = [tf.TensorSpec([None], tf.string)]

    def doubled(inner):
        return tf.function(lambda text: inner(inner(text)), signature)

    call = tf.function(lambda text: tf.strings.join([text, "a"]), signature)
    for _ in range(depth):
        call = doubled(call)
    return call


def call_themselves(meta_graph):
    for function in meta_graph.graph_def.library.function:
        for node in function.node_def:
            if "f" in node.attr:
                node.attr["f"].func.name = function.signature.name


def name_twice(meta_graph):
    functions = meta_graph.graph_def.library.function
    functions.add().CopyFrom(functions[0])


def test_graph_that_expands_far_beyond_its_size_is_rejected(tmp_path):
    check_trusted(save_foreign(tmp_path / "1", nested(3)))
    version = save_foreign(tmp_path / "2", nested(12))
    with pytest.raises(InputError, match="expand to a far larger graph; .* use --trust"):
        check_trusted(version)


@pytest.mark.parametrize(
    ("change", "words"), [(call_themselves, "call themselves or expand"), (name_twice, "damaged")]
)
def test_function_that_calls_itself_or_has_two_bodies_is_rejected(tmp_path, change, words):
    version = save_foreign(tmp_path / "1", nested(2))
    change_graph(version, change)
    with pytest.raises(InputError, match=words):
        check_trusted(version)
