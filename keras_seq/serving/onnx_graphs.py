"""The ONNX graphs of a model, converted from TensorFlow functions."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_seq.backend import call_model
from keras_seq.inference.recognizer import audio_lengths
from keras_seq.models.inputs import label_inputs
from keras_seq.scoring.entities import OUTSIDE
from keras_seq.text import InputError, Labels

# Shape letters: B batch, S source steps, K beam, L target steps, V vocabulary, N labels.

# Shape and dtype.
Input = tuple[Any, Any]
# The first version of the operations with all that the models need.
_OPSET = 18
_IDS: Input = ([None, None], tf.int32)
_INTEGER: Input = ([], tf.int32)
_SOUNDS: dict[str, Input] = {"samples": ([None, None], tf.float32), "lengths": ([None], tf.int32)}
# Characters of a word; see `word_characters`.
_CHARACTERS: Input = ([None, None, 16], tf.int32)


class OnnxGraph(NamedTuple):
    """A function from tensors by name to a dict of tensors, and its inputs by name.

    The inputs are shapes with dtypes. An output that takes the place of an input has its name after
    `new_`, because the names in a graph are unique.
    """

    function: Callable[..., dict[str, Any]]
    inputs: Mapping[str, Input]

    def save(self, path: Path) -> None:
        """Writes the graph to a file; raises InputError if ONNX cannot express an operation."""
        onnx, tf2onnx = require_onnx()
        specs = [tf.TensorSpec(shape, dtype, name) for name, (shape, dtype) in self.inputs.items()]

        def call(*tensors: Any) -> dict[str, Any]:
            outputs = self.function(**dict(zip(self.inputs, tensors, strict=True)))
            # An output that is an input or another output would be left out.
            return {name: tf.identity(tensor) for name, tensor in outputs.items()}

        function = tf.function(call, input_signature=specs, autograph=False)
        logger = logging.getLogger("tf2onnx")
        level = logger.level
        logger.setLevel(logging.CRITICAL)
        try:
            model, _ = tf2onnx.convert.from_function(
                function, specs, opset=_OPSET, custom_op_handlers=_HANDLERS
            )
            _bind_captured(model, function.get_concrete_function())
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


def search_graphs(
    model: Any, *, attention: bool = False, sounds: bool = False
) -> Iterator[tuple[str, OnnxGraph]]:
    """Yields the names and graphs of a model that generates text.

    * `start`: `source` `(B, S)`, or with `sounds` the inputs of `recognition_graph`, `beam_size`
      and `length` -> memory and state of K hypotheses;
    * `step`: `token` `(B, K)`, `position`, memory, state and `count` -> `logits` `(B, K, V)`, the
      new state, and the `count` largest log-probabilities `values` with their `tokens`, each `(B,
      K, count)`; with `attention`, also that of the source `(B, K, S)`;
    * `grow`: state and `length` -> a state with room for as many more steps, if it needs room.
    """
    parts: dict[str, Any] = {}

    def start(beam_size: Any, length: Any, **inputs: Any) -> dict[str, Any]:
        memory = model.encoder(inputs if sounds else inputs["source"], training=False)
        state = model.initial_state(memory, beam_size, length)
        parts["memory"], parts["state"] = memory, state
        return _flat("memory", memory) | _flat("state", state)

    source = _SOUNDS if sounds else {"source": _IDS}
    inputs = {"beam_size": _INTEGER, "length": _INTEGER} | source
    graph = OnnxGraph(start, inputs)
    # Traces the function, because its outputs are the inputs of the other graphs.
    specs = {name: tf.TensorSpec(shape, dtype) for name, (shape, dtype) in inputs.items()}
    tf.function(start, autograph=False).get_concrete_function(**specs)
    memory, state = parts["memory"], parts["state"]
    yield "start", graph

    decode = model.decoder_step_with_attention if attention else model.decoder_step

    def step(token: Any, position: Any, count: Any, **tensors: Any) -> dict[str, Any]:
        outputs = call_model(
            decode,
            {
                "token": token,
                "position": position,
                "memory": _packed("memory", memory, tensors),
                "state": _packed("state", state, tensors),
            },
            training=False,
        )
        logits = tf.cast(outputs["logits"], tf.float32)
        count = tf.minimum(count, logits.shape[-1])
        values, tokens = tf.math.top_k(tf.nn.log_softmax(logits), count)
        results = {"logits": logits, "values": values, "tokens": tokens}
        if attention:
            results["attention"] = tf.cast(outputs["attention"], tf.float32)
        return results | _flat("new_state", outputs["state"])

    state_inputs = _specs(_flat("state", state))
    step_inputs = {"token": _IDS, "position": _INTEGER, "count": _INTEGER}
    yield "step", OnnxGraph(step, step_inputs | _specs(_flat("memory", memory)) | state_inputs)

    if not _has_fixed_size(model, state_inputs, state):

        def grow(length: Any, **tensors: Any) -> dict[str, Any]:
            return _flat("new_state", model.grow_state(_packed("state", state, tensors), length))

        yield "grow", OnnxGraph(grow, {"length": _INTEGER} | state_inputs)


def label_graph(model: Any, temperature: float) -> OnnxGraph:
    """Returns the graph of a classifier: `source` `(B, S)` -> `probabilities` `(B, N)`.

    If the model reads characters, it has another input `characters` `(B, S, C)`.
    """
    inputs = {"source": _IDS}
    if "characters" in model.input:
        inputs["characters"] = _CHARACTERS

    def probabilities(source: Any, characters: Any = None) -> dict[str, Any]:
        logits = model(label_inputs(source, characters=characters), training=False)
        logits = tf.cast(logits, tf.float32)
        return {"probabilities": tf.nn.softmax(tf.nn.log_softmax(logits) / temperature)}

    return OnnxGraph(probabilities, inputs)


def tag_graph(model: Any, labels: Labels, outside_penalty: float) -> OnnxGraph:
    """Returns the graph of a tagger: `source` and `begins` `(B, S)` -> `tags` `(B, S)`.

    If the model reads characters, it has another input `characters` `(B, S, C)`.
    """
    inputs = {"source": _IDS, "begins": _IDS}
    if "characters" in model.input:
        inputs["characters"] = _CHARACTERS
    penalties = tf.constant([outside_penalty * (name == OUTSIDE) for name in labels.names])

    def tags(source: Any, begins: Any, characters: Any = None) -> dict[str, Any]:
        arrays = label_inputs(source, begins, characters)
        logits = tf.cast(model(arrays, training=False)["logits"], tf.float32)
        return {"tags": model.decode(logits - penalties, arrays["begins"])}

    return OnnxGraph(tags, inputs)


def recognition_graph(find: Callable[..., Any]) -> OnnxGraph:
    """Returns the graph of a recognizer, search included.

    `find` is from `make_sound_search`. Inputs: `samples` `(B, samples)` and `lengths` `(B,)`.
    Outputs: `labels` `(B, N, L)`, `counts` and `scores`, each `(B, N)`.
    """

    def recognize(samples: Any, lengths: Any) -> dict[str, Any]:
        lengths = audio_lengths("samples", samples, lengths)
        result = find({"samples": samples, "lengths": lengths})
        return {"labels": result.labels, "counts": result.lengths, "scores": result.scores}

    return OnnxGraph(recognize, _SOUNDS)


def detection_graph(model: Any) -> OnnxGraph:
    """Returns the graph of a detector: `samples`, `lengths` -> `probabilities` `(B, S, W)`."""

    def probabilities(samples: Any, lengths: Any) -> dict[str, Any]:
        return {"probabilities": tf.sigmoid(model({"samples": samples, "lengths": lengths}))}

    return OnnxGraph(probabilities, _SOUNDS)


def _flat(prefix: str, structure: Any) -> dict[str, Any]:
    """Names the tensors of a structure by their paths."""
    return {
        "_".join((prefix, *map(str, path))): tensor
        for path, tensor in keras.tree.flatten_with_path(structure)
    }


def _packed(prefix: str, structure: Any, tensors: Mapping[str, Any]) -> Any:
    """Returns `structure` with tensors by the names of `_flat`."""
    names = _flat(prefix, structure)
    return keras.tree.pack_sequence_as(structure, [tensors[name] for name in names])


def _specs(tensors: Mapping[str, Any]) -> dict[str, Input]:
    return {name: (tensor.shape, tensor.dtype) for name, tensor in tensors.items()}


def _has_fixed_size(model: Any, inputs: Mapping[str, Input], state: Any) -> bool:
    """Returns True if the state holds any number of steps."""
    same: list[bool] = []

    @tf.function(autograph=False)
    def grow(length: Any, tensors: Any) -> None:
        before = _packed("state", state, tensors)
        after = model.grow_state(before, length)
        pairs = zip(keras.tree.flatten(before), keras.tree.flatten(after), strict=True)
        same.append(all(old is new for old, new in pairs))

    specs = {name: tf.TensorSpec(shape, dtype) for name, (shape, dtype) in inputs.items()}
    grow.get_concrete_function(tf.TensorSpec([], tf.int32), specs)
    return same[0]
