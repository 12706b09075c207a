"""Conversion between JSON and arrays by the rules of TensorFlow Serving's REST API.

See https://www.tensorflow.org/tfx/serving/api_rest, "Predict API" and "JSON mapping".
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from keras_seq.serving.graph_file.signatures import Signature, TensorInfo
from keras_seq.serving.http.errors import RequestError
from keras_seq.serving.http.json_size import check_json_size
from keras_seq.serving.http.limits import Limits

# NumPy types by TensorFlow name. An array of text contains Python objects.
NUMPY_TYPES: dict[str, Any] = {
    "DT_STRING": object,
    "DT_BOOL": np.bool_,
    "DT_INT8": np.int8,
    "DT_UINT8": np.uint8,
    "DT_INT16": np.int16,
    "DT_INT32": np.int32,
    "DT_UINT32": np.uint32,
    "DT_INT64": np.int64,
    "DT_UINT64": np.uint64,
    "DT_FLOAT": np.float32,
    "DT_DOUBLE": np.float64,
}
# Maximum number of axes of an input whose rank is unknown.
_MAX_AXES = 8
# Maximum length of a value that an error message quotes. Values may be megabytes long.
_MAX_QUOTED = 80


def parse_body(body: bytes, limits: Limits) -> dict[str, Any]:
    """Returns the JSON object of a request, or raises RequestError."""
    if not body:
        raise RequestError("JSON Parse error: The document is empty")
    check_json_size(body, limits)
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RequestError(
            f"JSON Parse error: invalid UTF-8 at offset {error.start}; send other bytes "
            'as {"b64": "..."}'
        ) from None
    try:
        document = json.loads(text)
    except RecursionError:
        raise RequestError("JSON Parse error: nested too deep") from None
    except ValueError as error:
        raise RequestError(f"JSON Parse error: {error}") from None
    if not isinstance(document, dict):
        raise RequestError(f"JSON Value: {_quote(document)} Is not object")
    return document


def signature_name(document: Mapping[str, Any]) -> str:
    """Returns the name of the signature that a request calls."""
    name = document.get("signature_name", "")
    if not isinstance(name, str):
        raise RequestError("'signature_name' key must be a string value.")
    return name or "serving_default"


def read_inputs(
    document: Mapping[str, Any], signature: Signature
) -> tuple[dict[str, np.ndarray], bool]:
    """Returns the input arrays of a predict request, and True if the request is a list of rows.

    A request contains either `"instances"`, a list of rows, or `"inputs"`, a list for each input.
    """
    if ("instances" in document) == ("inputs" in document):
        raise RequestError(
            "Missing 'inputs' or 'instances' key"
            if "inputs" not in document
            else "Expecting only one of 'inputs' or 'instances' keys to exist"
        )
    if "inputs" in document:
        columns, by_row = _columns(document["inputs"], signature), False
    else:
        columns, by_row = _rows(document["instances"], signature), True
    arrays = {name: _array(columns[name], info, name) for name, info in signature.inputs.items()}
    if len({len(array) for array in arrays.values()}) > 1:
        raise RequestError("The inputs differ in their number of rows")
    return arrays, by_row


def _columns(inputs: Any, signature: Signature) -> dict[str, Any]:
    names = list(signature.inputs)
    if not isinstance(inputs, dict) or is_base64(inputs):
        if len(names) > 1:
            raise RequestError(f"'inputs' must be an object with {', '.join(names)}")
        return {names[0]: inputs}
    for name in names:
        if name not in inputs:
            raise RequestError(f"Missing named input: {name} in 'inputs' object.")
    for name in inputs:
        _check_name(name, signature)
    return inputs


def _rows(instances: Any, signature: Signature) -> dict[str, list[Any]]:
    names = list(signature.inputs)
    if not isinstance(instances, list):
        raise RequestError("Expecting 'instances' to be a list/array")
    if not instances:
        raise RequestError("No values in 'instances' array")
    if not _is_named(instances[0]):
        if len(names) > 1:
            raise RequestError(f"'instances' must be a list of objects with {', '.join(names)}")
        for number, row in enumerate(instances):
            if _is_named(row):
                raise RequestError(f"Expecting value/list but got object at item {number}")
        return {names[0]: instances}
    for number, row in enumerate(instances):
        if not _is_named(row):
            raise RequestError(f"Expecting object but got value/list at item {number}")
        for name in row:
            _check_name(name, signature, f"Failed to process element: {number}. ")
        for name in names:
            if name not in row:
                raise RequestError(f"Failed to process element: {number}. Missing input: {name}")
    return {name: [row[name] for row in instances] for name in names}


def _check_name(name: str, signature: Signature, where: str = "") -> None:
    if name not in signature.inputs:
        raise RequestError(
            f"{where}JSON object: does not have named input: {_quote(name)}; "
            f"the model's: {', '.join(signature.inputs)}"
        )


def is_base64(value: Any) -> bool:
    """Tests if a JSON value is `{"b64": "..."}`."""
    return isinstance(value, dict) and len(value) == 1 and isinstance(value.get("b64"), str)


def _is_named(value: Any) -> bool:
    return isinstance(value, dict) and not is_base64(value)


def _array(value: Any, info: TensorInfo, name: str) -> np.ndarray:
    """Converts nested lists to an array, and checks the type and shape that `info` requires."""
    shape: list[int] = []
    first = value
    max_axes = _MAX_AXES if info.shape is None else len(info.shape)
    while isinstance(first, list):
        if len(shape) == max_axes:
            raise RequestError(f"input {name}: lists nested deeper than {max_axes}")
        shape.append(len(first))
        if not first:
            break
        first = first[0]
    # An empty list does not show the sizes of inner axes, so use the sizes from the signature.
    if 0 in shape and info.shape is not None:
        shape += [size or 0 for size in info.shape[len(shape) :]]
    expected = info.shape if info.shape is not None else (None,) * len(shape)
    fits = len(shape) == len(expected) and all(
        limit in (None, size) for size, limit in zip(shape, expected, strict=False)
    )
    if not shape or not fits:
        sizes = ("?" if size is None else str(size) for size in expected)
        raise RequestError(
            f"input {name}: received the shape [{', '.join(map(str, shape))}], "
            f"expected [{', '.join(sizes)}]"
        )
    leaves = _leaves(value, shape, name)
    convert = _text_array if info.dtype == "DT_STRING" else _number_array
    return convert(leaves, info, name).reshape(shape)


def _leaves(value: list[Any], shape: list[int], name: str) -> list[Any]:
    """Flattens nested lists, or raises RequestError if the lists do not have the shape `shape`."""
    level = value
    for size in shape[1:]:
        for row in level:
            if not isinstance(row, list):
                raise RequestError(f"input {name}: received {_quote(row)}, expected a list")
            if len(row) != size:
                raise RequestError(
                    f"input {name}: Encountered list at unexpected size: {len(row)} "
                    f"expected size: {size}"
                )
        level = [item for row in level for item in row]
    return level


def _text_array(leaves: list[Any], info: TensorInfo, name: str) -> np.ndarray:
    array = np.empty(len(leaves), object)
    for i, leaf in enumerate(leaves):
        if isinstance(leaf, str):
            try:
                array[i] = leaf.encode()
            except UnicodeEncodeError:
                raise RequestError(
                    f"input {name}: {_quote(leaf)} has an unpaired surrogate"
                ) from None
        elif is_base64(leaf):
            array[i] = decode_base64(leaf["b64"], name)
        else:
            raise _type_error(leaf, info, name)
    return array


def decode_base64(text: str, name: str) -> bytes:
    """Decodes the text of an input in base64, or raises RequestError."""
    # Like TensorFlow Serving, accept base64 text whose padding ("=") is missing.
    bare = text.rstrip("=")
    try:
        return base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise RequestError(f"input {name}: Unable to base64 decode") from None


def _number_array(leaves: list[Any], info: TensorInfo, name: str) -> np.ndarray:
    dtype = np.dtype(NUMPY_TYPES[info.dtype])
    allowed = {bool} if dtype.kind == "b" else {int, float} if dtype.kind == "f" else {int}
    if not set(map(type, leaves)) <= allowed:
        wrong = next(leaf for leaf in leaves if type(leaf) not in allowed)
        raise _type_error(wrong, info, name)
    try:
        if dtype.kind != "f":
            return np.array(leaves, dtype)
        wide = np.array(leaves, np.float64)
        if np.any(np.isfinite(wide) & (np.abs(wide) > np.finfo(dtype).max)):
            raise OverflowError
        return wide.astype(dtype)
    except (OverflowError, ValueError):
        raise RequestError(f"input {name}: a number outside of the range of {dtype.name}") from None


def _type_error(value: Any, info: TensorInfo, name: str) -> RequestError:
    return RequestError(
        f"input {name}: JSON Value: {_quote(value)} is not of expected type: "
        f"{info.dtype.removeprefix('DT_').lower()}"
    )


def _quote(value: Any) -> str:
    """Formats a value as shortened JSON for an error message."""
    if isinstance(value, (list, dict)):
        return "Array" if isinstance(value, list) else "Object"
    text = json.dumps(value[:_MAX_QUOTED] if isinstance(value, str) else value)
    return text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}..."


def write_outputs(outputs: Mapping[str, np.ndarray], by_row: bool) -> bytes:
    """Returns the JSON body of a response: `predictions`, a list of rows, or `outputs` by name.

    `by_row` selects `predictions`. If there is only one output, its name is omitted.
    """
    columns = {name: _values(array, name) for name, array in outputs.items()}
    names = list(columns)
    content: Any
    if len(names) == 1:
        content = columns[names[0]]
    elif by_row:
        rows = zip(*columns.values(), strict=True)
        content = [dict(zip(names, row, strict=True)) for row in rows]
    else:
        content = columns
    key = "predictions" if by_row else "outputs"
    return json.dumps({key: content}, ensure_ascii=False).encode()


def _values(array: np.ndarray, name: str) -> Any:
    converted = np.empty(array.size, object)
    if array.dtype.kind == "f":
        converted[:] = list(map(_as_number(array.dtype.type), array.ravel()))
    elif array.dtype.kind not in "OSU":
        return array.tolist()
    elif name.endswith("_bytes"):
        converted[:] = [{"b64": base64.b64encode(value).decode()} for value in array.ravel()]
    else:
        converted[:] = [value.decode("utf-8", "replace") for value in array.ravel()]
    return converted.reshape(array.shape).tolist()


def _as_number(dtype: Any) -> Callable[[Any], float]:
    """Returns a function that rounds numbers as TensorFlow Serving does.

    TensorFlow Serving writes six digits if they are enough to restore the value, and all digits
    otherwise. Without rounding, Python would write 0.1 in float32 as 0.10000000149011612.
    """
    digits = 9 if dtype == np.float32 else 17

    def convert(value: Any) -> float:
        short = float(f"{value:g}")
        return short if dtype(short) == value else float(f"{value:.{digits}g}")

    return convert
