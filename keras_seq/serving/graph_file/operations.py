"""Allowed operations of exported graphs, and the check of untrusted SavedModels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from keras_seq.serving.graph_file import wire
from keras_seq.serving.graph_file.wire import entries, text, values
from keras_seq.storage import check_tree
from keras_seq.text import InputError
from keras_seq.text.protobuf import read_fields

# A SavedModel is a program. These operations read and write no files (except `RestoreV2`, which
# reads the variables while the model is loaded), run no Python, open no connection and start no
# process. An endless loop or an enormous tensor remains possible.

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
# Maximum nesting depth of functions in the attributes of functions.
_MAX_DEPTH = 8
_ADVICE = "a SavedModel is a program: use --trust if you know who made it"


def operations(version: Path) -> set[str]:
    """Returns the names of all operations of a SavedModel, including those inside its functions."""
    graphs = wire.meta_graphs(version)
    try:
        return {
            node.op
            for meta_graph in graphs
            for graph in values(meta_graph, 2)
            for nodes in (_nodes(graph, 1), *(_nodes(body, 3) for body in _functions(graph)))
            for node in nodes
        }
    except wire.DAMAGE:
        raise wire.damaged(version) from None


def check_trusted(version: Path) -> None:
    """Raises InputError if a SavedModel, once loaded, could do more than compute outputs.

    The check reads the graph file without loading the model. It also rejects links and pipes among
    the files, graph files that it cannot check, and reads outside of the restore operation.
    """
    check_tree(version.resolve())
    for name in _OTHER_FORMS:
        if (version / name).exists():
            raise InputError(f"{version / name}: cannot be checked; {_ADVICE}")
    if foreign := sorted(operations(version) - ALLOWED):
        names = ", ".join(name[:60] for name in foreign[:4])
        more = f" and {len(foreign) - 4} more" if len(foreign) > 4 else ""
        raise InputError(
            f"{version}: contains operations that keras-seq never exports: {names!a}{more}; "
            f"{_ADVICE}"
        )
    graphs = wire.meta_graphs(version)
    try:
        reads_files = any(map(_restores_elsewhere, graphs))
    except wire.DAMAGE:
        raise wire.damaged(version) from None
    if reads_files:
        raise InputError(f"{version}: reads variables outside of its restore operation; {_ADVICE}")


class _Node(NamedTuple):
    """A `NodeDef`. `inputs` includes control inputs; `called` names functions in attributes."""

    op: str
    name: str
    inputs: list[str]
    called: list[str]


def _restores_elsewhere(meta_graph: Any) -> bool:
    """Returns True if `RestoreV2` could do anything but load the variables.

    `RestoreV2` must be in a function that takes the file name as an argument. Only the restore node
    of the saver may call the function, with the file name that the loader passes. No other node may
    use the restore node.
    """
    (graph,), savers = values(meta_graph, 2), list(values(meta_graph, 3))
    # Reject several savers, because TensorFlow merges their fields. Reject custom gradients,
    # because a graph could call the gradient of a function instead of the function.
    if len(savers) > 1 or any(True for library in values(graph, 2) for _ in values(library, 2)):
        return True
    saver = dict(read_fields(savers[0])) if savers else {}
    restore_node, filename = (node_name(text(saver.get(key, b""))) for key in (3, 1))
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
        node_name(text(dict(read_fields(output)).get(1, b"")))
        for _, signature in entries(meta_graph, 5)
        for _, output in entries(signature, 2)
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


def node_name(tensor: str) -> str:
    """Returns the name of the node in a tensor name, `node:0`, or in a control input, `^node`."""
    return tensor.removeprefix("^").split(":")[0]


def _functions(graph: Any) -> Iterator[Any]:
    return (function for library in values(graph, 2) for function in values(library, 1))


def _function_name(function: Any) -> str:
    (signature,) = values(function, 1)
    return text(dict(read_fields(signature))[1])


def _arguments(function: Any) -> set[str]:
    (signature,) = values(function, 1)
    return {text(dict(read_fields(argument))[1]) for argument in values(signature, 2)}


def _nodes(message: Any, number: int) -> Iterator[_Node]:
    for node in values(message, number):
        name = op = ""
        inputs: list[str] = []
        called: list[str] = []
        for field, value in read_fields(node):
            if field == 1:
                name = text(value)
            elif field == 2:
                op = text(value)
            elif field == 3:
                inputs.append(text(value))
            elif field == 5:
                called += _called(value)
        yield _Node(op, name, inputs, called)


def _called(attribute: Any, depth: int = 0) -> Iterator[str]:
    """Yields the names of the functions in an attribute of a node, including nested functions."""
    if depth > _MAX_DEPTH:
        raise ValueError("functions nested too deep")
    for entry in values(attribute, 2):
        functions = list(values(entry, 10))
        functions += [function for items in values(entry, 1) for function in values(items, 9)]
        for function in functions:
            yield text(dict(read_fields(function))[1])
            for inner in values(function, 2):
                yield from _called(inner, depth + 1)
