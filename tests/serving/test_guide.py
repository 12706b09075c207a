"""The guide of an export: its commands run."""

import json
import os
import re
import subprocess
import sys
from concurrent import futures
from pathlib import Path
from types import SimpleNamespace

import pytest

from keras_seq.serving.graph_file.operations import SENTENCEPIECE, WORD_PIECES
from keras_seq.serving.guide import text_guide, write_guide
from keras_seq.settings import TASKS, load_settings
from keras_seq.text import InputError

# Text with special characters of the shell, JSON, Python and Markdown.
EXAMPLE = 'It\'s "two" $PWD `dogs` \\ \u2028 犬🐕 {0}.'
# A run whose sources have no features.
RUN = SimpleNamespace(source_tokenizer=None, languages=[])
ENVIRONMENT = os.environ | {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONIOENCODING": "utf-8"}


def guide(base, operations=SENTENCEPIECE | {"MatMul"}, max_batch=32, version="2.21.0"):
    exporter = TASKS["translate"].exporter(RUN, load_settings())
    parts = text_guide(exporter, EXAMPLE, EXAMPLE.upper())
    return write_guide(base, parts, operations, max_batch, version)


@pytest.fixture(params=["ende", "a folder's name"])
def base(request, tmp_path):
    base = tmp_path / "in between" / request.param
    base.mkdir(parents=True)
    guide(base)
    return base


def blocks(base, language):
    text = (base / "serving" / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def test_guide_contains_no_local_path_and_replaces_its_older_version(base):
    assert str(base.parent) not in (base / "serving" / "README.md").read_text(encoding="utf-8")
    guide(base, max_batch=7)
    assert "up to 7 texts" in (base / "serving" / "README.md").read_text(encoding="utf-8")
    assert os.listdir(base / "serving") == ["README.md"]


@pytest.mark.parametrize(
    ("operations", "listed"),
    [(SENTENCEPIECE, SENTENCEPIECE), (WORD_PIECES | {"MatMul"}, WORD_PIECES), ({"MatMul"}, set())],
)
def test_guide_lists_the_text_operations_of_the_graph(tmp_path, operations, listed):
    guide(tmp_path, operations=operations)
    text = (tmp_path / "serving" / "README.md").read_text(encoding="utf-8")
    assert {name for name in SENTENCEPIECE | WORD_PIECES if f"`{name}`" in text} == listed
    assert "MatMul" not in text
    assert ("only TensorFlow's own operations" in text) == (not listed)


def shell(base, block):
    """Runs a shell block in which each program only prints its arguments; returns both."""
    programs = base.parent.parent / "programs"
    programs.mkdir(exist_ok=True)
    for name in ("tensorflow_model_server", "docker", "curl"):
        program = programs / name
        program.write_text(f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv))\n")
        program.chmod(0o755)
    result = subprocess.run(
        ["bash", "-euc", block],
        cwd=base.parent,
        env=os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    program, *arguments = json.loads(result.stdout)
    return os.path.basename(program), arguments


def test_guide_shell_commands_pass_the_right_paths_and_options(base):
    server, docker, curl = (shell(base, block) for block in blocks(base, "bash"))
    assert server == (
        "tensorflow_model_server",
        [
            "--port=8500",
            "--rest_api_port=8501",
            f"--model_name={base.name}",
            f"--model_base_path={base}",
            "--enable_batching",
            f"--batching_parameters_file={base}/serving/batching.txt",
        ],
    )
    # The image serves /models/$MODEL_NAME and passes its arguments to the server.
    assert docker[0] == "docker"
    image = docker[1].index("tensorflow/serving:2.20.0")
    assert docker[1][docker[1].index("-v") + 1] == f"{base}:/models/{base.name}:ro"
    assert docker[1][docker[1].index("-e") + 1] == f"MODEL_NAME={base.name}"
    assert docker[1][image + 1 :] == [
        "--enable_batching",
        f"--batching_parameters_file=/models/{base.name}/serving/batching.txt",
    ]
    assert curl[0] == "curl"
    assert json.loads(curl[1][1]) == {"instances": [EXAMPLE]}


@pytest.fixture(scope="module")
def saved_model(tmp_path_factory):
    """A SavedModel that has the outputs of an export and returns its input in upper case."""
    import tensorflow as tf

    class Shout(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
        def shout(self, text):
            return {
                "translation": tf.strings.upper(text, encoding="utf-8"),
                "score": tf.zeros_like(text, tf.float32),
                "truncated": tf.zeros_like(text, tf.bool),
            }

    path = tmp_path_factory.mktemp("base") / "1"
    module = Shout()
    tf.saved_model.save(module, str(path), signatures={"serving_default": module.shout})
    return path


@pytest.fixture
def prediction_service(saved_model):
    """Runs TensorFlow Serving's gRPC service for the SavedModel; yields the port."""
    import grpc
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        loaded = tf.compat.v1.saved_model.load(session, ["serve"], str(saved_model))

        class Service(prediction_service_pb2_grpc.PredictionServiceServicer):
            def Predict(self, request, context):  # noqa: N802
                if request.model_spec.name not in ("ende", "a folder's name"):
                    context.abort(grpc.StatusCode.NOT_FOUND, "no such model")
                name = request.model_spec.signature_name or "serving_default"
                signature = loaded.signature_def[name]
                found = session.run(
                    {name: output.name for name, output in signature.outputs.items()},
                    {
                        signature.inputs[name].name: tf.make_ndarray(tensor)
                        for name, tensor in request.inputs.items()
                    },
                )
                response = predict_pb2.PredictResponse()
                for output, values in found.items():
                    response.outputs[output].CopyFrom(tf.make_tensor_proto(values))
                return response

        server = grpc.server(futures.ThreadPoolExecutor(1))
        prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(Service(), server)
        port = server.add_insecure_port("localhost:0")
        server.start()
        yield port
        server.stop(None).wait()


@pytest.mark.process
def test_guide_grpc_example_prints_the_served_answer(base, prediction_service):
    _, grpc_lines = blocks(base, "python")
    assert "localhost:8500" in grpc_lines
    result = subprocess.run(
        [sys.executable, "-c", grpc_lines.replace("8500", str(prediction_service))],
        env=ENVIRONMENT,
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert result.stdout == EXAMPLE.upper() + "\n"


@pytest.mark.parametrize("base", [Path("/"), Path("a:b")], ids=["root", "colon"])
def test_invalid_model_name_raises_value_error(base):
    with pytest.raises(ValueError, match="a model name must be"):
        guide(base)


def test_unwritable_guide_directory_raises_input_error(tmp_path):
    (tmp_path / "serving").touch()
    with pytest.raises(InputError, match="serving: cannot be written: "):
        guide(tmp_path)
