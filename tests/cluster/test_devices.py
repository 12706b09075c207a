"""Impossible device options raise a clear error before any file is read."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from weekly import weekly

from keras_seq import Devices, InputError, backend, load_settings
from keras_seq.process.devices import check_backend, count_used
from keras_seq.run.models import build_model
from keras_seq.training.optimizer import compile_model
from keras_seq.training.precision import Device, faster_precision

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": "gpus"}, "cpu, gpu or tpu"),
        ({"count": 0}, "1 or more"),
        ({"kind": "cpu", "count": 65}, "at most 64"),
        ({"model_devices": 0}, "1 or more"),
        ({"count": 3, "model_devices": 2}, "does not divide"),
        ({"hosts": ("here",)}, "NAME:PORT"),
        ({"hosts": ("here:99999",)}, "NAME:PORT"),
        ({"hosts": ("a:1", "a:1")}, "twice"),
        ({"hosts": ("a:1", "b:1"), "host_index": 2}, "from 0 to 1"),
        ({"host_index": 1}, "not given"),
    ],
)
def test_impossible_device_options_raise_input_error(options, words):
    with pytest.raises(InputError, match=words):
        Devices(**options)


def test_single_host_does_not_form_a_cluster():
    assert not Devices(hosts=("a:1",)).together
    assert Devices(hosts=("a:1", "b:1"), host_index=1).together


@pytest.mark.parametrize(
    ("options", "there", "kind", "used"),
    [
        ({}, 8, "gpu", 8),
        ({}, 1, "cpu", 1),
        # A CPU counts as several devices only if the options say so.
        ({}, 4, "cpu", 1),
        ({"count": 3}, 8, "gpu", 3),
        ({"model_devices": 4}, 8, "tpu", 8),
        ({"model_devices": 2}, 2, "cpu", 2),
    ],
)
def test_count_used_defaults_to_all_accelerators_or_one_cpu(options, there, kind, used):
    assert count_used(Devices(**options), there, kind) == used


@pytest.mark.parametrize(
    ("options", "there", "kind", "words"),
    [
        ({"count": 3}, 2, "gpu", r"^--devices: received 3, this host has 2 \(gpu\)$"),
        ({"count": 2}, 1, "cpu", "^--devices: received 2, .* with --device cpu and --devices$"),
        ({"model_devices": 2}, 1, "cpu", r"^--model-devices: received 2, this host has 1 \(cpu\)"),
        ({"model_devices": 3}, 8, "gpu", "^--model-devices: received 3, .* the 8 devices"),
    ],
)
def test_too_many_or_indivisible_devices_raise_input_error(options, there, kind, words):
    with pytest.raises(InputError, match=words):
        count_used(Devices(**options), there, kind)


def test_check_backend_accepts_three_backends_but_not_openvino():
    for name in (None, "", "tensorflow", "jax", "torch"):
        check_backend(name)
    with pytest.raises(InputError, match="KERAS_BACKEND=openvino: training and decoding run on"):
        check_backend("openvino")


HAS_NO_GPU = pytest.mark.skipif(backend.device()[0] != "cpu", reason="presumes a host without GPU")


@pytest.mark.process
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--backend tensorflow --device tpu", "through JAX"),
        *weekly(
            ("--backend torch --devices 2", "--backend torch: torch trains on one device"),
            ("--backend tensorflow --model-devices 2", "--backend jax"),
        ),
        pytest.param("--backend torch --device gpu", "found no GPU", marks=HAS_NO_GPU),
        pytest.param("--backend tensorflow --device gpu", "finds no GPU", marks=HAS_NO_GPU),
        ("--backend jax --device tpu", "cannot use it here"),
        pytest.param("--backend tensorflow --devices 2", "this host has 1", marks=HAS_NO_GPU),
        *weekly(
            (
                "--backend jax --device cpu --model-devices 2",
                "--model-devices: received 2, this host has 1 (cpu)",
            ),
            (
                "--backend tensorflow --device cpu --batch-tokens auto --hosts a:1,b:1",
                "--batch-tokens auto: received several hosts, expected one",
            ),
            (
                "--backend tensorflow --device cpu --devices 2 --hosts a:1,b:1 --host-index 1",
                "has one CPU",
            ),
        ),
    ],
)
def test_train_command_rejects_unavailable_devices(tmp_path, options, words):
    """Runs in a separate process, because a backend chooses its devices once per process."""
    assert words in refused(tmp_path, *options.split())


@pytest.mark.process
def test_demo_rejects_another_backend_before_it_writes(tmp_path, keras_seq_process):
    outcome = keras_seq_process("demo", tmp_path / "demo", KERAS_BACKEND="openvino")
    assert outcome.code == 2 and not (tmp_path / "demo").exists()
    assert outcome.error == (
        "KERAS_BACKEND=openvino: training and decoding run on TensorFlow, JAX and torch: set "
        "KERAS_BACKEND to tensorflow, jax or torch"
    )


@pytest.mark.process
@pytest.mark.parametrize(
    "options", [(), ("--dry-run",), ("--hosts", "a:1,b:1", "--host-index", "1")]
)
def test_missing_jax_is_reported_before_the_run_is_created(tmp_path, options):
    """The error comes before the text is prepared."""
    code = """
import importlib.machinery
find = importlib.machinery.PathFinder.find_spec
def find_spec(cls, name, *arguments):
    return None if name.partition(".")[0] == "jax" else find(name, *arguments)
importlib.machinery.PathFinder.find_spec = classmethod(find_spec)
"""
    said = refused(tmp_path, "--backend", "jax", *options, code=code)
    assert said == (
        "keras-seq: --backend jax: JAX is not installed: python -m pip install 'keras-seq[jax]', "
        "or leave it out to train on TensorFlow\n"
    )
    assert not (tmp_path / "run").exists()


def refused(folder, *options, code="", **environment):
    """Returns the standard error of a training that must fail with exit code 2."""
    (folder / "pairs.tsv").write_text("a b c\tc b a\nb c a\ta c b\n" * 40)
    script = f"import sys\n{code}\nfrom keras_seq_cli.main import main\nsys.exit(main())"
    arguments = ["--pairs", "pairs.tsv", "--valid-pairs", "pairs.tsv", *options]
    result = subprocess.run(
        [sys.executable, "-c", script, "train", "run", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        env=os.environ | environment,
    )
    assert result.returncode == 2, result.stderr
    assert "Traceback" not in result.stderr
    return result.stderr


@pytest.mark.process
@pytest.mark.parametrize("name", ["tensorflow", "jax"])
def test_devices_are_settled_once_in_a_process(name):
    """A process that has computed on one CPU device cannot switch to two devices."""
    script = """
import keras
from keras_seq import Devices, InputError
from keras_seq.cluster import configure
keras.ops.zeros(1)
try:
    configure(Devices("cpu", count=2))
except InputError as error:
    print(error)
"""
    result = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env=os.environ | {"KERAS_BACKEND": name},
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(f"--device cpu: {name} cannot use it here: ")


@pytest.mark.parametrize(
    ("device", "asked", "faster"),
    [
        (Device("jax", "cpu"), "bfloat16", "float32"),
        (Device("jax", "cpu"), "float16", "float32"),
        (Device("tensorflow", "cpu"), "bfloat16", "float32"),
        (Device("tensorflow", "cpu", bfloat16_gain=4.0), "bfloat16", None),
        (Device("tensorflow", "cpu", bfloat16_gain=4.0), "float16", "bfloat16"),
        (Device("tensorflow", "cpu"), "float32", None),
        (Device("jax", "gpu", (7, 0)), "bfloat16", "float16"),
        (Device("jax", "gpu", (6, 1)), "float16", "float32"),
        (Device("jax", "gpu", (9, 0)), "float16", None),
        (Device("jax", "gpu"), "bfloat16", None),
        (Device("jax", "tpu"), "bfloat16", None),
    ],
)
def test_faster_precision_is_suggested_for_slow_half_precision(device, asked, faster):
    found = faster_precision(device, 512, asked)
    assert (None if found is None else found[0]) == faster


@pytest.mark.skipif(backend.name() != "tensorflow", reason="what fails there alone")
def test_xla_and_multiple_steps_per_execution_are_off():
    """Both fail under a `tf.distribute` strategy."""
    sizes = {"units": "4", "num_heads": "1", "num_encoder_layers": "1", "num_decoder_layers": "1"}
    settings = load_settings(overrides={f"model.{key}": size for key, size in sizes.items()})
    model = build_model(settings, 8, 8)
    compile_model(model, settings)
    assert model.jit_compile is False and model.steps_per_execution == 1


def test_tests_cited_on_the_devices_page_exist():
    page = (ROOT / "docs" / "devices.md").read_text(encoding="utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page)
    assert len(named) > 10
    for path, name in named:
        assert f"\ndef {name}(" in (ROOT / path).read_text(encoding="utf-8"), f"{path}::{name}"
