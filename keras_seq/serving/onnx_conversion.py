"""Conversion of a model's graphs to ONNX files."""

from __future__ import annotations

import functools
import logging
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from keras_seq.serving.model_graphs import ModelGraph
from keras_seq.text import InputError

# The first version of the operations with all that the models need.
_OPSET = 18


def save_onnx(graph: ModelGraph, path: Path) -> None:
    """Writes the graph to a file; raises InputError if ONNX cannot express an operation."""
    onnx, tf2onnx = require_onnx()
    specs = [tf.TensorSpec(shape, dtype, name) for name, (shape, dtype) in graph.inputs.items()]

    def call(*tensors: Any) -> dict[str, Any]:
        outputs = graph.function(**dict(zip(graph.inputs, tensors, strict=True)))
        # An output that is an input or another output would be left out.
        return {name: tf.identity(tensor) for name, tensor in outputs.items()}

    function = tf.function(call, input_signature=specs, autograph=False)
    # An error in the code of the model is raised here, as it is.
    traced = function.get_concrete_function()
    logger = logging.getLogger("tf2onnx")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        model, _ = tf2onnx.convert.from_function(
            function, specs, opset=_OPSET, custom_op_handlers=_HANDLERS
        )
        _bind_captured(model, traced)
        onnx.checker.check_model(model)
    except Exception as error:
        raise InputError(
            f"{path.name}: an operation of the model has no ONNX form: "
            f"{' '.join(str(error).split())[:300]}"
        ) from error
    finally:
        logger.setLevel(level)
    path.write_bytes(model.SerializeToString())


def _bind_captured(model: Any, function: Any) -> None:
    """Replaces inputs of a graph that are tensors from outside the function by their values.

    Such tensors are constants that Keras or a layer made before the function was traced.
    """
    from onnx import numpy_helper

    captured = function.captured_inputs
    placeholders = function.inputs[len(function.inputs) - len(captured) :]
    values = {inner.name: outer for inner, outer in zip(placeholders, captured, strict=True)}
    for node in [node for node in model.graph.input if node.name in values]:
        value = numpy_helper.from_array(values[node.name].numpy(), node.name)
        model.graph.initializer.append(value)
        model.graph.input.remove(node)


def _convert_log1p(graph: Any, node: Any, name: str, _: Any) -> None:
    """Replaces log(1 + x), which ONNX lacks and tf2onnx leaves in the graph."""
    one = graph.make_const(f"{name}_one", np.array(1, np.float32)).output[0]
    total = graph.make_node("Add", [node.input[0], one]).output[0]
    shape, dtype = graph.get_shape(node.output[0]), graph.get_dtype(node.output[0])
    graph.remove_node(node.name)
    graph.make_node(
        "Log", [total], name=node.name, outputs=node.output, shapes=[shape], dtypes=[dtype]
    )


def _convert_rfft(graph: Any, node: Any, name: str, _: Any) -> None:
    """Replaces a Fourier transform of real numbers; its last axis has real and imaginary parts."""
    last = graph.make_const(f"{name}_last", np.array([-1])).output[0]
    points = graph.make_node("Unsqueeze", [node.input[0], last]).output[0]
    shape, axis = graph.get_shape(node.output[0]), len(graph.get_shape(node.input[0])) - 1
    graph.remove_node(node.name)
    graph.make_node(
        "DFT",
        [points],
        attr={"axis": axis, "onesided": 1},
        name=node.name,
        outputs=node.output,
        shapes=[[*shape, 2]],
        dtypes=[_FLOAT],
    )


def _convert_part(graph: Any, node: Any, name: str, _: Any, *, part: int) -> None:
    """Replaces the real or imaginary part of a result of `_convert_rfft`."""
    index = graph.make_const(f"{name}_part", np.array(part)).output[0]
    shape, source = graph.get_shape(node.output[0]), node.input[0]
    graph.remove_node(node.name)
    graph.make_node(
        "Gather",
        [source, index],
        attr={"axis": -1},
        name=node.name,
        outputs=node.output,
        shapes=[shape],
        dtypes=[_FLOAT],
    )


# `onnx.TensorProto.FLOAT`.
_FLOAT = 1
_HANDLERS: dict[str, Any] = {
    "Log1p": (_convert_log1p, []),
    "RFFT": (_convert_rfft, []),
    "Real": (functools.partial(_convert_part, part=0), []),
    "Imag": (functools.partial(_convert_part, part=1), []),
}


def require_onnx() -> tuple[Any, Any]:
    """Returns the modules `onnx` and `tf2onnx`; raises InputError if a package is not installed."""
    try:
        import onnx
        import onnxruntime
        import tf2onnx
    except ImportError as error:
        raise InputError(
            f"{error.name} is not installed: python -m pip install 'keras-seq[onnx]'"
        ) from None
    del onnxruntime
    return onnx, tf2onnx
