"""Training on several CPU cores matches training on one core up to rounding."""

import ctypes
import random
import sys

import keras
import numpy as np
import pytest
import safetensors.numpy
from cluster.shared_training import all_end, arguments
from faults.training_process import Training
from label_runs import label_settings
from training.toy import killed_after, quiet_train, toy_settings
from weekly import weekly_but

from keras_seq.cluster import Cluster, start_cluster
from keras_seq.cluster.tensorflow_cores import TensorFlowCores
from keras_seq.operating_system import usable_cores
from keras_seq.process.devices import Devices

pytestmark = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="JAX has a program for the whole batch"
)
STEPS = 4
DROPOUTS = ("model__dropout", "model__attention_dropout", "model__activation_dropout")
NO_DROPOUT = dict.fromkeys(DROPOUTS, 0.0)
# The gradient of key biases is only rounding noise, which Adam amplifies to full-size steps.
NO_GRADIENT = ("qkv_bias", "key_value_bias")


@pytest.fixture
def cores(monkeypatch):
    """Sets how many cores share a batch, as the commands do before TensorFlow starts."""

    def share(count):
        monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "1")
        monkeypatch.setenv("TF_NUM_INTEROP_THREADS", str(count))
        kind = TensorFlowCores if count > 1 else Cluster
        assert type(start_cluster(Devices(), print)) is kind

    return share


def common(**overrides):
    return {
        "training__max_steps": STEPS,
        "training__validate_every": STEPS,
        "training__checkpoint_every": 2,
        # Clipping would normalize the gradients and hide errors in their scale.
        "training__clip_norm": 0,
    } | overrides


def guided(folder):
    """Returns settings with alignments and uneven sources, so that shards differ in length."""
    generator = random.Random(4)
    sources = [[generator.choice("abcdefgh") for _ in range(1 + k % 9)] for k in range(120)]
    (folder / "uneven.tsv").write_text(
        "".join(f"{' '.join(letters)}\t{' '.join(letters[:4])}\n" for letters in sources)
    )
    (folder / "links").write_text(
        "".join(" ".join(f"{i}-{i}" for i in range(len(letters[:4]))) + "\n" for letters in sources)
    )
    files = {"data__pairs": folder / "uneven.tsv", "data__alignments": folder / "links"}
    named = {key: str(path) for key, path in files.items()}
    # Several batches per update; the last batch of an epoch is the smallest.
    methods = {"training__guided_alignment": 1.0, "training__effective_batch_tokens": 900}
    return toy_settings(folder, **common(**NO_DROPOUT, **named, **methods))


TASKS = {
    "guided": guided,
    # One pair per batch, which two cores cannot split.
    "one row": lambda folder: toy_settings(
        folder, **common(**NO_DROPOUT, training__batch_tokens=6)
    ),
    "classifier": lambda folder: label_settings(
        folder, "classify", **common(model__dropout=0.0, data__class_weights="balanced")
    ),
}


def saved(run, part):
    path = run / "checkpoints" / f"step-{STEPS:08}" / f"{part}.safetensors"
    return safetensors.numpy.load_file(path)


@pytest.mark.slow
@pytest.mark.parametrize("task", weekly_but(TASKS, "classifier"))
def test_training_on_two_cores_matches_one_core(task, tmp_path, cores):
    settings = TASKS[task](tmp_path)
    for count in (1, 2):
        cores(count)
        quiet_train(settings, tmp_path / str(count))
    one, two = (saved(tmp_path / str(count), "training") for count in (1, 2))
    assert one.keys() == two.keys()
    moments = 0
    for name, array in one.items():
        if name.endswith("_momentum") and not any(part in name for part in NO_GRADIENT):
            largest = np.abs(array).max()
            moments += largest > 0
            np.testing.assert_allclose(
                two[name], array, rtol=0, atol=max(2e-3 * largest, 1e-9), err_msg=name
            )
    assert moments >= 3


@pytest.mark.slow
@pytest.mark.weekly
def test_resumed_training_on_two_cores_is_bit_identical(tmp_path, cores):
    """Each thread samples the same numbers, in whatever order the threads finish."""
    cores(2)
    settings = toy_settings(tmp_path, **common(**dict.fromkeys(DROPOUTS, 0.2)))
    quiet_train(settings, tmp_path / "straight")
    copied = killed_after(2, tmp_path / "straight", tmp_path / "copy")
    _, said = quiet_train(settings, copied)
    assert "resuming after step 2\n" in said
    for part in ("weights", "training"):
        straight, again = saved(tmp_path / "straight", part), saved(copied, part)
        assert straight.keys() == again.keys()
        for name, array in straight.items():
            np.testing.assert_array_equal(again[name], array, err_msg=name)


def test_each_core_samples_its_own_dropout_mask():
    """Two cores use different masks for the same row; the mask of one core is reproducible."""
    inputs = keras.Input((64,), dtype="float32")
    layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
    model = keras.Model(inputs, layer(keras.layers.Dropout(0.5, seed=1)(inputs)))
    model.compile("sgd", keras.losses.MeanSquaredError(reduction="sum"))
    model.optimizer.build(model.trainable_variables)
    batch = np.ones((2, 64), np.float32), np.zeros((2, 1), np.float32), np.ones(2, np.float32)
    cluster = TensorFlowCores(2)
    with cluster._updates(model, batch):
        pass
    gradients, _ = cluster._made[1]
    row = tuple(array[:1] for array in batch)
    halves = [gradients(row, number)[0][0].numpy() for number in (0, 1)]
    assert (halves[0] != halves[1]).any()
    np.testing.assert_array_equal(halves[0], gradients(row, 0)[0][0].numpy())


def test_parts_of_an_update_are_computed_with_the_mask_of_their_core():
    """An update on two equal rows applies the sum of the gradients under the two masks."""
    inputs = keras.Input((64,), dtype="float32")
    layer = keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")
    model = keras.Model(inputs, layer(keras.layers.Dropout(0.5, seed=1)(inputs)))
    model.compile(keras.optimizers.SGD(0.01), keras.losses.MeanSquaredError(reduction="sum"))
    model.optimizer.build(model.trainable_variables)
    batch = np.ones((2, 64), np.float32), np.zeros((2, 1), np.float32), np.ones(2, np.float32)
    row = tuple(array[:1] for array in batch)

    cluster = TensorFlowCores(2)
    with cluster._updates(model, batch) as update:
        gradients, _ = cluster._made[1]
        first, second = (gradients(row, number)[0][0].numpy() for number in (0, 1))
        before = keras.ops.convert_to_numpy(layer.kernel)
        update(keras.tree.map_structure(keras.ops.convert_to_tensor, batch))
    moved = before - keras.ops.convert_to_numpy(layer.kernel)
    np.testing.assert_allclose(moved, 0.01 * (first + second), rtol=1e-5)
    assert (first != second).any()


SAYS_PARTS = """
import keras_seq.process.threads as threads
def saying(count):
    def said():
        print("parts", count(), file=sys.stderr, flush=True)
        return count()
    return said
threads.num_training_threads = saying(threads.num_training_threads)
"""


@pytest.mark.process
def test_train_command_gives_each_core_a_part_of_the_batch(folder):
    options = {"training__max_steps": 1, "training__validate_every": 1}
    line = arguments(folder, "command", "", **options)
    (said,) = all_end([Training(line, SAYS_PARTS)])
    assert f"parts {usable_cores() if usable_cores() <= 8 else 1}\n" in said


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's")
def test_malloc_is_set_to_keep_freed_memory_on_glibc(monkeypatch):
    """In malloc.h, M_MMAP_MAX is -4 and M_TRIM_THRESHOLD is -1; mallopt returns 1 on success."""
    real = ctypes.CDLL(None).mallopt
    answers = []

    class Library:
        @staticmethod
        def mallopt(option, value):
            answers.append((option, value, real(option, value)))

    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library)
    TensorFlowCores(2)
    assert answers == [(-4, 0, 1), (-1, 2**31 - 1, 1)]
