"""`keras-seq serve`: one-line errors, raised before TensorFlow is imported if possible."""

import socket
import sys

import pytest


@pytest.fixture
def version(tmp_path):
    """A directory with the files of a model version, but with an invalid graph."""
    path = tmp_path / "ende" / "1"
    path.mkdir(parents=True)
    (path / "saved_model.pb").write_bytes(b"\xff\xfe no graph")
    return path


@pytest.mark.usefixtures("without_tensorflow")
def test_serve_reports_unusable_arguments_in_one_line(keras_seq_command, tmp_path, version):
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    (tmp_path / "hollow" / "1").mkdir(parents=True)
    base = version.parent
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for arguments, words in (
            (["absent"], "absent: no such directory"),
            ([tmp_path / "file"], "not a directory of versions but a file"),
            ([tmp_path / "empty"], "no version there"),
            ([tmp_path / "hollow"], "not a SavedModel: it has no saved_model.pb"),
            ([version], "this is one version; name the directory above it"),
            ([base, "--port", port], f"port {port} of 127.0.0.1 cannot be used: address already"),
            ([base, "--host", "no.such.host.invalid"], "not an address to listen on"),
            ([base, "--model-name", "a/b"], "'a/b': not a name for a model"),
            ([base, "--model-name", ""], "'': not a name for a model"),
            ([base, "--port", "99999"], "--port"),
            ([base, "--batch-size", "0"], "--batch-size"),
            ([base, "--queue-size", "0"], "--queue-size"),
            ([base, "--batch-delay-ms", "-1"], "--batch-delay-ms"),
            ([base, "--threads", "0"], "--threads"),
            ([base, "--max-connections", "0"], "--max-connections"),
            ([base, "--max-connections", "99999"], "--max-connections: received 99,999, expected"),
            ([base, "--allowed-host", "a:80"], "--allowed-host: received 'a:80', expected a name"),
        ):
            outcome = keras_seq_command("serve", *arguments)
            assert (outcome.code, outcome.out) == (2, b""), arguments
            assert words in outcome.error, (words, outcome.error)


@pytest.mark.usefixtures("without_tensorflow")
@pytest.mark.parametrize("package", ["starlette", "uvicorn", "prometheus_client"])
def test_a_missing_extra_is_named(keras_seq_command, version, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    outcome = keras_seq_command("serve", version.parent)
    assert outcome.code == 2
    assert outcome.error == f"serving needs {package}: python -m pip install 'keras-seq[serve]'"


@pytest.mark.process
def test_serve_rejects_a_damaged_saved_model_and_imports_no_more_than_it_needs(
    keras_seq_process, version
):
    arguments = ("serve", version.parent, "--port", 0)
    outcome = keras_seq_process(*arguments, PYTHONPROFILEIMPORTTIME="1")
    assert (outcome.code, outcome.out) == (2, b"")
    lines = outcome.err.split("\n")
    imports = {line.split("|")[-1].strip() for line in lines if line.startswith("import time:")}
    assert "tensorflow.python" in imports
    # TensorFlow and Keras import these if they are installed, which takes half the start.
    assert imports.isdisjoint({"matplotlib.artist", "pandas.core", "scipy._lib", "sklearn.utils"})
    *said, end = [line for line in lines if not line.startswith("import time:")]
    assert said == [
        f"loading {version.parent.name}, version 1",
        f"keras-seq: {version}: saved_model.pb: damaged: not the graph of a SavedModel",
    ]
    assert end == ""
