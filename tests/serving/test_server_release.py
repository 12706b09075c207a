"""Exports load with the libraries of the server's release, and return the answers of the run.

TensorFlow Serving links TensorFlow and tensorflow-text of its own minor version. The tests install
both into an environment of their own, about 1.5 GB that is deleted afterwards, and are skipped
where no package index can be reached.
"""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import keras
import numpy as np
import pytest
from serving.test_deployment import documents, options, server
from stock_server import StockProcess, Tensor, libraries_in
from weekly import weekly_but

import keras_seq
from keras_seq.run import Run
from keras_seq.serving.deployment import SERVER_RELEASE
from keras_seq.serving.graph_file.operations import ALLOWED, TEXT
from keras_seq.text.dates import date_pairs

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        keras.backend.backend() != "tensorflow", reason="only TensorFlow writes a SavedModel"
    ),
]

MINOR = SERVER_RELEASE.rpartition(".")[0]
INSTALL_SECONDS = 600
N_BEST = 2
LINES = [*(source for source, _ in date_pairs(12, seed=5)), "", "犬 🐕", "12 " * 100]

# Loads a SavedModel as `tf.saved_model.load` does, with a server's numbers of threads.
SCRIPT = """
import json, sys
import tensorflow as tf
import tensorflow_text

request = json.load(sys.stdin)
tf.config.threading.set_intra_op_parallelism_threads(request["intra_op"])
tf.config.threading.set_inter_op_parallelism_threads(request["inter_op"])
signatures = tf.saved_model.load(request["model"]).signatures

def plain(values):
    if isinstance(values, list):
        return [plain(value) for value in values]
    return values.decode() if isinstance(values, bytes) else values

answers = {}
for name, (key, dtype, rows) in request["inputs"].items():
    outputs = signatures[name](**{key: tf.constant(rows, dtype)})
    answers[name] = {key: plain(value.numpy().tolist()) for key, value in outputs.items()}
json.dump(
    {
        "release": tf.__version__,
        "threads": [
            tf.config.threading.get_intra_op_parallelism_threads(),
            tf.config.threading.get_inter_op_parallelism_threads(),
        ],
        "signatures": sorted(signatures),
        "answers": answers,
        "unknown": [name for name in request["operations"] if not hasattr(tf.raw_ops, name)],
    },
    sys.stdout,
)
"""


@pytest.fixture(scope="module")
def environment():
    """The directory of a virtual environment with the TensorFlow of the server's release."""
    folder = Path(tempfile.mkdtemp(prefix="server-release-"))
    try:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        install(folder, f"tensorflow-cpu=={MINOR}.*")
        # tensorflow-text requires `tensorflow`, which is larger and has the same libraries.
        install(folder, "--no-deps", f"tensorflow-text=={MINOR}.*")
        yield folder
    finally:
        shutil.rmtree(folder)


def install(folder, *requirements):
    command = [folder / "bin" / "python", "-I", "-m", "pip", "install", "--quiet", "--no-compile"]
    try:
        result = subprocess.run(
            [*command, "--retries", "1", *requirements],
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"{requirements[-1]}: not installed within {INSTALL_SECONDS} s")
    if "(from versions: none)" in result.stderr:
        pytest.skip(f"{requirements[-1]}: no package index can be reached")
    assert result.returncode == 0, result.stderr


@pytest.fixture(scope="module")
def libraries(environment):
    (packages,) = environment.glob("lib/python*/site-packages")
    return libraries_in(packages)


@pytest.fixture(scope="module", params=weekly_but(["tiny_run", "tiny_rnn_run"], "tiny_run"))
def exported(request, made_once):
    """A run's translator and the directory of its exports, with the files of the command."""
    from keras_seq.serving import export_saved_model

    run = request.getfixturevalue(request.param)
    base = made_once(
        f"released {request.param}",
        lambda base: export_saved_model(Run.open(run), base, n_best=N_BEST, verify=0),
    )
    return keras_seq.Translator.load(run, n_best=N_BEST), base


def padded(translator, lines):
    """Returns the ids of each line, padded with 0."""
    rows = translator.source_tokenizer.encode(lines)
    width = max(map(len, rows))
    return [[*row, *[0] * (width - len(row))] for row in rows]


def check_answers(translator, answers):
    """Compares the answers of the three signatures, as nested lists, with the run's answers.

    A search that finds fewer than N outputs fills the rest with "" and -1e30.
    """
    missing = ("", -1e30, False)
    expected = [
        [*((one[0], one[1], one[2]) for one in found), *[missing] * N_BEST][:N_BEST]
        for found in (row or [("", 0.0, False)] for row in translator.translate(LINES))
    ]
    texts, scores, truncated = (
        [[one[part] for one in row] for row in expected] for part in range(3)
    )
    several = answers["n_best"]
    assert several["translation"] == texts
    np.testing.assert_allclose(several["score"], scores, rtol=1e-5, atol=1e-4)
    assert several["truncated"] == truncated
    best = answers["serving_default"]
    assert best["translation"] == [row[0] for row in texts]
    np.testing.assert_allclose(best["score"], [row[0] for row in scores], rtol=1e-5, atol=1e-4)
    assert best["truncated"] == [row[0] for row in truncated]
    ids = answers["ids"]
    found = [row[0][: lengths[0]] for row, lengths in zip(ids["ids"], ids["length"], strict=True)]
    assert translator.target_tokenizer.decode(found) == best["translation"]
    np.testing.assert_allclose(ids["score"], several["score"], rtol=1e-5, atol=1e-4)


def test_session_of_the_server_release_answers_as_the_run_does(exported, libraries):
    translator, base = exported
    ids = padded(translator, LINES)
    flat = [number for row in ids for number in row]
    requests = [
        ("serving_default", {"text": Tensor.row(LINES)}),
        ("n_best", {"text": Tensor.row(LINES)}),
        ("ids", {"ids": Tensor((len(ids), len(ids[0])), flat)}),
    ]
    with StockProcess(base / "1", libraries=libraries) as process:
        assert set(process.signatures) == {name for name, _ in requests}
        outputs = process.run_all(requests)
    answers = {
        name: {key: nested(tensor) for key, tensor in output.items()}
        for (name, _), output in zip(requests, outputs, strict=True)
    }
    check_answers(translator, answers)


def nested(tensor):
    """Returns a tensor as nested lists, and bytes as text."""
    values = [value.decode() if isinstance(value, bytes) else value for value in tensor.values]
    return np.array(values, object).reshape(tensor.shape).tolist()


@pytest.mark.parametrize("exported", ["tiny_run"], indirect=True)
def test_server_release_answers_with_the_settings_of_the_manifest(exported, environment):
    translator, base = exported
    container = server(base)
    arguments = options(container["args"])
    assert arguments["model_name"] == base.name
    assert container["image"].partition(":")[2] == SERVER_RELEASE
    # The directory of the exports is mounted where the server looks for its versions.
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    model = Path(arguments["model_base_path"].replace(mounts["models"], str(base)))
    version = max(
        (path for path in model.iterdir() if path.name.isdigit()), key=lambda p: int(p.name)
    )
    annotations = documents(base, "kubernetes.yaml")["Deployment"]["metadata"]["annotations"]
    signatures = annotations["keras-seq/signatures"].split(", ")
    inputs = {
        name: ("ids", "int32", padded(translator, LINES))
        if name == "ids"
        else ("text", "string", LINES)
        for name in signatures
    }
    threads = [int(arguments[f"tensorflow_{kind}_op_parallelism"]) for kind in ("intra", "inter")]
    request = {
        "model": str(version),
        "intra_op": threads[0],
        "inter_op": threads[1],
        "inputs": inputs,
        "operations": sorted(ALLOWED - TEXT),
    }
    result = subprocess.run(
        [environment / "bin" / "python", "-I", "-c", SCRIPT],
        input=json.dumps(request),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["release"].startswith(f"{MINOR}.")
    assert found["threads"] == threads
    assert found["signatures"] == signatures
    # The operations of all tasks are known, not only those of this export.
    assert found["unknown"] == []
    check_answers(translator, found["answers"])
