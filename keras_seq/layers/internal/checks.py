"""Argument checks that layers share. They raise ValueError for an invalid argument."""

from typing import Any

import keras

VECTORS = ("batch", "features")
STEPS = ("batch", "steps", "features")


def check_positive(*, optional: bool = False, **sizes: Any) -> None:
    """Checks that each argument is a positive integer, or None if `optional`."""
    for name, size in sizes.items():
        if not (_is_integer(size) and size > 0) and not (optional and size is None):
            expected = "None or a positive integer" if optional else "a positive integer"
            raise ValueError(f"`{name}` must be {expected}, received {size!r}.")


def check_minimum(minimum: int, **sizes: Any) -> None:
    """Checks that each argument, or each entry of a list, is an integer >= `minimum`."""
    for name, value in sizes.items():
        for size in value if isinstance(value, list) else [value]:
            if not _is_integer(size) or size < minimum:
                raise ValueError(
                    f"`{name}` must be an integer of at least {minimum}, received {size!r}."
                )


def _is_integer(size: Any) -> bool:
    return isinstance(size, int) and not isinstance(size, bool)


def check_rates(**rates: Any) -> None:
    """Checks that each argument is a number in [0, 1)."""
    for name, rate in rates.items():
        if not isinstance(rate, (int, float)) or not 0 <= rate < 1:
            raise ValueError(f"`{name}` must be in [0, 1), received {rate!r}.")


def check_above_zero(**numbers: Any) -> None:
    """Checks that each argument is a number above 0."""
    for name, number in numbers.items():
        if not number > 0:
            raise ValueError(f"`{name}` must be positive, received {number!r}.")


def check_choice(name: str, choice: Any, choices: tuple[str, ...]) -> None:
    """Checks that `choice` is one of `choices`."""
    if choice not in choices:
        *others, last = (f'"{allowed}"' for allowed in choices)
        expected = f"{', '.join(others)} or {last}"
        raise ValueError(f"`{name}` must be {expected}, received {choice!r}.")


def check_axes(name: str, shape: Any, *allowed: tuple[str, ...]) -> None:
    """Checks that `shape` has as many axes as an entry of `allowed`."""
    if len(shape) not in map(len, allowed):
        expected = " or ".join(f"({', '.join(axes)})" for axes in allowed)
        raise ValueError(
            f"`{name}` must have the axes {expected}, received the shape {tuple(shape)}: "
            "a single step or feature is an axis of size 1, which `keras.ops.expand_dims` adds."
        )


def known_features(name: str, shape: Any, *allowed: tuple[str, ...]) -> int:
    """Returns the size of the last axis, and checks that it is known and the axes are `allowed`."""
    check_axes(name, shape, *allowed)
    if shape[-1] is None:
        raise ValueError(
            f"The feature axis of `{name}` must be known, received the shape {tuple(shape)}: "
            "set its size where the tensor is made."
        )
    return shape[-1]


def check_tensor(name: str, tensor: Any, features: int, *allowed: tuple[str, ...]) -> None:
    """Checks that `tensor` holds floats and that its last axis has the size `features`."""
    dtype = keras.backend.standardize_dtype(tensor.dtype)
    if "float" not in dtype:
        raise ValueError(
            f"`{name}` must hold floats, received {dtype} in the shape {tuple(tensor.shape)}: "
            "turn ids into vectors with an embedding first."
        )
    check_axes(name, tensor.shape, *allowed)
    if tensor.shape[-1] not in (None, features):
        raise ValueError(
            f"`{name}` must have {features} features, as when this layer was built, received "
            f"{tensor.shape[-1]} in the shape {tuple(tensor.shape)}: "
            "use a separate layer for another width."
        )


def same_shape(shape: Any, expected: Any) -> bool:
    """Returns True if two shapes agree where both are known."""
    return len(shape) == len(expected) and all(
        None in pair or pair[0] == pair[1] for pair in zip(shape, expected, strict=True)
    )


def check_same_batch(name: str, tensor: Any, other_name: str, other: Any) -> None:
    """Checks that two tensors have the same batch size."""
    if not same_shape(tensor.shape[:1], other.shape[:1]):
        raise ValueError(
            f"`{name}` and `{other_name}` must have equally many rows, received the shapes "
            f"{tuple(tensor.shape)} and {tuple(other.shape)}: repeat the rows of one of them."
        )


def check_mask(name: str, mask: Any, tensor: Any) -> None:
    """Checks that `mask` is None, or a bool tensor with the batch size and steps of `tensor`."""
    if mask is None:
        return
    dtype = keras.backend.standardize_dtype(mask.dtype)
    if dtype != "bool":
        raise ValueError(
            f"`{name}` must be bool, True where a step is real, received {dtype}: "
            "compare it first, as in `mask != 0`."
        )
    steps = tuple(tensor.shape[:2])
    if not same_shape(mask.shape, steps):
        raise ValueError(
            f"`{name}` must have the shape (batch, steps) of what it masks, {steps}, "
            f"received {tuple(mask.shape)}: one truth value for each step."
        )


def check_attention_mask(name: str, mask: Any, query: Any, value: Any) -> None:
    """Checks that `mask` is None, or bool with the batch size and steps of `query` and `value`."""
    if mask is None:
        return
    dtype = keras.backend.standardize_dtype(mask.dtype)
    expected = (*query.shape[:2], value.shape[1])
    if dtype != "bool" or not same_shape(mask.shape, expected):
        raise ValueError(
            f"`{name}` must be bool with the shape (batch, queries, keys), {expected}, True where "
            f"a query may attend to a key, received {dtype} of the shape {tuple(mask.shape)}."
        )


def check_word_ids(ids: Any, parts: str) -> None:
    """Checks that `ids` are integers of shape `(batch, words, parts of a word)`."""
    dtype = keras.backend.standardize_dtype(ids.dtype)
    if len(ids.shape) != 3 or "int" not in dtype:
        raise ValueError(
            f"The inputs must be integer ids of shape (batch, words, {parts}), "
            f"received {dtype} of shape {tuple(ids.shape)}."
        )


def check_call(
    features: Any, query: Any, value: Any, query_mask: Any = None, value_mask: Any = None
) -> None:
    """Checks the call arguments of an attention whose query and value have `features`."""
    check_tensor("query", query, features[0], STEPS)
    check_tensor("value", value, features[1], STEPS)
    check_same_batch("query", query, "value", value)
    check_mask("query_mask", query_mask, query)
    check_mask("value_mask", value_mask, value)
