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
    "dropout",
    "recurrent_dropout",
    "seed",
)


def keras_cell_of(source: Any, layer_class: Any, cell_class: Any) -> Any:
    """Returns the Keras cell that is `source` or that `source` runs.

    Raises ValueError if `source` is another layer, or has regularizers or constraints.
    """
    # Matches the class exactly, because a subclass may compute something else.
    cell = source.cell if type(source) is layer_class else source
    if type(cell) is not cell_class:
        raise ValueError(
            f"`source` must be a keras.layers.{layer_class.__name__} or a "
            f"keras.layers.{cell_class.__name__}, received {source!r}."
        )
    unsupported = [
        name
        for kind in ("regularizer", "constraint")
        for name in (f"kernel_{kind}", f"recurrent_{kind}", f"bias_{kind}")
        if getattr(cell, name) is not None
    ]
    if unsupported:
        raise ValueError(
            f"The cells of keras_seq have no regularizers and no constraints, {cell.name!r} has "
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
