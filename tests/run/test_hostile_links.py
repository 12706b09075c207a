"""Runs and outputs with links, pipes and devices: nothing outside is read or written."""

import os
import shutil
import signal

import pytest

from keras_seq.run import Run
from keras_seq.text import InputError

pytestmark = pytest.mark.skipif(os.name != "posix", reason="links and pipes of POSIX")


@pytest.fixture(autouse=True)
def alarm():
    """Fails the test, not the session, if a read from a pipe blocks."""

    def ring(number, frame):
        raise TimeoutError("waited 60 seconds")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def victim(tmp_path):
    """A file outside the run that must not change."""
    victim = tmp_path / "outside" / "victim"
    victim.parent.mkdir()
    victim.write_text("precious")
    yield victim
    assert victim.read_text() == "precious"
    assert os.listdir(victim.parent) == ["victim"]


@pytest.fixture
def run_copy(tiny_run, tmp_path):
    """A copy of a trained run, for tests that modify it."""
    return shutil.copytree(tiny_run, tmp_path / "copy")


TEMPORARIES = [
    ".tmp-probe",
    ".tmp-settings.toml",
    ".tmp-result.json",
    ".tmp-README.md",
    "checkpoints/.tmp-probe",
    "checkpoints/.tmp-best",
]


@pytest.mark.parametrize("name", TEMPORARIES)
def test_a_training_does_not_write_through_links_at_temporary_names(
    run_copy, victim, keras_seq_command, name
):
    (run_copy / name).symlink_to(victim)
    settings = run_copy / "settings.toml"
    found = keras_seq_command("train", run_copy, "--settings", settings, "--max-steps", 5)
    assert found.code == 2
    assert found.error.startswith(f"{run_copy / name}: a link, expected a regular file")


@pytest.mark.parametrize("name", [".tmp-settings.toml", ".work", ".lock"])
def test_a_directory_with_links_does_not_count_as_empty(
    tmp_path, victim, dates_file, keras_seq_command, name
):
    directory = tmp_path / "new"
    directory.mkdir()
    (directory / name).symlink_to(victim.parent if name == ".work" else victim)
    found = keras_seq_command(
        "prepare", directory, "--pairs", dates_file, "--set", "tokenizer.size=480"
    )
    assert found.code == 2
    assert found.error == f"{directory}: not empty and not a run: expected a new directory"


def test_directory_with_foreign_files_in_work_does_not_count_as_empty(
    tmp_path, dates_file, keras_seq_command
):
    work = tmp_path / "new" / ".work"
    work.mkdir(parents=True)
    (work / "keep.txt").touch()
    found = keras_seq_command("prepare", work.parent, "--pairs", dates_file)
    assert found.code == 2
    assert "not empty and not a run" in found.error
    assert os.listdir(work) == ["keep.txt"]


def test_a_run_whose_working_directory_is_a_link_is_not_prepared_again(
    run_copy, victim, dates_file, keras_seq_command
):
    (run_copy / "data" / "prepared.json").unlink()
    shutil.rmtree(run_copy / "checkpoints")
    (run_copy / ".work").symlink_to(victim.parent)
    found = keras_seq_command("prepare", run_copy, "--pairs", dates_file)
    assert found.code == 2


LINKS = ["data/valid.source", "data/valid/corpus.json", "data/train", "data/prepared.json"]


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("target", ["victim", "/dev/zero"])
def test_links_under_data_are_refused(run_copy, victim, name, target):
    Run.open(run_copy)
    path = run_copy / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    path.symlink_to(victim if target == "victim" else target)
    with pytest.raises(InputError, match=f"{name}: a link, expected a regular file"):
        Run.open(run_copy)


def test_an_export_publishes_no_file_that_a_link_leads_to(
    run_copy, victim, tmp_path, keras_seq_command
):
    for side in ("source", "target"):
        (run_copy / "data" / f"valid.{side}").unlink()
        (run_copy / "data" / f"valid.{side}").symlink_to(victim)
    found = keras_seq_command("export", run_copy, tmp_path / "served", "--verify", 0)
    assert found.code == 2
    assert "a link, expected a regular file" in found.error
    assert not (tmp_path / "served").exists()


def test_a_prepared_directory_with_a_link_is_not_copied(
    run_copy, victim, tmp_path, keras_seq_command
):
    (run_copy / "data" / "valid" / "x").symlink_to(victim)
    found = keras_seq_command("train", tmp_path / "new", "--prepared", run_copy)
    assert found.code == 2
    assert "data/valid/x: a link" in found.error


def test_sparse_weights_of_another_run_are_not_copied(run_copy, tmp_path):
    run = Run.open(run_copy)
    weights = (
        run_copy / "checkpoints" / f"step-{run.checkpoints.best_step:08d}" / "weights.safetensors"
    )
    size = weights.stat().st_size
    manifest = weights.with_name("MANIFEST.json")
    manifest.write_text(manifest.read_text().replace(f'"size": {size}', f'"size": {20 << 30}'))
    os.truncate(weights, 20 << 30)
    for other in run.checkpoints.steps:
        if other != run.checkpoints.best_step:
            shutil.rmtree(run_copy / "checkpoints" / f"step-{other:08d}")
    with pytest.raises(InputError, match="weights.safetensors is sparse"):
        Run.open(run_copy, notice=lambda line: None).copy_checkpoint(tmp_path / "new")


PIPES = [
    "checkpoints/latest",
    "checkpoints/best",
    "metrics.jsonl",
    "samples.txt",
    "data/valid.source",
    "data/train/corpus.json",
    ".tmp-anything",
]


@pytest.mark.parametrize("name", PIPES)
def test_a_pipe_in_a_run_is_refused_at_once(run_copy, keras_seq_command, name):
    (run_copy / name).unlink(missing_ok=True)
    os.mkfifo(run_copy / name)
    found = keras_seq_command("translate", run_copy, "26/09/2034")
    assert found.code == 2
    assert found.error.startswith(f"{run_copy / name}: a pipe, expected a regular file")


def test_vectors_are_not_written_through_links(tmp_path, victim, keras_seq_command):
    text = tmp_path / "text"
    text.write_text("a dog runs\n" * 40)
    for name in (".tmp-dogs.txt", ".tmp-dogs.txt.ngrams", "dogs.txt"):
        (tmp_path / name).symlink_to(victim)
    options = ["--algorithm", "fasttext", "--buckets", 50, "--units", 4, "--epochs", 1]
    found = keras_seq_command("vectors", "train", text, "-o", tmp_path / "dogs.txt", *options)
    assert found.code == 0, found.err
    assert not (tmp_path / "dogs.txt").is_symlink()
    assert "dog" in (tmp_path / "dogs.txt").read_text()


@pytest.mark.parametrize("name", ["serving", "serving/README.md"])
def test_an_export_writes_no_guide_through_a_link(
    tiny_run, tmp_path, victim, keras_seq_command, name
):
    link = tmp_path / "served" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(victim.parent if name == "serving" else victim)
    found = keras_seq_command("export", tiny_run, tmp_path / "served", "--verify", 0)
    assert found.code == 2
    assert found.error.startswith(f"{link}: a link, expected a regular file")


@pytest.mark.parametrize("name", [".keras-seq", ".keras-seq/parts", ".keras-seq/done"])
def test_a_job_with_links_among_its_records_is_refused(
    tiny_run, tmp_path, victim, keras_seq_command, name
):
    (tmp_path / "a.txt").write_text("26/09/2034\n")
    link = tmp_path / "out" / name
    link.parent.mkdir(parents=True)
    link.symlink_to(victim.parent)
    arguments = ["translate", tiny_run, "--input", tmp_path / "a.txt", "--workers", 1]
    found = keras_seq_command(*arguments, "--output-dir", tmp_path / "out")
    assert found.code == 2
    assert found.error.startswith(f"{link}: a link, expected a")
