"""`keras-seq` reports truncated or deleted checkpoint files and uses an earlier checkpoint."""

import os
import shutil

import pytest
from faults.training_process import Training, command, last_arrays, validations, write_corpus

pytestmark = pytest.mark.process

SETTINGS = {
    "training__max_steps": 17,
    "training__checkpoint_every": 2,
    "training__validate_every": 10**6,
    "training__keep_checkpoints": 100,
    "model__dropout": 0.3,
}
# Step, file, and the fraction of the file that remains; None deletes the file.
DAMAGES = [
    (4, "weights.safetensors", 0.0),
    (6, "MANIFEST.json", 0.01),
    (8, "state.json", 0.5),
    (10, "training.safetensors", 0.99),
    (12, "MANIFEST.json", None),
    (14, "weights.safetensors", 0.99),
    (16, "training.safetensors", None),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("damaged")
    write_corpus(folder)
    code, said = Training(command(folder, "straight", **SETTINGS)).end()
    assert code == 0, said
    return folder


@pytest.fixture
def damaged(folder, tmp_path):
    """A run killed before its last update, in which every checkpoint but the first is damaged."""
    path = tmp_path / "run"
    shutil.copytree(folder / "straight", path)
    shutil.rmtree(path / "checkpoints" / "step-00000017")
    (path / "checkpoints" / "latest").write_text("step-00000016\n")
    (path / "checkpoints" / "best").unlink()
    (path / "result.json").unlink()
    for step, name, share in DAMAGES:
        file = path / "checkpoints" / f"step-{step:08}" / name
        if share is None:
            file.unlink()
        else:
            os.truncate(file, int(file.stat().st_size * share))
    return path


def check_said(said, damages):
    lines = said.split("\n")
    for step, name, share in damages:
        (line,) = (line for line in lines if f"step-{step:08}: damaged: " in line)
        if share is None:
            assert f"{name} is missing" in line
        elif name == "MANIFEST.json":
            assert f"{name}: not valid JSON" in line
        else:
            assert f"{name} has " in line and "bytes, the manifest says" in line
    (taken,) = (line for line in lines if "read instead" in line)
    assert "step-00000002: read" in taken


def test_training_resumes_from_the_last_complete_checkpoint_and_reports_it(folder, damaged):
    arguments = command(folder, "straight", **SETTINGS)
    arguments[1] = str(damaged)
    code, said = Training(arguments).end()
    assert code == 0, said
    check_said(said, DAMAGES)
    assert "resuming after step 2\n" in said
    assert last_arrays(damaged) == last_arrays(folder / "straight")
    assert validations(damaged) == validations(folder / "straight")


@pytest.fixture
def damaged_weights(damaged):
    """Omits checkpoints with a damaged training.safetensors, which translation does not read."""
    for step, name, _ in DAMAGES:
        if name == "training.safetensors":
            shutil.rmtree(damaged / "checkpoints" / f"step-{step:08}")
    return damaged


def test_translate_uses_the_last_complete_checkpoint_and_reports_it(
    damaged_weights, keras_seq_process
):
    result = keras_seq_process("translate", damaged_weights, stdin=b"a b c\n")
    assert result.code == 0, result.err
    assert len(result.lines) == 1
    check_said(result.err, [damage for damage in DAMAGES if damage[1] != "training.safetensors"])


def test_translate_fails_when_every_checkpoint_is_damaged(damaged_weights, keras_seq_process):
    shutil.rmtree(damaged_weights / "checkpoints" / "step-00000002")
    result = keras_seq_process("translate", damaged_weights, stdin=b"a b c\n")
    assert result.code == 2, result.err
    assert (
        "no undamaged checkpoint; " in result.error and "step-00000014: damaged: " in result.error
    )
    assert result.out == b""
