"""Checks of arguments that layers share."""

from typing import Any

import keras

# Shape letters: B batch, T query steps, S value steps, D_q and D_v features.

VECTORS = ("batch", "features")
STEPS = ("batch", "steps", "features")


def check_positive(**sizes: Any) -> None:
    """Raises ValueError unless each argument is a positive integer."""
    for name, size in sizes.items():
        if not isinstance(size, int) or size < 1:
            raise ValueError(f"`{name}` must be a positive integer, received {size!r}.")


def check_minimum(minimum: int, **sizes: Any) -> None:
    """Raises ValueError unless each argument is an integer of at least `minimum`.

    A list stands for its entries.
    """
    for name, value in sizes.items():
        for size in value if isinstance(value, list) else [value]:
            if not isinstance(size, int) or size < minimum:
                raise ValueError(
                    f"`{name}` must be an integer of at least {minimum}, received {size!r}."
                )


def check_dropout(dropout: float) -> None:
    """Raises ValueError unless `dropout` is in [0, 1)."""
    if not 0 <= dropout < 1:
        raise ValueError(f"`dropout` must be in [0, 1), received {dropout!r}.")


def check_features(query_shape: Any, value_shape: Any) -> tuple[int, int]:
    """Returns the feature counts of query and value; raises ValueError if one is unknown."""
    for name, shape in (("query", query_shape), ("value", value_shape)):
        check_axes(name, shape, STEPS)
        if shape[-1] is None:
            raise ValueError(
                f"The feature axis of `{name}` must be known, "
                f"received a {name} of shape {tuple(shape)}."
            )
    return query_shape[-1], value_shape[-1]


def check_axes(name: str, shape: Any, *allowed: tuple[str, ...]) -> None:
    """Raises ValueError unless `shape` has as many axes as one of `allowed`."""
    if len(shape) not in map(len, allowed):
        expected = " or ".join(f"({', '.join(axes)})" for axes in allowed)
        raise ValueError(
            f"`{name}` must have the axes {expected}, received the shape {tuple(shape)}: "
            "a single step or feature is an axis of size 1, which `keras.ops.expand_dims` adds."
        )


def check_tensor(name: str, tensor: Any, features: int, *allowed: tuple[str, ...]) -> None:
    """Raises ValueError unless `tensor` holds floats, `features` of them on its last axis."""
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


def check_same_batch(name: str, tensor: Any, other_name: str, other: Any) -> None:
    """Raises ValueError if two tensors have different batch sizes."""
    sizes = {tensor.shape[0], other.shape[0]} - {None}
    if len(sizes) > 1:
        raise ValueError(
            f"`{name}` and `{other_name}` must have equally many rows, received the shapes "
            f"{tuple(tensor.shape)} and {tuple(other.shape)}: repeat the rows of one of them."
        )


def check_mask(name: str, mask: Any, tensor: Any) -> None:
    """Raises ValueError unless `mask` is None, or bool with the batch and steps of `tensor`."""
    if mask is None:
        return
    dtype = keras.backend.standardize_dtype(mask.dtype)
    if dtype != "bool":
        raise ValueError(
            f"`{name}` must be bool, True where a step is real, received {dtype}: "
            "compare it first, as in `mask != 0`."
        )
    steps = tuple(tensor.shape[:2])
    fits = len(mask.shape) == 2 and all(
        None in sizes or len(set(sizes)) == 1 for sizes in zip(mask.shape, steps, strict=True)
    )
    if not fits:
        raise ValueError(
            f"`{name}` must have the shape (batch, steps) of what it masks, {steps}, "
            f"received {tuple(mask.shape)}: one truth value for each step."
        )


def check_word_ids(ids: Any, parts: str) -> None:
    """Raises ValueError unless `ids` are integers `(batch, words, parts of a word)`."""
    dtype = keras.backend.standardize_dtype(ids.dtype)
    if len(ids.shape) != 3 or "int" not in dtype:
        raise ValueError(
            f"The inputs must be integer ids of shape (batch, words, {parts}), "
            f"received {dtype} of shape {tuple(ids.shape)}."
        )


def check_call(
    features: tuple[int, int],
    query: Any,
    value: Any,
    query_mask: Any = None,
    value_mask: Any = None,
) -> None:
    """Raises ValueError unless the arguments fit an attention that was built for `features`.

    `features` are the last dimensions of query and value.
    """
    check_tensor("query", query, features[0], STEPS)
    check_tensor("value", value, features[1], STEPS)
    check_same_batch("query", query, "value", value)
    check_mask("query_mask", query_mask, query)
    check_mask("value_mask", value_mask, value)
