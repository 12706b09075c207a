"""What a search knows of a source: ids of a text, or whatever else an encoder reads."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import keras
from keras import ops

from keras_seq import backend
from keras_seq.search.limits import length_limits
from keras_seq.search.random_numbers import row_keys

# Shape letters: B batch, S source steps.


class Source(NamedTuple):
    """What has been read.

    Attributes:
        memory: What the model's encoder gave.
        mask: Bool `(B, S)`, True where there is something to look at: of ids where they are
            none of padding, else what the memory has as `mask`.
        limits: `Limits` of each row.
        tensors: Int32 ids `(B, S)`, or a tensor `(B, ...)` or a dict of such of other kinds.
        is_ids: Which of these.
    """

    memory: Any
    mask: Any
    limits: Any
    tensors: Any
    is_ids: bool

    @property
    def has_static_shape(self):
        """Whether it is read by a program for one shape: all rows stay in the search then."""
        return _is_static(self.mask, self.is_ids)

    def keys(self, seed):
        """A number for each row's content, uint32 `(B,)`; see `row_keys`."""
        if self.is_ids:
            return row_keys(self.tensors, seed)
        parts = [_words(tensor) for tensor in keras.tree.flatten(self.tensors)]
        first, *others = [
            row_keys(part, ops.cast(seed, "uint32") + ops.cast(place, "uint32"))
            for place, part in enumerate(parts)
        ]
        return sum(others, start=first)


def read_source(model, source, **options):
    """Reads a source by a model's encoder.

    Args:
        model: A model of the search contract.
        source: Int tensor `(B, S)`, padded with 0; or what else the model's encoder reads, a
            tensor of another kind or a dict of tensors, each `(B, ...)`.
        **options: Those of `length_limits`. What goes by the length of the source is for ids:
            steps of anything else are no tokens, and `max_length` alone is the limit there.

    Returns:
        `Source`.

    Raises:
        ValueError: If an option is out of range.
        NotImplementedError: On torch.
    """
    if backend.name() == "torch":
        raise NotImplementedError(
            "Search and sampling run on TensorFlow and JAX, received the Keras backend 'torch': "
            "set KERAS_BACKEND=tensorflow or KERAS_BACKEND=jax."
        )
    if isinstance(source, Mapping):
        tensors, is_ids = keras.tree.map_structure(ops.convert_to_tensor, source), False
    else:
        tensors = ops.convert_to_tensor(source)
        is_ids = len(tensors.shape) == 2 and "int" in keras.backend.standardize_dtype(tensors.dtype)
    if is_ids:
        tensors = ops.cast(tensors, "int32")
        # Before the encoder runs: wrong options are to be found at once.
        limits = length_limits(tensors, **options)
        memory = model.encoder(tensors, training=False)
        return Source(memory, ops.not_equal(tensors, 0), limits, tensors, True)
    memory = model.encoder(tensors, training=False)
    # Of an ensemble the first model's.
    mask = (memory["each"][0] if "each" in memory else memory)["mask"]
    return Source(memory, mask, _limits_without_lengths(mask, **options), tensors, False)


def _limits_without_lengths(mask, **options):
    options |= {
        "min_length_ratio": 0.0,
        "max_length_ratio": 0.0,
        "max_length_extra": options["max_length"],
    }
    limits = length_limits(ops.cast(mask, "int32")[:, :1], **options)
    if _is_static(mask, is_ids=False):
        return limits
    # TensorFlow must not see the number, or a state that grows would have a fixed length.
    return limits._replace(steps=limits.steps + 0 * ops.shape(mask)[0])


def _is_static(mask, is_ids):
    sizes = ops.shape(mask)
    return any(isinstance(size, int) for size in (sizes if is_ids else sizes[:1]))


def _words(tensor):
    """The bits of a tensor `(B, ...)` as uint32 `(B, N)`; what is 0 stays so."""
    rows = ops.shape(tensor)[0]
    if "float" in keras.backend.standardize_dtype(tensor.dtype):
        # Keras looks at bits where the last axis is known.
        numbers = ops.reshape(ops.cast(tensor, "float32"), (-1, 1))
        tensor = ops.view(numbers, "uint32")
    else:
        tensor = ops.cast(tensor, "uint32")
    return ops.reshape(tensor, (rows, -1))
