"""`keras-seq export`: the files it writes and its one-line errors."""

import os
import shutil

import pytest

import keras_seq


@pytest.mark.process
@pytest.mark.weekly
def test_export_numbers_versions_consecutively(
    tiny_run, tmp_path, keras_seq_process, keras_seq_command
):
    base = tmp_path / "served" / "dates"
    # TensorFlow writes the SavedModel even if KERAS_BACKEND names another backend.
    first = keras_seq_process("export", tiny_run, base, "--verify", 3, KERAS_BACKEND="jax")
    assert first.code == 0, first.err
    assert first.lines == [str(base / "1")]
    assert "3 lines of the validation text come out as the run translates them" in first.err
    assert "MB, " in first.err and "% more than weights and vocabulary" in first.err
    assert "Traceback" not in first.err and "oneDNN" not in first.err
    second = keras_seq_command(
        "export", tiny_run, base, "--beam-size", 4, "--n-best", 3, "--verify", 0
    )
    assert second.lines == [str(base / "2")]
    assert sorted(os.listdir(base)) == ["1", "2", "serving"]
    assert (base / "2/assets.extra/tf_serving_warmup_requests").stat().st_size > 0


def test_exported_keras_file_loads_as_the_same_model(tiny_run, tmp_path, keras_seq_command):
    import keras
    import numpy as np

    file = tmp_path / "dates.keras"
    assert keras_seq_command("export", tiny_run, file, "--format", "keras").lines == [str(file)]
    model = keras.saving.load_model(file)
    from keras_seq.run.models import load_model

    inputs = {"source": np.array([[5, 6, 3]]), "target": np.array([[2, 7]])}
    expected = load_model(keras_seq.Run.open(tiny_run))(inputs)
    np.testing.assert_allclose(model(inputs), expected, atol=1e-6)
    again = keras_seq_command("export", tiny_run, file, "--format", "keras")
    assert (again.code, again.error) == (2, f"{file}: exists already, name another")
    other = keras_seq_command("export", tiny_run, tmp_path / "dates.h5", "--format", "keras")
    assert (other.code, other.error) == (
        2,
        f"{tmp_path / 'dates.h5'}: expected a name that ends in .keras",
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "pdf"], "'pdf' is not one of 'savedmodel', 'ctranslate2', 'onnx', 'litert'"),
        (["--quantize", "int8"], "--quantize: not for --format savedmodel"),
        (
            ["--format", "keras", "--beam-size", "2", "--verify", "1"],
            "--beam-size, --verify: not for",
        ),
        (["--beam-size", "0"], "search.beam_size: received 0, expected an integer, at least 1"),
        (["--n-best", "3"], "n_best: received 3, expected at most search.beam_size (2)"),
        (["--verify", "-1"], "Invalid value for '--verify'"),
    ],
)
def test_export_rejects_incompatible_options(
    tiny_run, tmp_path, keras_seq_command, arguments, message
):
    outcome = keras_seq_command("export", tiny_run, tmp_path / "out", *arguments)
    assert outcome.code == 2
    assert message in outcome.error
    assert not (tmp_path / "out").exists()


def test_export_rejects_unusable_output_paths_and_runs(tiny_run, tmp_path, keras_seq_command):
    file = tmp_path / "file"
    file.write_text("x")
    outcome = keras_seq_command("export", tiny_run, file)
    assert outcome.code == 2 and str(file) in outcome.error
    outcome = keras_seq_command("export", tiny_run, tiny_run)
    assert outcome.code == 2 and "run" in outcome.error
    outcome = keras_seq_command("export", tmp_path / "none", tmp_path / "out")
    assert (outcome.code, outcome.error) == (2, f"{tmp_path / 'none'}: no such run directory")
    untrained = tmp_path / "untrained"
    shutil.copytree(tiny_run, untrained, ignore=shutil.ignore_patterns("checkpoints"))
    outcome = keras_seq_command("export", untrained, tmp_path / "out")
    assert outcome.code == 2 and "no checkpoint" in outcome.error
    assert not (tmp_path / "out").exists()
