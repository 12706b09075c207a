"""The memory that each row of a batch needs, computed from the shapes of a model."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import keras

from keras_seq.search.decode_loop import ROUND

# Shape letters: H heads, S source steps, K hypotheses, V vocabulary, L steps of the state.


class RowMemory(NamedTuple):
    """Bytes for each row of a batch: those that it needs at least, and those that it may need."""

    least: float
    most: float


def encoding_memory(model: Any, length: int) -> RowMemory:
    """Returns the memory of the attention among `length` tokens, the float32 weights `(H, S, S)`.

    The layers run one after another. The scores may be in memory together with the weights.
    """
    weights = 4 * attention_heads(model) * length**2
    return RowMemory(weights, 2 * weights)


def search_memory(
    model: Any, source_length: int, hypotheses: int, vocabulary_size: int, steps: int
) -> RowMemory:
    """Returns the memory of a search.

    Args:
        model: A model with `encoder` and `decoder_step`, or an ensemble.
        source_length: Tokens of the source.
        hypotheses: Number K of hypotheses at each step.
        vocabulary_size: Number V of logits of each hypothesis.
        steps: Maximum number of steps. The state grows to it, unless the hypotheses end earlier.
    """
    weights = encoding_memory(model, source_length)
    members = _members(model)
    logits = 4 * hypotheses * vocabulary_size
    held = sum(_source_bytes(member, source_length) for member in members)
    first, last = (
        sum(_state_bytes(member, hypotheses, length) for member in members)
        for length in (min(steps, ROUND), steps)
    )
    return RowMemory(
        max(weights.least, held + logits + first), max(weights.most, held + 2 * logits + last)
    )


def scoring_memory(
    model: Any, source_length: int, target_length: int, vocabulary_size: int
) -> RowMemory:
    """Returns the memory of the scores of a given target: its attention and its logits `(L, V)`."""
    weights = encoding_memory(model, max(source_length, target_length))
    logits = 4 * target_length * vocabulary_size
    return RowMemory(max(weights.least, logits), weights.most + 2 * logits)


def attention_heads(model: Any) -> int:
    """Returns the largest number of attention heads of a layer of a model; 0 without any."""
    parts = getattr(model, "layers", ()) if isinstance(model, keras.Layer) else ()
    members = [] if _members(model) == [model] else _members(model)
    own = getattr(model, "num_heads", 0)
    return max(own, *map(attention_heads, [*parts, *members]), 0)


def _members(model: Any) -> list[Any]:
    """Returns the models of an ensemble, or the model itself."""
    return list(getattr(model, "models", None) or getattr(model, "members", None) or [model])


def _source_bytes(model: Any, length: int) -> int:
    """Returns the bytes of the encoded source, such as the keys and values of each layer."""
    outputs = getattr(getattr(model, "encoder", None), "output", None)
    return sum(_bytes(tensor, [length]) for tensor in keras.tree.flatten(outputs or {}))


def _state_bytes(model: Any, hypotheses: int, length: int) -> int:
    """Returns the bytes of the decoder's state, and of the attention to the steps in it."""
    inputs = getattr(getattr(model, "decoder_step", None), "input", None)
    if not isinstance(inputs, dict) or not isinstance(inputs.get("state"), dict):
        return 0
    beam, shared = (
        keras.tree.flatten(inputs["state"].get(part, {})) for part in ("beam", "shared")
    )
    total = sum(_bytes(tensor, [length, hypotheses]) for tensor in shared)
    total += sum(_bytes(tensor, [hypotheses, length, hypotheses]) for tensor in beam)
    if shared:
        # A bias and the weights of each head, `(K, L, K)`.
        total += 4 * (1 + attention_heads(model)) * hypotheses**2 * length
    return total


def _bytes(tensor: Any, unknown: list[int]) -> int:
    """Returns the bytes of a row of a symbolic tensor; `unknown` are its unknown sizes in order."""
    sizes = iter(unknown)
    shape = [next(sizes, 1) if size is None else size for size in tensor.shape[1:]]
    item = 1 if "bool" in tensor.dtype else 2 if "16" in tensor.dtype else 4
    return item * math.prod(shape)
