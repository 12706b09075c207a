"""A config survives JSON, and holds every constructor argument."""

import dataclasses
import inspect
import json

import keras
from conformance.harness import built, functional, make_arrays, run
from conformance.table import every_row, first_rows


def own_config(layer):
    """Returns the config without the shapes that Keras adds for built inner layers."""

    def strip(value):
        if isinstance(value, dict):
            return {key: strip(inner) for key, inner in value.items() if key != "build_config"}
        return [strip(inner) for inner in value] if isinstance(value, list) else value

    return strip(layer.get_config())


def with_cells(layer):
    """Returns the layer and its cells."""
    yield layer
    for cell in [getattr(layer, "cell", None), *getattr(layer, "cells", [])]:
        if cell is not None:
            yield from with_cells(cell)


@first_rows
def test_config_survives_json(row):
    layer = built(row)
    restored = type(layer).from_config(json.loads(json.dumps(layer.get_config())))
    assert own_config(restored) == own_config(layer)


@every_row
def test_config_holds_every_constructor_argument(row):
    for layer in with_cells(row.make()):
        for base in type(layer).__mro__:
            ours = base.__module__.startswith("keras_seq") and "__init__" in vars(base)
            inherits_all = base.__init__ is keras.Layer.__init__
            if inherits_all or base is not type(layer) and not ours:
                continue
            parameters = inspect.signature(base.__init__).parameters.values()
            named = {item.name for item in parameters if item.kind is not item.VAR_KEYWORD}
            assert named - {"self"} <= set(layer.get_config())


@first_rows
def test_keras_deserializes_by_registered_name(row):
    layer = built(row)
    serialized = json.loads(json.dumps(keras.saving.serialize_keras_object(layer)))
    assert serialized["registered_name"] == f"keras_seq>{type(layer).__name__}"
    restored = keras.saving.deserialize_keras_object(serialized)
    assert type(restored) is type(layer)
    assert own_config(restored) == own_config(layer)


@every_row
def test_a_keras_file_gives_equal_outputs(row, tmp_path):
    layer = built(row)
    arrays = make_arrays(row)
    model = layer if isinstance(layer, keras.Model) else functional(row, layer)
    model.save(tmp_path / "model.keras")
    restored = keras.saving.load_model(tmp_path / "model.keras")
    called = row
    if model is not layer:
        called = dataclasses.replace(row, call=lambda model, tensors: model(tensors))
    outputs = run(called, restored, arrays)
    for got, expected in zip(outputs, run(row, layer, arrays), strict=True):
        assert (got == expected).all()
