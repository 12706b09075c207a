"""Conversion of a model's graph to a file for LiteRT, formerly TensorFlow Lite."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from keras_seq import backend
from keras_seq.serving.model_graphs import ModelGraph
from keras_seq.text import InputError

_UNKNOWN_OPERATION = re.compile(r"'tf\.(\w+)' op is neither a custom op nor a flex op")


def require_litert() -> Any:
    """Returns the class of the interpreter; raises InputError if a package is not installed."""
    try:
        from ai_edge_litert.interpreter import Interpreter
    except ImportError as error:
        raise InputError(
            f"{error.name} is not installed: python -m pip install 'keras-seq[litert]'"
        ) from None
    return Interpreter


def convert_to_litert(graph: ModelGraph, variables: Sequence[Any], quantization: str) -> bytes:
    """Converts a graph with fixed shapes. `variables` are those of the model.

    With a `quantization` of `"int8"`, the matrices have 8 bits and are products in integers where
    LiteRT can. Raises InputError if LiteRT cannot express an operation.
    """
    specs = [tf.TensorSpec(shape, dtype, name) for name, (shape, dtype) in graph.inputs.items()]
    weights = [(variable, backend.to_numpy(variable)) for variable in variables]

    def call(*tensors: Any) -> dict[str, Any]:
        # The converter cannot initialize variables that the body of a loop reads.
        constants = [(variable, tf.constant(value)) for variable, value in weights]
        with keras.StatelessScope(constants):
            outputs = graph.function(**dict(zip(graph.inputs, tensors, strict=True)))
        return {name: tf.identity(tensor) for name, tensor in outputs.items()}

    function = tf.function(call, input_signature=specs, autograph=False)
    # With a module, the file has a signature, which keeps the names of inputs and outputs.
    converter = tf.lite.TFLiteConverter.from_concrete_functions(
        [function.get_concrete_function()], tf.Module()
    )
    if quantization == "int8":
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    try:
        content: bytes = converter.convert()
    except Exception as error:
        message = str(error)
        names = sorted(set(_UNKNOWN_OPERATION.findall(message)))
        reason = f"LiteRT has no {', '.join(names)}" if names else " ".join(message.split())[:300]
        raise InputError(f"an operation of the model has no form in LiteRT: {reason}") from error
    return content
