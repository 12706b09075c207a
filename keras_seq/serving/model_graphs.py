"""The computations of a run's model as functions from tensors to tensors, for conversion."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from keras_seq.backend import call_model
from keras_seq.inference.recognizer import audio_lengths
from keras_seq.models.inputs import label_inputs
from keras_seq.scoring.entities import OUTSIDE
from keras_seq.search.decode_loop import require_attention
from keras_seq.text import EOS_ID, Labels, Tokenizer

# Shape letters: B batch, S source steps, K beam, L target steps, V vocabulary, N labels or n-best,
# W words.

# Shape and dtype.
Input = tuple[Any, Any]
_IDS: Input = ([None, None], tf.int32)
_INTEGER: Input = ([], tf.int32)
_SOUNDS: dict[str, Input] = {"samples": ([None, None], tf.float32), "lengths": ([None], tf.int32)}
# Characters of a word; see `word_characters`.
_CHARACTERS: Input = ([None, None, 16], tf.int32)


class ModelGraph(NamedTuple):
    """A function from tensors by name to a dict of tensors, and its inputs by name.

    The inputs are shapes with dtypes. An output that takes the place of an input has its name after
    `new_`, because the names in a graph are unique. `answer` is what `keras_seq.runtime` makes of
    the outputs, a name of `keras_seq.runtime.MODELS`; with an empty name it cannot run the graph.
    """

    function: Callable[..., dict[str, Any]]
    inputs: Mapping[str, Input]
    answer: str = ""


class GraphParts(NamedTuple):
    """The parts of an export of graphs.

    Attributes:
        graphs: The graphs by name.
        vocabularies: The vocabulary of texts; for a model that generates text from text, those of
            source and target; none for a model of recordings that generates no text.
        settings: Entries of `model.json`, as `keras_seq.runtime` reads them.
    """

    graphs: Iterable[tuple[str, ModelGraph]]
    vocabularies: Sequence[Tokenizer]
    settings: dict[str, Any]


def search_graphs(
    model: Any, *, attention: bool = False, sounds: bool = False
) -> Iterator[tuple[str, ModelGraph]]:
    """Yields the names and graphs of a model that generates text.

    * `start`: `source` `(B, S)`, or with `sounds` the inputs of `recognition_graph`, `beam_size`
      and `length` -> memory and state of K hypotheses;
    * `step`: `token` and `parents` `(B, K)`, `position`, memory, state and `count` -> `logits` `(B,
      K, V)`, the new state, and the `count` largest log-probabilities `values` with their `tokens`,
      each `(B, K, count)`; with `attention`, also that of the source `(B, K, S)`. Each hypothesis
      continues from the state of its parent;
    * `grow`: state and `length` -> a state with room for as many more steps, if it needs room.

    B, S and K are unknown when the graphs are made, so the runtime can search with any K. Raises
    InputError if the model has no step with `attention`.
    """
    if attention:
        require_attention(model)
    answer = "transcript" if sounds else "text"
    parts: dict[str, Any] = {}

    def start(beam_size: Any, length: Any, **inputs: Any) -> dict[str, Any]:
        memory = model.encoder(inputs if sounds else inputs["source"], training=False)
        state = model.initial_state(memory, beam_size, length)
        parts["memory"], parts["state"] = memory, state
        return _flat("memory", memory) | _flat("state", state)

    source = _SOUNDS if sounds else {"source": _IDS}
    inputs = {"beam_size": _INTEGER, "length": _INTEGER} | source
    graph = ModelGraph(start, inputs, answer)
    # Traces the function, because its outputs are the inputs of the other graphs.
    specs = {name: tf.TensorSpec(shape, dtype) for name, (shape, dtype) in inputs.items()}
    tf.function(start, autograph=False).get_concrete_function(**specs)
    memory, state = parts["memory"], parts["state"]
    yield "start", graph

    decode = model.decoder_step_with_attention if attention else model.decoder_step

    def step(token: Any, parents: Any, position: Any, count: Any, **tensors: Any) -> dict[str, Any]:
        outputs = call_model(
            decode,
            {
                "token": token,
                "position": position,
                "memory": _packed("memory", memory, tensors),
                "state": _reordered(_packed("state", state, tensors), parents),
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
    step_inputs = {"token": _IDS, "parents": _IDS, "position": _INTEGER, "count": _INTEGER}
    step_inputs |= _specs(_flat("memory", memory)) | state_inputs
    yield "step", ModelGraph(step, step_inputs, answer)

    if not _has_fixed_size(model, state_inputs, state):

        def grow(length: Any, **tensors: Any) -> dict[str, Any]:
            return _flat("new_state", model.grow_state(_packed("state", state, tensors), length))

        yield "grow", ModelGraph(grow, {"length": _INTEGER} | state_inputs, answer)


def label_graph(model: Any, temperature: float) -> ModelGraph:
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

    return ModelGraph(probabilities, inputs, "label")


def tag_graph(model: Any, labels: Labels, outside_penalty: float) -> ModelGraph:
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

    return ModelGraph(tags, inputs, "tags")


def recognition_graph(find: Callable[..., Any]) -> ModelGraph:
    """Returns the graph of a recognizer, search included.

    `find` is from `make_sound_search`. Inputs: `samples` `(B, samples)` and `lengths` `(B,)`.
    Outputs: `labels` `(B, N, L)`, `counts` and `scores`, each `(B, N)`.
    """

    def recognize(samples: Any, lengths: Any) -> dict[str, Any]:
        lengths = audio_lengths("samples", samples, lengths)
        result = find({"samples": samples, "lengths": lengths})
        return {"labels": result.labels, "counts": result.lengths, "scores": result.scores}

    return ModelGraph(recognize, _SOUNDS, "transcript")


def generation_graph(find: Callable[..., Any], *, continues: bool = False) -> ModelGraph:
    """Returns the graph of a model that generates text, search included.

    `find` is from `make_search`. Input: `source` `(1, S)`, which is a prompt if the model
    `continues` it. Outputs: `tokens` `(1, N, L)`, `scores` and `truncated`, each `(1, N)`.
    """

    def generate(source: Any) -> dict[str, Any]:
        # A model that continues prompts has no source. The search takes one token for it.
        result = find(tf.constant([[EOS_ID]]), source) if continues else find(source)
        return {"tokens": result.tokens, "scores": result.scores, "truncated": result.truncated}

    return ModelGraph(generate, {"source": _IDS}, "text")


def detection_graph(model: Any) -> ModelGraph:
    """Returns the graph of a detector: `samples`, `lengths` -> `probabilities` `(B, S, W)`."""

    def probabilities(samples: Any, lengths: Any) -> dict[str, Any]:
        return {"probabilities": tf.sigmoid(model({"samples": samples, "lengths": lengths}))}

    return ModelGraph(probabilities, _SOUNDS, "detections")


def stream_graph(model: Any, num_samples: int) -> ModelGraph:
    """Returns the graph of a detector for streams: the next samples -> probabilities of frames.

    Inputs: `samples` `(1, num_samples)` and the state, zero at first. Outputs: `probabilities` `(1,
    S, W)` and the new state.
    """
    state = model.initial_state(1)
    # A file for LiteRT cannot have empty tensors.
    filled = {name: tensor for name, tensor in state.items() if 0 not in tensor.shape}

    def advance(samples: Any, **tensors: Any) -> dict[str, Any]:
        given = {name: tensors.get(f"state_{name}", tensor) for name, tensor in state.items()}
        outputs = model.stream_step({"samples": samples, "state": given})
        after = {name: outputs["state"][name] for name in filled}
        return {"probabilities": tf.sigmoid(outputs["logits"]), **_flat("new_state", after)}

    samples: dict[str, Input] = {"samples": ([1, num_samples], tf.float32)}
    return ModelGraph(advance, samples | _specs(_flat("state", filled)), "detections")


def with_fixed_shapes(graph: ModelGraph, length: int) -> ModelGraph:
    """Returns the graph with a batch of 1 and `length` steps."""

    def fixed(one: Input) -> Input:
        shape, dtype = one
        known = [size if size is not None else length for size in shape]
        if shape and shape[0] is None:
            known[0] = 1
        return known, dtype

    return graph._replace(inputs={name: fixed(one) for name, one in graph.inputs.items()})


def _reordered(state: Any, parents: Any) -> Any:
    """`reorder_state` in operations that onnxruntime computes without more than one copy."""
    rows, count = tf.unstack(tf.shape(parents))
    index = tf.reshape(parents + count * tf.range(rows)[:, None], [-1])

    def reorder(tensor: Any) -> Any:
        shape = tf.shape(tensor)
        flat = tf.reshape(tensor, tf.concat([[rows * count], shape[2:]], axis=0))
        return tf.ensure_shape(tf.reshape(tf.gather(flat, index), shape), tensor.shape)

    return {**state, "beam": keras.tree.map_structure(reorder, state["beam"])}


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
