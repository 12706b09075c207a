"""Removal of unused parts from the graph of a SavedModel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from keras_seq.serving.graph_file.wire import node_name

# Attributes that TensorFlow infers again, and attributes for debugging.
_REDUNDANT_ATTRIBUTES = (
    "_output_shapes",
    "_has_manual_control_dependencies",
    "_user_specified_name",
    "debug_name",
)
_DEFAULT_CALL = "StatefulPartitionedCall"


def compact(version: Path) -> None:
    """Makes the graph of a SavedModel smaller without changing what it computes.

    Removes redundant attributes, nodes that no signature needs, and functions that are never
    called. This also removes the operations that save variables, so that a served model cannot
    write files.
    """
    from tensorflow.core.protobuf import saved_model_pb2

    path = version / "saved_model.pb"
    model = saved_model_pb2.SavedModel()
    model.ParseFromString(path.read_bytes())
    for meta_graph in model.meta_graphs:
        saver = meta_graph.saver_def
        # `save_tensor_name` must name an existing tensor, although servers never save variables.
        saver.save_tensor_name = saver.filename_tensor_name
        _prune_nodes(meta_graph)
        _prune_functions(meta_graph)
        _name_default_call(meta_graph)
        _strip_attributes(meta_graph.graph_def.node)
        for function in meta_graph.graph_def.library.function:
            _strip_attributes(function.node_def)
            _strip_attributes(function.arg_attr.values())
    path.write_bytes(model.SerializeToString(deterministic=True))


def _prune_nodes(meta_graph: Any) -> None:
    """Keeps the nodes that the signatures, the restore operation and the initializers need."""
    saver = meta_graph.saver_def
    roots = [saver.filename_tensor_name, saver.restore_op_name]
    for signature in meta_graph.signature_def.values():
        tensors = (*signature.inputs.values(), *signature.outputs.values())
        roots += [tensor.name for tensor in tensors]
    for collection in meta_graph.collection_def.values():
        roots += collection.node_list.value
    nodes = meta_graph.graph_def.node
    inputs = {node.name: [node_name(tensor) for tensor in node.input] for node in nodes}
    needed = _reachable(map(node_name, roots), inputs)
    _retain(nodes, [node for node in nodes if node.name in needed])


def _prune_functions(meta_graph: Any) -> None:
    """Keeps the functions reachable from the nodes of the graph or from its concrete functions."""
    library = meta_graph.graph_def.library
    calls = {function.signature.name: _called(function.node_def) for function in library.function}
    roots = [*meta_graph.object_graph_def.concrete_functions, *_called(meta_graph.graph_def.node)]
    needed = _reachable(roots, calls)
    _retain(library.function, [f for f in library.function if f.signature.name in needed])


def _called(nodes: Iterable[Any]) -> set[str]:
    """Returns the names of the functions that the nodes call."""
    return {
        name
        for node in nodes
        for value in node.attr.values()
        for name in (value.func.name, *(function.name for function in value.list.func))
        if name
    }


def _reachable(roots: Iterable[str], edges: Mapping[str, Iterable[str]]) -> set[str]:
    reached: set[str] = set()
    pending = list(roots)
    while pending:
        name = pending.pop()
        if name in edges and name not in reached:
            reached.add(name)
            pending += edges[name]
    return reached


def _retain(repeated_field: Any, items: list[Any]) -> None:
    del repeated_field[:]
    repeated_field.extend(items)


def _strip_attributes(items: Iterable[Any]) -> None:
    for item in items:
        for name in _REDUNDANT_ATTRIBUTES:
            item.attr.pop(name, None)


def _name_default_call(meta_graph: Any) -> None:
    """Renames the call node of `serving_default` to `StatefulPartitionedCall`.

    Clients of the C API look up operations by name, and usually expect this name.
    """
    signatures = meta_graph.signature_def
    if "serving_default" not in signatures:
        return
    (call, *_) = (node_name(t.name) for t in signatures["serving_default"].outputs.values())
    swapped = {call: _DEFAULT_CALL, _DEFAULT_CALL: call}

    def renamed(tensor: str) -> str:
        control = "^" if tensor.startswith("^") else ""
        node, colon, index = tensor.removeprefix("^").partition(":")
        return f"{control}{swapped.get(node, node)}{colon}{index}"

    for node in meta_graph.graph_def.node:
        node.name = renamed(node.name)
        node.input[:] = map(renamed, node.input)
    for signature in signatures.values():
        for tensor in signature.outputs.values():
            tensor.name = renamed(tensor.name)
    saver = meta_graph.saver_def
    saver.restore_op_name = renamed(saver.restore_op_name)
