"""Names of inputs that cannot be the names of outputs, on this system or on another."""

import gzip
import unicodedata

import pytest

pytestmark = pytest.mark.usefixtures("without_tensorflow")


@pytest.fixture
def refusal(tiny_run, tmp_path, keras_seq_command):
    """Returns the message for a job that must be refused before it writes anything."""

    def call(*names):
        arguments = []
        for number, name in enumerate(names):
            folder = tmp_path / str(number)
            folder.mkdir()
            (folder / name).write_bytes(gzip.compress(b"") if name.endswith(".gz") else b"")
            arguments += ["--input", folder / name]
        outcome = keras_seq_command(
            "translate", tiny_run, *arguments, "--output-dir", tmp_path / "out"
        )
        assert (outcome.code, outcome.out) == (2, b"")
        assert not (tmp_path / "out").exists()
        return outcome.error.removeprefix(f"{tmp_path}/{len(names) - 1}/{names[-1]}: ")

    return call


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("a.txt", "A.TXT"),
        ("äpfel.txt", "ÄPFEL.txt"),
        (unicodedata.normalize("NFC", "Füße.txt"), unicodedata.normalize("NFD", "Füße.txt")),
    ],
)
def test_names_that_differ_by_case_or_form_are_refused(
    refusal, tmp_path, monkeypatch, first, second
):
    """macOS and Windows ignore the case of names, and macOS the Unicode form."""
    monkeypatch.setattr("keras_seq.operating_system.sys.platform", "darwin")
    said = refusal(first, second)
    assert said.startswith(f"would have the same output as {tmp_path}/0/{first}, {tmp_path}/out/")
    assert said.endswith(": translate them into two directories")


@pytest.mark.parametrize("name", [".gz", ".keras-seq", f"{'x' * 251}.gz"])
def test_a_name_without_room_for_the_records_of_a_job_is_refused(refusal, name):
    assert "cannot name an output: rename the input" in refusal(name)


def test_a_name_that_the_system_changes_is_refused(refusal, monkeypatch):
    monkeypatch.setattr("keras_seq.jobs.translation.keeps_name", lambda name: name != "aux.txt")
    assert "'aux.txt' cannot name an output: rename the input" in refusal("aux.txt.gz")
