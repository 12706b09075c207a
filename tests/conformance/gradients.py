"""Gradients on either backend."""

import functools
from typing import Any

import keras
import numpy as np
from conformance.harness import (
    LENGTHS,
    SIZES,
    Row,
    built,
    letters,
    make_arrays,
    step_mask,
    to_tensors,
)
from keras import ops


def loss(row: Row, outputs: list[Any], arrays: dict[str, np.ndarray]) -> Any:
    """A weighted sum of the outputs at real steps: padding is chosen away, not multiplied by 0."""
    total = 0.0
    for index, output in enumerate(outputs):
        spec = letters(row.outputs[index])
        shape = tuple(output.shape)
        generator = np.random.default_rng([3, index])
        room = [SIZES[letter] + (10 if letter in "BST" else 0) for letter in spec]
        factors = generator.normal(size=room)[tuple(slice(size) for size in shape)]
        output = ops.cast(output, "float32")
        for position, letter in enumerate(spec):
            if letter in row.padded_axes:
                sizes = {"B": shape[0], letter: shape[position]}
                mask = step_mask(letter, sizes, lengths_in(row, arrays, letter))
                broad = [1] * len(shape)
                broad[0], broad[position] = mask.shape
                output = ops.where(mask.reshape(broad), output, 0.0)
        total = total + ops.sum(output * factors.astype("float32"))
    return total


def lengths_in(row: Row, arrays: dict[str, np.ndarray], axis: str) -> dict[str, Any]:
    """Lengths of the rows along an axis, as the arguments have them."""
    for name, letter in row.masks.items():
        if letter == axis:
            return {axis: arrays[name].sum(axis=1)}
    for name, spec in row.inputs.items():
        if spec.endswith("ids") and spec[1] == axis:
            return {axis: (arrays[name] != 0).sum(axis=1)}
    return {axis: LENGTHS[axis]}


@functools.cache
def gradients_of(row: Row) -> dict[str, np.ndarray]:
    """The gradients for the row's own arguments, computed once for all laws."""
    return gradients(row, built(row), make_arrays(row))


def gradients(row: Row, layer: Any, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Of every trainable weight, by path, and of every float argument, by name."""
    weights = layer.trainable_weights
    tensors = to_tensors(arrays)
    watched = {name: tensors[name] for name in row.float_inputs}

    def compute(values: list[Any], inputs: dict[str, Any]) -> Any:
        with keras.StatelessScope(list(zip(weights, values, strict=True))):
            outputs = keras.tree.flatten(row.call(layer, tensors | inputs))
            return loss(row, outputs, arrays)

    values = [weight.value for weight in weights]
    if keras.backend.backend() == "jax":
        import jax

        # Compiled as one: a program for each operation takes longer to make.
        by_weight, by_input = jax.jit(jax.grad(compute, argnums=(0, 1)))(values, watched)
    else:
        import tensorflow as tf

        values = [tf.convert_to_tensor(value) for value in values]
        with tf.GradientTape() as tape:
            tape.watch([values, watched])
            total = compute(values, watched)
        by_weight, by_input = tape.gradient(total, (values, watched))
        # TensorFlow gives the gradient of a looked-up table in pieces.
        by_weight = [tf.convert_to_tensor(gradient) for gradient in by_weight]
    named = {weight.path: value for weight, value in zip(weights, by_weight, strict=True)}
    return {
        name: np.asarray(ops.convert_to_numpy(gradient))
        for name, gradient in (named | by_input).items()
    }
