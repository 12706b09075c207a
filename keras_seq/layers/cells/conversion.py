"""What the conversions from and to Keras' own recurrent layers share."""

import keras

_TRAINING_AIDS = tuple(
    f"{weight}_{aid}"
    for aid in ("regularizer", "constraint")
    for weight in ("kernel", "recurrent", "bias")
)
_OPTIONS = (
    "use_bias",
    "kernel_initializer",
    "recurrent_initializer",
    "bias_initializer",
    "dropout",
    "recurrent_dropout",
    "seed",
)


def source_cell(source, layer_class, cell_class):
    """The Keras cell that is `source` or is run by it; ValueError for another layer."""
    # A subclass may compute something else.
    cell = source.cell if type(source) is layer_class else source
    if type(cell) is not cell_class:
        raise ValueError(
            f"`source` must be a keras.layers.{layer_class.__name__} or a "
            f"keras.layers.{cell_class.__name__}, received {source!r}."
        )
    return cell


def refuse_training_aids(cell):
    """ValueError if the cell has regularizers or constraints."""
    present = [name for name in _TRAINING_AIDS if getattr(cell, name) is not None]
    if present:
        raise ValueError(
            f"The cells of keras_seq have no regularizers and no constraints, {cell.name!r} has "
            f"{', '.join(present)}: set them to None before converting it."
        )


def copied(cell, *names):
    """The options that both cells have, by name, and the dtype policy."""
    options = {name: getattr(cell, name) for name in (*names, *_OPTIONS)}
    return {**options, "dtype": cell.dtype_policy}


def with_weights_of(theirs, cell):
    """`cell`, built with the weights of a Keras cell if that is built."""
    if theirs.built:
        cell.build((None, theirs.kernel.shape[0]))
        cell.built = True
        cell.set_weights([keras.ops.convert_to_numpy(weight) for weight in theirs.weights])
    return cell
