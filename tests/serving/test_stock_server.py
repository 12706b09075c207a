"""Exports run on a stock model server, and SavedModels with known faults do not.

All requests go through TensorFlow's C API in a process that cannot import any package; see
`stock_server.py`.
"""

import math
import subprocess
import sys
import time
from typing import NamedTuple

import keras
import numpy as np
import pytest
from stock_server import ServerError, StockProcess, Tensor, TensorInfo, default_libraries
from weekly import weekly_but

import keras_seq
from keras_seq.run import Run
from keras_seq.text.dates import date_pairs

pytestmark = [
    pytest.mark.process,
    pytest.mark.skipif(
        keras.backend.backend() != "tensorflow", reason="only TensorFlow writes a SavedModel"
    ),
]

FLOAT, INT, STRING, BOOL = 1, 3, 7, 10
N_BEST = 2
# Text unlike the dates that the tiny models were trained on.
STRANGE = [
    "",
    " ",
    "\t \u3000",
    "🐕" * 30,
    "👩‍👩‍👧‍👦 犬が走る",
    "a\0b",
    "\0",
    "\N{BYTE ORDER MARK}1.2.2003",
    "e\u0301 é",
    "<s> </s> <pad> <unk> <0x41>",
    "▁▁ ▁",
    "\N{REPLACEMENT CHARACTER}",
    "1.\u2028\u20292\x85\x0b\x0c3",
]
LINES = [source for source, _ in date_pairs(64 - len(STRANGE), seed=5)] + STRANGE
INVALID = [b"\xff\xfe 1.2.2003", b"1. \xc3( 2", b"\xf0\x9f\x90", b"a\xed\xa0\x80b", b"\x80" * 50]


class Exported(NamedTuple):
    translator: keras_seq.Translator
    version: object
    server: StockProcess


@pytest.fixture(scope="module", params=weekly_but(["tiny_run", "tiny_rnn_run"], "tiny_run"))
def exported(request, made_once):
    """A run's translator and a server of its export, for a Transformer and a recurrent model."""
    from keras_seq.serving import export_saved_model

    run = request.getfixturevalue(request.param)
    base = made_once(
        f"served {request.param}",
        lambda base: export_saved_model(Run.open(run), base, n_best=N_BEST, verify=0),
    )
    version = base / "1"
    with StockProcess(version) as server:
        yield Exported(keras_seq.Translator.load(run, n_best=N_BEST), version, server)


def answer(server, lines, signature="serving_default"):
    return server.run(signature, {"text": Tensor.row(lines)})


def test_export_has_the_three_expected_signatures(exported):
    signatures = exported.server.signatures
    assert set(signatures) == {"serving_default", "n_best", "ids"}
    of_text = {"translation": STRING, "score": FLOAT, "truncated": BOOL}
    of_ids = {"ids": INT, "length": INT, "score": FLOAT, "truncated": BOOL}
    for name, inputs, outputs in (
        ("serving_default", {"text": STRING}, of_text),
        ("n_best", {"text": STRING}, of_text),
        ("ids", {"ids": INT}, of_ids),
    ):
        found = signatures[name]
        assert {key: info.dtype for key, info in found.inputs.items()} == inputs
        assert {key: info.dtype for key, info in found.outputs.items()} == outputs


def test_stock_server_answers_equal_those_of_translator(exported):
    expected = [
        found[0] if found else ("", 0.0, False) for found in exported.translator.translate(LINES)
    ]
    found = answer(exported.server, LINES)
    assert [text.decode() for text in found["translation"].values] == [one[0] for one in expected]
    np.testing.assert_allclose(found["score"].values, [one[1] for one in expected], atol=1e-4)
    assert found["truncated"].values == [one[2] for one in expected]


def test_invalid_utf_8_counts_as_replacement_characters(exported):
    expected = exported.translator([line.decode(errors="replace") for line in INVALID])
    assert exported.server.translate(INVALID) == expected


@pytest.mark.parametrize("rows", [0, 1, 64])
@pytest.mark.parametrize("signature", ["serving_default", "n_best"])
def test_text_signatures_accept_any_number_of_rows(exported, signature, rows):
    shape = (rows,) if signature == "serving_default" else (rows, N_BEST)
    found = answer(exported.server, LINES[:rows], signature)
    assert {values.shape for values in found.values()} == {shape}
    assert all(math.isfinite(score) for score in found["score"].values)


def test_ids_signature_accepts_any_number_of_rows(exported):
    for rows, width in ((0, 0), (0, 7), (3, 0), (1, 1), (64, 5)):
        found = exported.server.run(
            "ids", {"ids": Tensor((rows, width), [5 + i % 90 for i in range(rows * width)])}
        )
        assert found["length"].shape == (rows, N_BEST)
        assert found["ids"].shape[:2] == (rows, N_BEST)


def test_a_row_alone_answers_as_in_a_batch_of_64(exported):
    together = answer(exported.server, LINES, "n_best")
    requests = [("n_best", {"text": Tensor.row([line])}) for line in LINES]
    for row, alone in enumerate(exported.server.run_all(requests, threads=2)):
        for name in ("translation", "truncated"):
            assert alone[name].rows()[0] == together[name].rows()[row]
        np.testing.assert_allclose(
            alone["score"].values, together["score"].rows()[row], rtol=1e-5, atol=1e-5
        )


def test_overlong_texts_are_truncated_and_not_much_slower(exported):
    limit = exported.translator.max_source_length
    at_limit = "12 " * limit
    longer = ["1. " * 3_334, "1. " * 350_000, "x" * 1_000_000, "🐕" * 250_000]
    found = answer(exported.server, longer)
    assert found["truncated"].values == [True] * len(longer)
    assert [text.decode() for text in found["translation"].values] == exported.translator(longer)
    seconds = []
    for text in (at_limit, longer[0]):
        start = time.perf_counter()
        answer(exported.server, [text])
        seconds.append(time.perf_counter() - start)
    # The bound is loose because the machine may be busy; an uncut text takes 50 times as long.
    assert seconds[1] < 5 * seconds[0] + 1


def test_64_threads_get_the_same_answers_as_one_thread(exported):
    sizes = [1, 3, 1, 8]
    requests = []
    for number in range(150):
        start = number * 7 % 56
        lines = LINES[start : start + sizes[number % 4]]
        requests.append(("serving_default", {"text": Tensor.row(lines)}))
    serial = exported.server.run_all(requests)
    assert exported.server.run_all(requests, threads=64) == serial


def test_server_keeps_answering_after_a_request_error(exported):
    with pytest.raises(ServerError, match=r"inputs \['lines'\], expected \['text'\]"):
        exported.server.run("serving_default", {"lines": Tensor.row(["a"])})
    with pytest.raises(ServerError, match="Index out of range"):
        exported.server.run("ids", {"ids": Tensor((3,), [5, 6, 7])})
    assert answer(exported.server, [""])["translation"].values == [b""]


def test_stock_server_script_translates_standard_input(exported):
    script = sys.modules["stock_server"].__file__
    lines = LINES[:5]
    result = subprocess.run(
        [sys.executable, script, exported.version],
        input="\n".join(lines).encode(),
        capture_output=True,
        check=True,
    )
    assert result.stdout.decode().split("\n")[:-1] == exported.translator(lines)


# Known faults. Each SavedModel loads in Python, so `tf.saved_model.load` does not find them.


def save(module, function, directory):
    import tensorflow as tf

    module.serve = tf.function(
        function, input_signature=[tf.TensorSpec([None, 4], tf.float32, name="x")]
    )
    tf.saved_model.save(module, str(directory), signatures={"serving_default": module.serve})
    loaded = tf.saved_model.load(str(directory)).signatures["serving_default"]
    assert loaded(x=tf.ones((2, 4)))["y"].shape[0] == 2
    return directory


def call(server):
    return server.run("serving_default", {"x": Tensor((2, 4), [1.0] * 8)})["y"]


@pytest.fixture
def model():
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(3, kernel_initializer="ones")])


def test_raw_variables_are_served(model, tmp_path):
    import tensorflow as tf

    module = tf.Module()
    module.weights = [weight.value for weight in model.weights]
    with StockProcess(save(module, lambda x: {"y": model(x)}, tmp_path)) as server:
        assert server.signatures["serving_default"].inputs["x"] == TensorInfo(
            "serving_default_x:0", FLOAT
        )
        assert call(server) == Tensor((2, 3), [4.0] * 6)


def test_a_keras_model_as_attribute_has_no_variables_in_a_session(model, tmp_path):
    import tensorflow as tf

    module = tf.Module()
    module.model = model
    save(module, lambda x: {"y": model(x)}, tmp_path)
    with StockProcess(tmp_path) as server, pytest.raises(ServerError) as error:
        call(server)
    assert "Could not find variable sequential" in str(error.value)


def test_slice_update_needs_xla(tmp_path):
    import tensorflow as tf

    def write(x):
        return {"y": keras.ops.slice_update(x, (0, 1), x[:, :2])}

    save(tf.Module(), write, tmp_path)
    with StockProcess(tmp_path) as server, pytest.raises(ServerError) as error:
        call(server)
    assert "XLA compilation disabled" in str(error.value)
    assert "XlaDynamicUpdateSlice" in str(error.value)


def test_server_without_text_operations_cannot_load_an_export(exported):
    """The server cannot load the model at all, so not even the `ids` signature works."""
    with pytest.raises(ServerError, match="Op type not registered 'SentencepieceOp'"):
        StockProcess(exported.version, operations=False)


def test_directory_without_a_model_raises_server_error(tmp_path):
    with pytest.raises(ServerError, match="Could not find SavedModel"):
        StockProcess(tmp_path)


def test_isolated_python_cannot_import_tensorflow():
    tensorflow, operations = default_libraries()
    assert tensorflow.is_dir() and operations.is_dir()
    result = subprocess.run(
        [sys.executable, "-I", "-S", "-c", "import tensorflow"], capture_output=True, text=True
    )
    assert "No module named 'tensorflow'" in result.stderr


@pytest.mark.parametrize("exported", ["tiny_run"], indirect=True)
@pytest.mark.weekly
def test_openvino_results_equal_those_of_the_stock_server(exported):
    """OpenVINO is an independent runtime: its own compiler and kernels, without TensorFlow."""
    openvino = pytest.importorskip("openvino")
    import tensorflow as tf
    import tensorflow_text  # noqa: F401

    rows = exported.translator.source_tokenizer.encode(LINES)
    width = max(map(len, rows))
    ids = np.array([[*row, *[0] * (width - len(row))] for row in rows], "int32")
    loaded = tf.saved_model.load(str(exported.version))
    compiled = openvino.compile_model(
        openvino.convert_model(loaded.signatures["ids"]), "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
    )
    found = compiled(ids)
    expected = exported.server.run("ids", {"ids": Tensor(ids.shape, ids.ravel().tolist())})
    # OpenVINO names the output `ids_1` because the input is named `ids`.
    found = {output.get_any_name().removesuffix("_1"): found[output] for output in compiled.outputs}
    assert found["ids"].ravel().tolist() == expected["ids"].values
    assert found["length"].ravel().tolist() == expected["length"].values
    assert found["truncated"].ravel().tolist() == expected["truncated"].values
    np.testing.assert_allclose(
        found["score"].ravel(), expected["score"].values, rtol=1e-5, atol=1e-5
    )
