"""Sources of a search: token ids, or any other input of an encoder."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import keras
from keras import ops

from keras_seq import backend
from keras_seq.backend import word
from keras_seq.search.config import SearchConfig
from keras_seq.search.limits import Limits, length_limits
from keras_seq.search.random_numbers import row_keys

# Shape letters: B batch, S source steps, P prefix steps.


class Source(NamedTuple):
    """An encoded source.

    Attributes:
        memory: Output of the model's encoder.
        mask: Bool `(B, S)`, True at real positions: ids other than padding, or the memory's
            `mask` if the source is not ids.
        limits: `Limits` of each row.
        tensors: Int32 ids `(B, S)`; otherwise a tensor `(B, ...)` or a dict of such tensors.
        is_ids: True if `tensors` are ids.
        prefix: Int32 `(B, P)` or None.
    """

    memory: Any
    mask: Any
    limits: Limits
    tensors: Any
    is_ids: bool
    prefix: Any

    @property
    def has_static_shape(self) -> bool:
        """True if shapes are static. Then all rows stay in the batch until the search ends."""
        return _is_static(self.mask, self.is_ids)

    def keys(self, seed: Any) -> Any:
        """Returns a key of 32 bits for the content of each row `(B,)`; see `row_keys`."""
        if self.is_ids:
            return row_keys(self.tensors, seed)
        parts = [_words(tensor) for tensor in keras.tree.flatten(self.tensors)]
        first, *others = [
            row_keys(part, word(seed) + word(number)) for number, part in enumerate(parts)
        ]
        return sum(others, start=first)


def read_source(model: Any, source: Any, config: SearchConfig, prefix: Any = None) -> Source:
    """Encodes a source with the encoder of a model.

    The source is ids `(B, S)`, padded with 0; or any other input of the encoder: a tensor of
    another kind or a dict of tensors, each `(B, ...)`.
    """
    if prefix is not None:
        prefix = ops.cast(prefix, "int32")
    if isinstance(source, Mapping):
        tensors, is_ids = keras.tree.map_structure(ops.convert_to_tensor, source), False
    else:
        tensors = ops.convert_to_tensor(source)
        is_ids = len(tensors.shape) == 2 and "int" in keras.backend.standardize_dtype(tensors.dtype)
    if is_ids:
        tensors = ops.cast(tensors, "int32")
        limits = length_limits(tensors, config, prefix)
        memory = model.encoder(tensors, training=False)
        return Source(memory, ops.not_equal(tensors, 0), limits, tensors, True, prefix)
    memory = model.encoder(tensors, training=False)
    mask = memory["mask"]
    limits = _limits_without_lengths(mask, config, prefix)
    return Source(memory, mask, limits, tensors, False, prefix)


def _limits_without_lengths(mask: Any, config: SearchConfig, prefix: Any) -> Limits:
    config = replace(
        config, min_length_ratio=0.0, max_length_ratio=0.0, max_length_extra=config.max_length
    )
    limits = length_limits(ops.cast(mask, "int32")[:, :1], config, prefix)
    if _is_static(mask, is_ids=False):
        return limits
    # The sum with a tensor keeps TensorFlow from fixing the length of the growing state.
    return limits._replace(steps=limits.steps + 0 * backend.shape(mask)[0])


def _is_static(mask: Any, is_ids: bool) -> bool:
    sizes = backend.shape(mask)
    return any(isinstance(size, int) for size in (sizes if is_ids else sizes[:1]))


def _words(tensor: Any) -> Any:
    """Returns the lowest 32 bits of the numbers in a tensor `(B, ...)`, as `(B, N)`; 0 stays 0."""
    rows = backend.shape(tensor)[0]
    if "float" in keras.backend.standardize_dtype(tensor.dtype):
        # `ops.view` requires a static last axis.
        numbers = ops.reshape(ops.cast(tensor, "float32"), (-1, 1))
        tensor = ops.view(numbers, "int32")
    return ops.reshape(word(tensor), (rows, -1))
