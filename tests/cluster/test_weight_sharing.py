"""Sharding of weights and optimizer moments across devices.

test_shared_trainings.py compares the training itself with that on one device.
"""

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.process

# Prints the shape of each variable and of its shard on a device, before and after an update.
PARTS = """
import json
import numpy as np
from keras_seq import Devices, backend, load_settings
from keras_seq.cluster import start_cluster
from keras_seq.run.models import build_model
from keras_seq.training.feed import make_fit_batch
from keras_seq.training.optimizer import compile_model
settings = load_settings(overrides={
    "model.num_encoder_layers": "1", "model.num_decoder_layers": "1", "model.units": "16",
    "model.feedforward_units": "32", "model.num_heads": "2"})
cluster = start_cluster(Devices("cpu", count=4, model_devices=2), lambda line: None)
ids = np.arange(24, dtype="int32").reshape(4, 6)
batch = make_fit_batch(
    {"source": ids, "target_input": ids, "target_output": ids}, np.ones(4, "float32") / 24)
with cluster.scope():
    model = build_model(settings, 302, 302)
    compile_model(model, settings)
    def parts():
        variables = model.weights + model.optimizer.variables
        return {v.path: (v.shape, v.value.sharding.shard_shape(v.value.shape)) for v in variables}
    made = parts()
    before = backend.to_numpy(model.weights[0])
    cluster.fit(model, lambda: (part for part in [batch]), batch, steps_per_epoch=1)
    assert not np.array_equal(before, backend.to_numpy(model.weights[0]))
    print(json.dumps([made, parts()]))
"""
# Prints the number of parameters of the largest preset, and how many of them are sharded.
LAYOUTS = """
import math
import keras
import numpy as np
from keras_seq import Devices, load_settings
from keras_seq.cluster import configure
from keras_seq.cluster.jax_devices import WeightSharing
from keras_seq.run.models import build_model
configure(Devices("cpu", count=4))
names = np.array([f"cpu:{number}" for number in range(4)])
mesh = keras.distribution.DeviceMesh((1, 4), ["batch", "model"], names)
sharing = WeightSharing(layout_map=keras.distribution.LayoutMap(mesh))
# They have paths and shapes there, and no values.
with keras.StatelessScope(initialize_variables=False):
    model = build_model(load_settings(preset="transformer-big"), 32000, 32000)
sizes = [(math.prod(weight.shape), sharing.get_variable_layout(weight)) for weight in model.weights]
print(sum(size for size, _ in sizes), sum(size for size, cut in sizes if any(cut.axes)))
"""


def printed(script):
    """Runs a script on JAX and returns the last line that the script prints."""
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=os.environ | {"KERAS_BACKEND": "jax"},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip().split("\n")[-1]


def test_weights_and_optimizer_moments_are_sharded_across_devices():
    """On a mesh of 2 x 2 devices, each device holds half of every sharded variable."""
    for parts in json.loads(printed(PARTS)):
        weights = {
            # Sharded along the vocabulary.
            "embedding/embeddings": ([302, 16], [151, 16]),
            # The first kernel of a pair is sharded along its output, the second along its input.
            "encoder_block_0/attention/qkv_kernel": ([16, 48], [16, 24]),
            "encoder_block_0/attention/output_kernel": ([16, 16], [8, 16]),
            "decoder_block_0/cross_attention/query_kernel": ([16, 16], [16, 8]),
            "decoder_block_0/cross_attention/key_value_kernel": ([16, 32], [16, 16]),
            "decoder_block_0/feed_forward/hidden/kernel": ([16, 32], [16, 16]),
            "decoder_block_0/feed_forward/hidden/bias": ([32], [16]),
            "decoder_block_0/feed_forward/projection/kernel": ([32, 16], [16, 16]),
            # Small variables are replicated.
            "decoder_block_0/feed_forward/projection/bias": ([16], [16]),
            "decoder_norm/gamma": ([16], [16]),
        }
        for path, shapes in weights.items():
            assert tuple(parts[path]) == shapes, path
            slots = [name for name in parts if name.startswith(f"adam/{path.replace('/', '_')}_")]
            # Two moments and a moving average.
            assert len(slots) == 3, path
            for name in slots:
                assert tuple(parts[name]) == shapes, name


@pytest.mark.weekly
def test_most_parameters_of_the_largest_preset_are_sharded():
    parameters, cut = map(int, printed(LAYOUTS).split())
    assert parameters > 2e8
    assert cut > 0.95 * parameters
