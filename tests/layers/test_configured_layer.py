"""Configs that follow from constructors."""

import json

import keras

from keras_seq import layers


class Scaled(layers.BahdanauAttention):
    """A user's layer with one more argument and a `get_config` as documented by Keras."""

    def __init__(self, factor, **kwargs):
        super().__init__(**kwargs)
        self.factor = factor

    def get_config(self):
        return {**super().get_config(), "factor": self.factor}


def restored(layer):
    return type(layer).from_config(json.loads(json.dumps(layer.get_config())))


def test_config_holds_the_dtype_policy_and_the_arguments_of_all_bases():
    layer = layers.LuongMonotonicAttention(
        scale=True, mode="hard", dtype=keras.DTypePolicy("mixed_bfloat16"), name="attention"
    )
    config = layer.get_config()
    assert (config["scale"], config["mode"], config["sigmoid_noise"]) == (True, "hard", 0.0)
    assert restored(layer).get_config() == config
    assert restored(layer).dtype_policy.name == "mixed_bfloat16"


def test_config_of_a_layer_argument_has_no_build_shapes():
    attention = layers.MultiHeadSelfAttention(2, position=layers.RelativePosition(3))
    attention.build((None, None, 8))
    assert "build_config" not in attention.get_config()["position"]
    again = restored(attention)
    assert again.position.max_distance == 3
    assert not again.position.built


def test_subclass_outside_the_package_adds_its_own_arguments():
    layer = Scaled(2.0, units=3, dropout=0.1)
    config = layer.get_config()
    assert (config["factor"], config["units"], config["dropout"]) == (2.0, 3, 0.1)
    again = restored(layer)
    assert (again.factor, again.units) == (2.0, 3)
