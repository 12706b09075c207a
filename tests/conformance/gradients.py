"""Gradients on each backend."""

import functools
from collections.abc import Callable
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


def loss(
    row: Row, outputs: list[Any], arrays: dict[str, np.ndarray], dtype: str = "float32"
) -> Any:
    """A weighted sum of the outputs at real steps. Padding is selected away, not multiplied by 0.

    What is no float, such as ids, has no gradient and is left out.
    """
    total = ops.zeros((), dtype)
    for index, output in enumerate(outputs):
        if "float" not in keras.backend.standardize_dtype(output.dtype):
            continue
        spec = letters(row.outputs[index])
        shape = tuple(output.shape)
        generator = np.random.default_rng([3, index])
        room = [SIZES[letter] + (10 if letter in "BST" else 0) for letter in spec]
        factors = generator.normal(size=room)[tuple(slice(size) for size in shape)]
        output = ops.cast(output, dtype)
        for position, letter in enumerate(spec):
            if letter in row.padded_axes:
                sizes = {"B": shape[0], letter: shape[position]}
                mask = step_mask(letter, sizes, lengths_in(row, arrays, letter))
                broad = [1] * len(shape)
                broad[0], broad[position] = mask.shape
                output = ops.where(mask.reshape(broad), output, ops.zeros((), dtype))
        total = total + ops.sum(ops.multiply(output, factors.astype(dtype)))
    return total


def lengths_in(row: Row, arrays: dict[str, np.ndarray], axis: str) -> dict[str, Any]:
    """Returns the lengths of the rows along an axis of the arguments."""
    for name, letter in row.masks.items():
        if letter == axis:
            return {axis: arrays[name].sum(axis=1)}
    for name, spec in row.inputs.items():
        if spec.endswith("ids") and spec[1] == axis:
            ids = arrays[name].reshape(*arrays[name].shape[:2], -1)
            return {axis: (ids != 0).any(axis=2).sum(axis=1)}
    return {axis: LENGTHS[axis]}


@functools.cache
def gradients_of(row: Row) -> dict[str, np.ndarray]:
    """Returns the gradients at the arguments of the row, computed once for all laws."""
    return gradients(row, built(row), make_arrays(row))


def gradients(row: Row, layer: Any, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the gradients of trainable weights by path and of float arguments by name."""
    _, gradients_at = functions_of(scalar(row, layer, arrays))
    return gradients_at(point(row, layer, arrays))


def point(row: Row, layer: Any, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the values to differentiate by: weights by path, float arguments by name."""
    weights = {
        weight.path: ops.convert_to_numpy(weight.value) for weight in layer.trainable_weights
    }
    return weights | {name: arrays[name] for name in row.float_inputs}


def scalar(
    row: Row, layer: Any, arrays: dict[str, np.ndarray], dtype: str = "float32"
) -> Callable[[dict[str, Any]], Any]:
    """Returns the loss as a function of values like those of `point`."""
    weights = layer.trainable_weights
    tensors = to_tensors(arrays)

    def compute(at: dict[str, Any]) -> Any:
        inputs = {name: at[name] for name in row.float_inputs}
        with keras.StatelessScope([(weight, at[weight.path]) for weight in weights]):
            outputs = keras.tree.flatten(row.call(layer, tensors | inputs))
            return loss(row, outputs, arrays, dtype)

    return compute


Point = dict[str, np.ndarray]


def functions_of(
    compute: Callable[[dict[str, Any]], Any],
) -> tuple[Callable[[Point], float], Callable[[Point], Point]]:
    """Returns the function of a loss, and the function of its gradients by the backend."""
    if keras.backend.backend() == "jax":
        import jax

        # Compile one program for both, because compiling takes far longer than running.
        both = jax.jit(jax.value_and_grad(compute))

        def value(tensors):
            return both(tensors)[0]

        def differentiate(tensors):
            return both(tensors)[1]
    elif keras.backend.backend() == "torch":
        value = compute

        def differentiate(tensors):
            import torch

            # Leaf tensors that record the operations on them.
            leaves = {name: tensor.detach().requires_grad_() for name, tensor in tensors.items()}
            total = compute(leaves)
            if not total.requires_grad:
                # torch raises an error if no leaf has a gradient.
                return {name: torch.zeros_like(leaf) for name, leaf in leaves.items()}
            found = torch.autograd.grad(
                total, list(leaves.values()), allow_unused=True, materialize_grads=True
            )
            return dict(zip(leaves, found, strict=True))
    else:
        value = compute

        def differentiate(tensors):
            import tensorflow as tf

            with tf.GradientTape() as tape:
                tape.watch(tensors)
                total = compute(tensors)
            found = tape.gradient(total, tensors, unconnected_gradients="zero")
            # TensorFlow returns the gradient of a lookup table as `IndexedSlices`.
            return {name: tf.convert_to_tensor(found[name]) for name in found}

    def value_at(at: Point) -> float:
        return float(value(to_tensors(at)))

    def gradients_at(at: Point) -> Point:
        found = differentiate(to_tensors(at))
        return {name: np.asarray(ops.convert_to_numpy(found[name])) for name in found}

    return value_at, gradients_at
