"""A small SavedModel of someone else cannot declare tensors that are larger than its files."""

import os
import shutil

import numpy as np
import pytest
from foreign_model import change_graph, save_foreign

from keras_seq.serving.graph_file.operations import check_trusted
from keras_seq.serving.http.model import LoadedModel, ModelError
from keras_seq.text import InputError


def node_with(meta_graph, op):
    """Adds a node to a new function of the graph, which no other node calls."""
    function = meta_graph.graph_def.library.function.add()
    function.signature.name = f"more_{len(meta_graph.graph_def.library.function)}"
    node = function.node_def.add()
    node.name, node.op = "more", op
    return node


def add_constant(meta_graph, shape, dtype, **values):
    tensor = node_with(meta_graph, "Const").attr["value"].tensor
    fill(tensor, shape, dtype, **values)


def fill(tensor, shape, dtype, **values):
    tensor.dtype = dtype
    for size in shape:
        tensor.tensor_shape.dim.add(size=size)
    for name, value in values.items():
        if name == "tensor_content":
            tensor.tensor_content = value
        else:
            getattr(tensor, name).extend(value)


def in_the_graph(meta_graph):
    node = meta_graph.graph_def.node.add()
    node.name, node.op = "more", "Const"
    fill(node.attr["value"].tensor, [30_000, 30_000], 1, float_val=[1.0])


def in_a_function(meta_graph):
    add_constant(meta_graph, [30_000, 30_000], 1, float_val=[1.0])


def of_strings(meta_graph):
    add_constant(meta_graph, [1 << 27], 7, string_val=[b"a"])


def in_a_list(meta_graph):
    node = node_with(meta_graph, "IdentityN")
    fill(node.attr["any"].list.tensor.add(), [1 << 40], 10, bool_val=[True])


def in_an_argument_of_a_function(meta_graph):
    node = node_with(meta_graph, "PartitionedCall")
    fill(node.attr["f"].func.attr["value"].tensor, [1 << 40], 10, bool_val=[True])


def in_many_constants(meta_graph):
    for _ in range(70):
        add_constant(meta_graph, [1 << 18], 1, float_val=[1.0])


def of_254_axes(meta_graph):
    add_constant(meta_graph, [1 << 62] * 254, 1, float_val=[1.0])


@pytest.fixture
def version(tmp_path):
    return save_foreign(tmp_path / "1", lambda text: text)


@pytest.mark.parametrize(
    "change",
    [
        in_the_graph,
        in_a_function,
        of_strings,
        in_a_list,
        in_an_argument_of_a_function,
        in_many_constants,
        of_254_axes,
    ],
)
def test_constants_far_larger_than_the_file_are_rejected(version, change):
    check_trusted(version)
    change_graph(version, change)
    with pytest.raises(InputError, match="its constants take .* [GM]B, far more than the graph"):
        check_trusted(version)


def input_of(function, name, op, values=(), **attributes):
    """Adds a node to a function; `values` are those of an int32 constant."""
    node = function.node_def.add(name=name, op=op)
    for key, value in attributes.items():
        node.attr[key].type = value
    if values:
        fill(node.attr["value"].tensor, [len(values)], 3, int_val=values)
    return node


def made_by(op, at, sizes=(30_000, 30_000)):
    """Returns a change that adds `op`, whose input number `at` is a constant."""

    def change(meta_graph):
        node = node_with(meta_graph, op)
        node.attr["T"].type = 1
        node.input.extend(["elsewhere"] * at + ["size:output:0"])
        input_of(meta_graph.graph_def.library.function[-1], "size", "Const", sizes)

    return change


def in_the_graph_by_identities(meta_graph):
    node = meta_graph.graph_def.node.add(name="more", op="Fill", input=["second:0", "value"])
    node.attr["T"].type = 1
    meta_graph.graph_def.node.add(name="second", op="Identity", input=["first"])
    meta_graph.graph_def.node.add(name="first", op="Identity", input=["size"])
    tensor = meta_graph.graph_def.node.add(name="size", op="Const").attr["value"].tensor
    fill(tensor, [2], 9, tensor_content=np.array([1 << 30, 4], np.int64).tobytes())


def by_a_filled_shape(meta_graph):
    """The last value of a constant counts for all further ones: (256, 256, 256, 256)."""
    made_by("BroadcastTo", 1, [256])(meta_graph)
    tensor = meta_graph.graph_def.library.function[-1].node_def[1].attr["value"].tensor
    tensor.tensor_shape.dim[0].size = 4


def by_a_chain(meta_graph):
    """16 MB, 100 times."""
    made_by("Tile", 1, [100])(meta_graph)
    function = meta_graph.graph_def.library.function[-1]
    function.node_def[0].input[0] = "filled:output:0"
    filled = input_of(function, "filled", "Fill", T=1)
    filled.input.extend(["shape:output:0", "elsewhere"])
    input_of(function, "shape", "Const", [4 << 20])


def by_a_range(meta_graph):
    """Every third integer from 5 down to -1.5 billion."""
    node = node_with(meta_graph, "Range")
    function = meta_graph.graph_def.library.function[-1]
    node.input.extend(["start:output:0", "limit:output:0", "step:output:0"])
    for name, value in (("start", 5), ("limit", -1_500_000_000), ("step", -3)):
        input_of(function, name, "Const", [value])


def by_many(meta_graph):
    for _ in range(9):
        made_by("Fill", 0, [2 << 20])(meta_graph)


@pytest.mark.parametrize(
    "change",
    [
        made_by("Fill", 0),
        made_by("Tile", 1),
        made_by("BroadcastTo", 1),
        made_by("ScatterNd", 2),
        made_by("OneHot", 1, [900_000_000]),
        made_by("DenseBincount", 1, [900_000_000]),
        made_by("UnsortedSegmentSum", 2, [900_000_000]),
        in_the_graph_by_identities,
        by_a_filled_shape,
        by_a_chain,
        made_by("Pad", 1, [0, 30_000, 15_000, 15_000]),
        by_a_range,
        by_many,
    ],
)
def test_tensors_of_large_constant_sizes_are_rejected(version, change):
    change_graph(version, change)
    message = r"its operations make tensors of .* [GM]B from constant sizes, expected at most 64\.0"
    with pytest.raises(InputError, match=message):
        check_trusted(version)


def test_tensors_of_small_and_computed_sizes_are_accepted(version):
    def change(meta_graph):
        made_by("Fill", 0, [4 << 20])(meta_graph)
        # Negative sizes are errors when the operation runs.
        made_by("BroadcastTo", 1, [-1, 300, -(1 << 31)])(meta_graph)
        made_by("Tile", 1)(meta_graph)
        meta_graph.graph_def.library.function[-1].node_def[1].op = "Shape"
        made_by("PadV2", 1, [0, 0, 1, 2])(meta_graph)
        # A shape that is not of integers.
        made_by("Fill", 0, [1])(meta_graph)
        meta_graph.graph_def.library.function[-1].node_def[1].attr["value"].tensor.dtype = 1
        # Nodes that lead to themselves.
        made_by("Tile", 1, [2])(meta_graph)
        meta_graph.graph_def.library.function[-1].node_def[0].input[0] = "more"

    change_graph(version, change)
    check_trusted(version)


def test_fill_of_a_real_graph_is_rejected(tmp_path):
    import tensorflow as tf

    def translate(text):
        zeros = tf.fill([1 << 15, 1 << 15], 0.0)
        return tf.strings.join([text, tf.strings.as_string(tf.reduce_sum(zeros))])

    version = save_foreign(tmp_path / "1", translate)
    with pytest.raises(InputError, match=r"make tensors of 4\.0 GB from constant sizes"):
        check_trusted(version)


def test_honest_constants_are_accepted(version):
    """A large constant in full, a mask of equal values, and many empty strings."""

    def change(meta_graph):
        array = np.zeros([500, 5000], np.float32).tobytes()
        add_constant(meta_graph, [500, 5000], 1, tensor_content=array)
        add_constant(meta_graph, [2048, 2048], 1, float_val=[1.0])
        add_constant(meta_graph, [100_000], 7, string_val=[b""] * 100_000)

    change_graph(version, change)
    check_trusted(version)


def add_variable(meta_graph, shape, dtype=1):
    node = node_with(meta_graph, "VarHandleOp")
    node.attr["dtype"].type = dtype
    for size in shape:
        node.attr["shape"].shape.dim.add(size=size)


def test_variables_larger_than_their_files_are_rejected(tiny_export, tmp_path):
    version = shutil.copytree(tiny_export / "1", tmp_path / "1")
    check_trusted(version)
    change_graph(version, lambda meta_graph: add_variable(meta_graph, [1000, 1000]))
    with pytest.raises(InputError, match=r"its variables take \d\.\d MB, but their files contain"):
        check_trusted(version)


def test_tensor_of_too_many_axes_is_rejected(version):
    change_graph(version, lambda meta_graph: add_variable(meta_graph, [1 << 62] * 255))
    with pytest.raises(InputError, match="damaged"):
        check_trusted(version)


def test_sparse_file_of_variables_is_rejected(version):
    path = version / "variables" / "variables.data-00000-of-00001"
    path.parent.mkdir(exist_ok=True)
    path.touch()
    os.truncate(path, 3 << 30)
    with pytest.raises(InputError, match=f"{path}: a sparse file: it has holes"):
        check_trusted(version)


def test_export_that_does_not_fit_into_the_memory_is_rejected(tiny_export, monkeypatch):
    check_trusted(tiny_export / "1")
    monkeypatch.setenv("KERAS_SEQ_MAX_MEMORY", "10K")
    message = r"the model needs more than \d\.\d MB of memory, 0\.0 MB are free: use"
    with pytest.raises(InputError, match=f"^{tiny_export}/1: {message}"):
        check_trusted(tiny_export / "1")
    # The server names the directory itself.
    with pytest.raises(ModelError, match=f"^{message}"):
        LoadedModel(tiny_export / "1", 1)
