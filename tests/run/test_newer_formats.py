"""Runs and prepared text of an unknown format are refused in one line."""

import json

import pytest
from run_helpers import save

from keras_seq.run import Run, check_new, is_run
from keras_seq.text import InputError

UPGRADE = "upgrade keras-seq: python -m pip install --upgrade keras-seq"


def mark(run, line):
    path = run.path / "settings.toml"
    _, _, rest = path.read_text().partition("\n")
    path.write_text(line + rest)


@pytest.mark.parametrize("number", ["2", "10", "999999999"])
@pytest.mark.parametrize("unknown", [False, True])
def test_run_of_a_newer_format_is_refused(run, reopened, number, unknown):
    save(run, 1)
    mark(run, f"# keras-seq run directory, format {number}\n" + "unheard_of = 1\n" * unknown)
    with pytest.raises(InputError) as refused:
        reopened()
    assert str(refused.value) == (
        f"{run.path / 'settings.toml'}: format {number} of a run directory, expected 1: {UPGRADE}"
    )


def test_run_of_a_newer_format_is_not_taken_for_another_directory(run):
    mark(run, "# keras-seq run directory, format 2\n")
    assert is_run(run.path)
    with pytest.raises(InputError, match="has a run already"):
        check_new(run.path)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "# keras-seq run directory, format 1\n",
        "# keras-seq run directory, format 1\r\n",
        # Comments of the user.
        "# keras-seq run directory, format x\n",
        "# keras-seq run directory, format 2 was planned\n",
    ],
)
def test_other_first_lines_are_comments(run, reopened, line):
    mark(run, line)
    assert reopened().settings == run.settings


@pytest.mark.parametrize("number", [2, 10**30])
def test_prepared_text_of_a_newer_format_is_refused(run, reopened, number):
    (run.path / "data").mkdir()
    run.write_preparation({"format": number, "files": {}})
    with pytest.raises(InputError) as refused:
        reopened().read_preparation()
    assert str(refused.value) == (
        f"{run.path / 'data' / 'prepared.json'}: format {str(number)[:20]} of prepared text, "
        f"expected 1: {UPGRADE}"
    )


def test_record_of_the_present_format_is_read(run, reopened):
    (run.path / "data").mkdir()
    run.write_preparation({"format": 1})
    assert reopened().read_preparation() == {"format": 1}


@pytest.mark.parametrize("number", [0, "2", None, 1.0, True, "\n" * 1000])
def test_record_without_the_number_of_a_format_is_refused(run, reopened, number):
    (run.path / "data").mkdir()
    run.write_preparation({"format": number})
    with pytest.raises(InputError) as refused:
        reopened().read_preparation()
    assert str(refused.value) == (
        f"{run.path / 'data' / 'prepared.json'}: format {number!r:.20} of prepared text, expected "
        "1: the file is damaged: copy it again"
    )


def test_run_without_prepared_text_has_no_record(run):
    assert Run.open(run.path).read_preparation() is None


@pytest.mark.parametrize("number", [2, 10**30])
def test_checkpoint_of_a_newer_format_is_refused(run, reopened, number):
    path = save(run, 1) / "MANIFEST.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": number}))
    with pytest.raises(InputError, match=f"format {str(number)[:20]} of .*1.*: {UPGRADE}$"):
        reopened().load_weights({})
