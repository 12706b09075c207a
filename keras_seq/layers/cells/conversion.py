"""Conversion from and to the recurrent layers of Keras."""

from typing import Any

import keras

_OPTIONS = (
    "activation",
    "recurrent_activation",
    "unit_forget_bias",
    "use_bias",
    "kernel_initializer",
    "recurrent_initializer",
    "bias_initializer",
    "kernel_regularizer",
    "recurrent_regularizer",
    "bias_regularizer",
    "dropout",
    "recurrent_dropout",
    "seed",
)


def keras_cell_of(source: Any, layer_class: Any, cell_class: Any) -> Any:
    """Returns the Keras cell that is `source` or that `source` runs.

    Raises ValueError if `source` is another layer, or has constraints.
    """
    # Matches the class exactly, because a subclass may compute something else.
    cell = source.cell if type(source) is layer_class else source
    if type(cell) is not cell_class:
        raise ValueError(
            f"`source` must be a keras.layers.{layer_class.__name__} or a "
            f"keras.layers.{cell_class.__name__}, received {source!r}."
        )
    names = ("kernel_constraint", "recurrent_constraint", "bias_constraint")
    unsupported = [name for name in names if getattr(cell, name) is not None]
    if unsupported:
        raise ValueError(
            f"The cells of keras_seq have no constraints, {cell.name!r} has "
            f"{', '.join(unsupported)}: set them to None before converting it."
        )
    return cell


def shared_options(cell: Any) -> dict[str, Any]:
    """Returns the constructor arguments that a cell has in common with its Keras counterpart."""
    options = {name: getattr(cell, name) for name in _OPTIONS if hasattr(cell, name)}
    return {**options, "dtype": cell.dtype_policy}


def weight_arrays(cell: Any) -> list[Any]:
    """Returns copies of a cell's weights as numpy arrays."""
    return [keras.ops.convert_to_numpy(weight).copy() for weight in cell.weights]
