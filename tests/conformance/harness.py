"""Code that the laws share: rows, their arrays and weights, and functions that run them.

A row names the axes of its arguments by letters, so that a law can lengthen,
mask or leave unknown any of them without knowing the layer:

    B batch, S source steps, T target steps are free; all other letters are fixed sizes.
"""

import contextlib
import functools
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy as np

SIZES = {"B": 3, "S": 6, "T": 5, "D": 8, "E": 6, "F": 16, "H": 2, "U": 8, "V": 20}
FREE = "BST"
# Lengths of the three rows: without padding, with padding, and a single step.
LENGTHS = {"S": (6, 4, 1), "T": (5, 3, 1)}
ROOM = 4
FIRST_TOKEN = 4


@dataclass(frozen=True, eq=False)
class Row:
    """How to make and call one public layer or model.

    Args:
        name: The public name; after a dash what the variant is.
        make: Returns a new instance.
        inputs: Argument name to axis letters, `"BTD"`; ids are `"BT ids"`, 0 in padded steps.
        outputs: Axis letters of each output, in the order of the flattened result.
        masks: Argument name of each mask to the letter of its axis.
        call: Runs the layer on a dict of arguments; by default with keywords.
        step: Computes the first output step by step from the same arguments.
        float32_outputs: Positions of the outputs that are no less than float32 under every
            dtype policy.
        tolerance: Largest absolute difference that counts as equal in float32.
        masked_by_lengths: Whether masks become lengths in `call`, so that none comes with a tensor.
    """

    name: str
    make: Callable[[], Any]
    inputs: Mapping[str, str]
    outputs: Sequence[str]
    masks: Mapping[str, str] = field(default_factory=dict)
    call: Callable[[Any, dict[str, Any]], Any] = lambda layer, arrays: layer(**arrays)
    step: Callable[[Any, dict[str, Any]], Any] | None = None
    float32_outputs: Sequence[int] = ()
    tolerance: float = 1e-5
    masked_by_lengths: bool = False

    @property
    def public_name(self) -> str:
        return self.name.split("-")[0]

    @property
    def padded_axes(self) -> set[str]:
        """Returns the axes that have padding."""
        ids = {spec[1] for spec in self.inputs.values() if spec.endswith("ids")}
        return set(self.masks.values()) | ids

    @property
    def float_inputs(self) -> list[str]:
        return [name for name, spec in self.inputs.items() if not spec.endswith("ids")]


def letters(spec: str) -> str:
    return spec.split()[0]


def shape_of(spec: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(sizes[letter] for letter in letters(spec))


def step_mask(axis: str, sizes: Mapping[str, int], lengths: Mapping[str, Sequence[int]]):
    """Returns a bool `(B, steps)`, True where a step is real."""
    rows = np.resize(np.asarray(lengths[axis]), sizes["B"])
    return np.arange(sizes[axis])[None] < rows[:, None]


def make_arrays(
    row: Row,
    *,
    longer: Mapping[str, int] | None = None,
    lengths: Mapping[str, Sequence[int]] | None = None,
    seed: int = 0,
) -> dict[str, np.ndarray]:
    """Returns the arguments of a row. Axes of more steps have the same content and more padding."""
    lengths = LENGTHS | dict(lengths or {})
    sizes = {letter: size + (longer or {}).get(letter, 0) for letter, size in SIZES.items()}
    arrays: dict[str, np.ndarray] = {}
    for name, spec in row.inputs.items():
        room = {letter: SIZES[letter] + (ROOM if letter in FREE else 0) for letter in SIZES}
        generator = np.random.default_rng([seed, zlib.crc32(name.encode())])
        cut = tuple(slice(size) for size in shape_of(spec, sizes))
        if spec.endswith("ids"):
            ids = generator.integers(FIRST_TOKEN, SIZES["V"], shape_of(spec, room))[cut]
            mask = step_mask(spec[1], sizes, lengths)
            mask = mask.reshape(*mask.shape, *[1] * (ids.ndim - 2))
            arrays[name] = np.where(mask, ids, 0).astype("int32")
        else:
            arrays[name] = generator.normal(size=shape_of(spec, room))[cut].astype("float32")
    for name, axis in row.masks.items():
        arrays[name] = step_mask(axis, sizes, lengths)
    return arrays


@contextlib.contextmanager
def policy_of(name: str) -> Iterator[keras.DTypePolicy]:
    """Sets the global dtype policy within a `with` block."""
    before = keras.config.dtype_policy()
    keras.config.set_dtype_policy(name)
    try:
        with doubles_in_jax() if name == "float64" else contextlib.nullcontext():
            yield keras.config.dtype_policy()
    finally:
        keras.config.set_dtype_policy(before)


@contextlib.contextmanager
def doubles_in_jax() -> Iterator[None]:
    """Allows float64 on JAX, which otherwise converts it to float32."""
    if keras.backend.backend() != "jax":
        yield
        return
    import jax

    jax.config.update("jax_enable_x64", True)
    try:
        yield
    finally:
        jax.config.update("jax_enable_x64", False)


def build(row: Row) -> Any:
    """Returns a new instance with reproducible names and weights."""
    policy = keras.config.dtype_policy()
    keras.utils.clear_session(free_memory=False)
    keras.config.set_dtype_policy(policy)
    layer = row.make()
    if keras.backend.backend() == "jax":
        # A call on arrays would compile a program for each operation.
        functional(row, layer)
    else:
        row.call(layer, to_tensors(make_arrays(row)))
    fill(layer)
    return layer


@functools.cache
def built(row: Row) -> Any:
    """Returns an instance as from `build`, shared by all laws that only call the layer."""
    return build(row)


def fill(layer: Any) -> None:
    """Sets each weight from a generator seeded by its index, with equal values on all backends."""
    for index, weight in enumerate(layer.weights):
        if "float" in keras.backend.standardize_dtype(weight.dtype):
            generator = np.random.default_rng([7, index])
            fan_in = max(1, int(np.prod(weight.shape[:-1])))
            weight.assign(generator.normal(size=weight.shape) * fan_in**-0.5)


def to_tensors(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    return {name: keras.ops.convert_to_tensor(array) for name, array in arrays.items()}


def run(row: Row, layer: Any, arrays: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Returns the outputs as a flat list of arrays. JAX compiles the call as one program."""
    if keras.backend.backend() == "jax":
        return to_arrays(program(row.call, layer)(to_tensors(arrays)))
    return run_eagerly(row, layer, arrays)


def run_eagerly(row: Row, layer: Any, arrays: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """Returns the outputs as `run` does, without compilation."""
    return to_arrays(row.call(layer, to_tensors(arrays)))


def to_arrays(outputs: Any) -> list[np.ndarray]:
    return [keras.ops.convert_to_numpy(output) for output in keras.tree.flatten(outputs)]


@functools.cache
def program(call: Callable[[Any, dict[str, Any]], Any], layer: Any) -> Callable[..., Any]:
    """Returns a call of the layer as one JAX function, compiled for each shape of its arguments."""
    import jax

    @jax.jit
    def compute(values: list[Any], tensors: dict[str, Any]) -> Any:
        with keras.StatelessScope(list(zip(layer.variables, values, strict=True))):
            return call(layer, tensors)

    return lambda tensors: compute([variable.value for variable in layer.variables], tensors)


@functools.cache
def outputs_of(row: Row) -> list[np.ndarray]:
    """Returns the outputs for the arguments of the row, computed once for all laws."""
    return run(row, built(row), make_arrays(row))


def symbolic_inputs(row: Row) -> dict[str, Any]:
    """Returns Keras inputs for the arguments of the row, with unknown batch and time."""
    arrays = make_arrays(row)
    inputs = {}
    for name, array in arrays.items():
        spec = row.inputs.get(name) or f"B{row.masks[name]}"
        shape = tuple(None if letter in FREE else SIZES[letter] for letter in letters(spec))
        inputs[name] = keras.Input(batch_shape=shape, dtype=str(array.dtype), name=name)
    return inputs


def functional(row: Row, layer: Any) -> keras.Model:
    """Returns the layer as a functional model with unknown batch and time."""
    inputs = symbolic_inputs(row)
    return keras.Model(inputs, keras.tree.flatten(row.call(layer, inputs)))


def real_part(row: Row, index: int, output: np.ndarray, **changes: Any) -> np.ndarray:
    """Returns output `index` at the real steps of the original axes, and 0 at all others."""
    spec = letters(row.outputs[index])
    lengths = LENGTHS | dict(changes.get("lengths") or {})
    for position, letter in enumerate(spec):
        if letter in "ST":
            output = np.take(output, np.arange(SIZES[letter]), axis=position)
    for position, letter in enumerate(spec):
        if letter in row.padded_axes:
            sizes = SIZES | {"B": output.shape[0]}
            mask = step_mask(letter, sizes, lengths)
            shape = [1] * output.ndim
            shape[0], shape[position] = mask.shape
            output = np.where(mask.reshape(shape), output, 0)
    return output


def assert_same(row: Row, got: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> None:
    """Asserts that outputs are finite and equal at each real step."""
    assert len(got) == len(expected) == len(row.outputs)
    for index, (left, right) in enumerate(zip(got, expected, strict=True)):
        left, right = real_part(row, index, left), real_part(row, index, right)
        assert np.isfinite(right).all(), f"output {index} is not finite"
        np.testing.assert_allclose(left, right, rtol=0, atol=row.tolerance)
