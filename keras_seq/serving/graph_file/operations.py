"""Allowed operations of exported graphs, and the check of untrusted SavedModels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from keras_seq.serving.graph_file import wire
from keras_seq.serving.graph_file.calls import Body, expanded_nodes
from keras_seq.serving.graph_file.sizes import check_sizes
from keras_seq.serving.graph_file.wire import (
    Message,
    attribute_functions,
    attribute_values,
    node_name,
)
from keras_seq.storage import check_tree
from keras_seq.text import InputError

# A SavedModel is a program. These operations read and write no files (except `RestoreV2`, which
# reads the variables while the model is loaded), run no Python, open no connection and start no
# process. An endless loop reaches the time limit of a run. An enormous tensor remains possible.

# Operations of tensorflow-text. Stock TensorFlow Serving contains all these operations.
SENTENCEPIECE = frozenset(
    {"SentencepieceOp", "SentencepieceTokenizeOp", "SentencepieceDetokenizeOp"}
)
WORD_PIECES = frozenset({"CaseFoldUTF8", "FastWordpieceTokenizeWithOffsets", "NormalizeUTF8"})
TEXT = SENTENCEPIECE | WORD_PIECES

# TensorFlow operations with a CPU kernel in all releases of TensorFlow Serving since 2.8. The list
# excludes XLA (disabled in stock servers), Python, and file access except to restore variables. It
# contains full names instead of patterns, so that every new operation is reviewed.
_TENSORFLOW = """
    Abs Add AddN AddV2 All Any ArgMax AsString AssignVariableOp BatchMatMulV2 BiasAdd Bitcast
    BitwiseAnd BitwiseXor BroadcastArgs BroadcastTo Cast ClipByValue ConcatV2 Const Conv2D Cos
    Cumsum DenseBincount DisableCopyOnRead Einsum Elu Equal Erf Erfc Exp ExpandDims Fill Floor
    FloorDiv FloorMod Gather GatherNd GatherV2 Greater GreaterEqual Identity IdentityN If Imag
    IsFinite IsInf IsNan LeakyRelu Less LessEqual Log Log1p LogSoftmax LogicalAnd LogicalNot
    LogicalOr MatMul Max Maximum Mean Min Minimum Mul Neg NoOp NotEqual OneHot OnesLike Pack Pad
    PadV2 PartitionedCall Placeholder Pow Prod RFFT RaggedGather RaggedRange RaggedTensorToTensor
    Range ReadVariableOp Real RealDiv ReduceJoin Relu Relu6 Reshape RestoreV2 ReverseSequence
    ReverseV2 RightShift Round Rsqrt ScatterNd Select SelectV2 Selu Shape Sigmoid Sign Sin Size
    Slice Softmax Softplus Split SplitV Sqrt Square SquaredDifference Squeeze
    StatefulPartitionedCall StatelessIf StatelessWhile StaticRegexFullMatch StaticRegexReplace
    StopGradient StridedSlice StringJoin StringLength StringLower StringSplitV2 Sub Substr Sum Tanh
    TensorListFromTensor TensorListGetItem TensorListReserve TensorListSetItem TensorListStack
    TensorScatterUpdate Tile TopKV2 Transpose UnicodeDecode UnicodeTranscode Unpack
    UnsortedSegmentSum VarHandleOp Where While ZerosLike
"""

ALLOWED = TEXT | frozenset(_TENSORFLOW.split())

# Alternative graph files, which TensorFlow may read instead of `saved_model.pb`.
_OTHER_FORMS = ("saved_model.cpb", "saved_model.pbtxt")
# Maximum ratio of the nodes after all calls of functions are expanded. It is 3 in exported graphs,
# because each signature calls the search.
_MAX_EXPANSION = 20
_ADVICE = "a SavedModel is a program: use --trust if you know who made it"


def operations(version: Path) -> set[str]:
    """Returns the names of all operations of a SavedModel, including those inside its functions."""
    meta_graph = wire.meta_graph(version)
    with wire.reading(version):
        return _operations(meta_graph)


def check_trusted(version: Path) -> None:
    """Raises InputError if a SavedModel, once loaded, could do more than compute outputs.

    The check reads the graph file without loading the model. It also rejects links and pipes among
    the files, graph files that it cannot check, reads outside of the restore operation, and
    constants, variables and tensors of constant sizes that are larger than the files or the memory.
    """
    check_tree(version.resolve())
    for name in _OTHER_FORMS:
        if (version / name).exists():
            raise InputError(f"{version / name}: cannot be checked; {_ADVICE}")
    meta_graph = wire.meta_graph(version)
    with wire.reading(version):
        foreign = sorted(_operations(meta_graph) - ALLOWED)
        if foreign:
            names = ", ".join(name[:60] for name in foreign[:4])
            more = f" and {len(foreign) - 4} more" if len(foreign) > 4 else ""
            raise InputError(
                f"{version}: contains operations that keras-seq never exports: {names!a}{more}; "
                f"{_ADVICE}"
            )
        if _restores_elsewhere(meta_graph):
            raise InputError(
                f"{version}: reads variables outside of its restore operation; {_ADVICE}"
            )
        if _calls_too_often(meta_graph):
            raise InputError(
                f"{version}: functions call themselves or expand to a far larger graph; {_ADVICE}"
            )
        check_sizes(version, meta_graph)


class _Node(NamedTuple):
    """A `NodeDef`. `inputs` includes control inputs; `called` names functions in attributes."""

    op: str
    name: str
    inputs: list[str]
    called: list[str]


def _operations(meta_graph: Message) -> set[str]:
    graph = meta_graph.only(2)
    inner = (node.op for function in _functions(graph) for node in _nodes(function, 3))
    return {node.op for node in _nodes(graph, 1)}.union(inner)


def _calls_too_often(meta_graph: Message) -> bool:
    graph = meta_graph.only(2)
    functions: dict[str, Body] = {}
    for function in _functions(graph):
        name = _function_name(function)
        if name in functions:
            raise ValueError("two functions of one name")
        functions[name] = _body(_nodes(function, 3))
    outer = _body(_nodes(graph, 1))
    num_nodes = outer.num_nodes + sum(body.num_nodes for body in functions.values())
    return expanded_nodes(outer, functions) > _MAX_EXPANSION * num_nodes


def _body(nodes: Iterator[_Node]) -> Body:
    num_nodes, called = 0, []
    for node in nodes:
        num_nodes += 1
        called += node.called
    return Body(num_nodes, called)


def _restores_elsewhere(meta_graph: Message) -> bool:
    """Returns True if `RestoreV2` could do anything but load the variables.

    `RestoreV2` must be in a function that takes the file name as an argument. Only the restore node
    of the saver may call the function, with the file name that the loader passes. No other node may
    use the restore node.
    """
    graph, saver = meta_graph.only(2), meta_graph.only(3)
    # Reject custom gradients, because a graph could call the gradient of a function instead of the
    # function.
    if any(True for library in graph.values(2) for _ in library.values(2)):
        return True
    restore_node, filename = (node_name(saver.only(key).text()) for key in (3, 1))
    readers: set[str] = set()
    inner: list[_Node] = []
    for function in _functions(graph):
        body = list(_nodes(function, 3))
        inner += body
        reads = [node for node in body if node.op == "RestoreV2"]
        if any(node.inputs[0] not in _arguments(function) for node in reads):
            return True
        if reads:
            readers.add(_function_name(function))
    outer = list(_nodes(graph, 1))
    others = [node for node in outer if node.name != restore_node]
    used = {node_name(tensor) for node in outer for tensor in node.inputs}
    used |= {
        node_name(output.only(1).text())
        for _, signature in meta_graph.entries(5)
        for _, output in signature.entries(2)
    }
    if readers.intersection(name for node in (*others, *inner) for name in node.called):
        return True
    if any(node.op == "RestoreV2" for node in outer) or (restore_node and restore_node in used):
        return True
    return any(
        readers.intersection(node.called) and node_name(node.inputs[0]) != filename
        for node in outer
        if node.name == restore_node
    )


def _functions(graph: Message) -> Iterator[Message]:
    return (function for library in graph.values(2) for function in library.values(1))


def _function_name(function: Message) -> str:
    return function.only(1).only(1).text()


def _arguments(function: Message) -> set[str]:
    return {argument.only(1).text() for argument in function.only(1).values(2)}


def _nodes(message: Message, number: int) -> Iterator[_Node]:
    for node in message.values(number):
        name = op = ""
        inputs: list[str] = []
        called: list[str] = []
        for field, value in node.fields():
            if field == 1:
                name = value.text()
            elif field == 2:
                op = value.text()
            elif field == 3:
                inputs.append(value.text())
            elif field == 5:
                called += _called(value)
        yield _Node(op, name, inputs, called)


def _called(attribute: Message) -> Iterator[str]:
    """Yields the names of the functions in an attribute of a node, including nested functions."""
    for value in attribute_values(attribute):
        yield from (function.only(1).text() for function in attribute_functions(value))
