"""`keras-seq vectors`: train, nearest, analogy and plot, and their errors."""

import builtins
import sys
import tempfile
from pathlib import Path

import pytest


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("a Dog runs\na cat sleeps\nthe dog sleeps\nthe cat runs\n" * 50)
    return path


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "v.txt"
    path.write_text("king 1 1 0\nqueen 0 1 1\nman 1 0 0\nwoman 0 0 1\ncar -1 -1 -1\n")
    return path


def test_vectors_train_writes_vectors_and_nearest_reads_them(
    tmp_path, text, keras_seq_command, without_tensorflow
):
    output = tmp_path / "vectors.txt"
    command = ("vectors", "train", text, "--output", output, "--units", 8, "--lowercase")
    outcome = keras_seq_command(*command)
    assert outcome.code == 0 and outcome.out == b"", outcome.err
    assert "600 words, 6 distinct; 6 occur at least 5 times\n" in outcome.err
    assert "3,000 of 3,000 words, " in outcome.err and f"{output} written" in outcome.err
    head, *lines = output.read_text().split("\n")[:-1]
    assert head == "6 8"
    assert [line.split(" ")[0] for line in lines] == ["a", "dog", "runs", "cat", "sleeps", "the"]
    before = output.read_bytes()
    assert keras_seq_command(*command).code == 0
    assert output.read_bytes() == before
    outcome = keras_seq_command("vectors", "nearest", output, "dog", "--count", 3)
    assert outcome.code == 0 and len(outcome.lines) == 3
    outcome = keras_seq_command("vectors", "nearest", output, "dog", "cat", "--count", 2)
    assert [line.split("\t")[0] for line in outcome.lines] == ["dog"] * 2 + ["cat"] * 2


def test_fasttext_from_stdin_has_vectors_for_words_never_seen(tmp_path, text, keras_seq_command):
    output = tmp_path / "v.txt"
    outcome = keras_seq_command(
        *("vectors", "train", "-", "-o", output, "--algorithm", "fasttext", "--units", 8),
        stdin=text.read_bytes(),
    )
    assert outcome.code == 0, outcome.err
    outcome = keras_seq_command("vectors", "nearest", output, "sleepsy", "--count", 1)
    assert outcome.lines[0].startswith("sleeps\t")


def test_nearest_and_analogy_print_the_expected_words(file, keras_seq_command):
    outcome = keras_seq_command("vectors", "nearest", file, "king")
    # Cosine similarities of king with man and queen, computed by hand.
    assert outcome.lines[:2] == ["man\t0.7071", "queen\t0.5000"]
    outcome = keras_seq_command("vectors", "analogy", file, "man", "king", "woman", "--count", 1)
    assert outcome.lines[0].startswith("queen\t")


def test_dry_run_writes_nothing(tmp_path, text, keras_seq_command):
    outcome = keras_seq_command("vectors", "train", text, "-o", tmp_path / "v.txt", "--dry-run")
    assert outcome.code == 0
    assert outcome.lines[0] == "7 vectors of size 100"
    assert {path.name for path in tmp_path.iterdir()} == {"text.txt"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("train", "none.txt", "-o", "v.txt"), "none.txt: no such file"),
        (("train", "empty.txt", "-o", "v.txt"), "empty.txt: empty, there are no words"),
        (("train", "bad.txt", "-o", "v.txt"), "bad.txt:2: invalid UTF-8"),
        (("train", "text.txt", "-o", "v.txt", "--min-count", 999), "0 words come 999 times or"),
        (("train", "text.txt", "-o", "no/v.txt"), "no/v.txt: cannot be written: expected a"),
        (("train", "text.txt", "-o", "v/"), "v/: cannot be written: expected a"),
        (("train", "text.txt", "-o", "-"), "-: cannot be written"),
        (("train", "text.txt"), "Missing option '--output'"),
        (
            ("train", "text.txt", "-o", "v.txt", "--learning-rate", -1),
            "learning_rate: received -1.0, expected a",
        ),
        (
            ("train", "text.txt", "-o", "v.txt", "--algorithm", "glove", "--loss", "softmax"),
            "loss: received 'softmax'; glove has a loss of its own",
        ),
        (("nearest", "none.txt", "dog"), "none.txt: no such file"),
        (("nearest", "empty.txt", "dog"), "empty.txt: empty, it has no word with a vector"),
        (("nearest", "text.txt", "dog"), "text.txt:1: could not convert string to float"),
        (("nearest", "v.txt", "wman"), "v.txt: no vector for 'wman' - did you mean woman"),
        (("analogy", "v.txt", "man", "king", "Woman"), "for 'Woman' - did you mean woman"),
        (("plot", "v.txt", "-o", "map.pdf"), "map.pdf: expected a name that ends in .html or"),
        (("plot", "v.txt", "-o", "no/map.html"), "no/map.html: cannot be written"),
        (("plot", "v.txt", "-o", "map.html", "--word", "qqq"), "no vector for 'qqq'"),
        (("plot", "v.txt", "-o", "map.html", "--word", "man"), "1 words, expected 3 at least"),
        (
            ("plot", "v.txt", "-o", "map.html", "--perplexity", 9),
            "perplexity: received 9, expected above 0 and below the 5 words",
        ),
    ],
)
def test_vectors_commands_reject_wrong_input_in_one_line(
    tmp_path, text, file, keras_seq_command, monkeypatch, arguments, message
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").touch()
    (tmp_path / "bad.txt").write_bytes(b"a\n\xff\n")
    before = {path.name for path in tmp_path.iterdir()}
    outcome = keras_seq_command("vectors", *arguments)
    assert outcome.code == 2 and message in outcome.error and outcome.out == b""
    assert {path.name for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    ("module", "arguments", "message"),
    [
        ("numba", ("train", "text.txt", "-o", "o.txt"), "pip install 'keras-seq[vectors]'"),
        ("sklearn", ("plot", "v.txt", "-o", "map.html"), "needs scikit-learn: python -m pip"),
        ("matplotlib", ("plot", "v.txt", "-o", "map.png"), "needs matplotlib: python -m pip"),
    ],
)
def test_missing_vectors_extra_is_named_in_the_error(
    tmp_path, text, file, keras_seq_command, monkeypatch, module, arguments, message
):
    monkeypatch.chdir(tmp_path)
    for name in list(sys.modules):
        if name.startswith("keras_seq.vectors.") or name.partition(".")[0] == module:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    outcome = keras_seq_command("vectors", *arguments)
    assert outcome.code == 2 and message in outcome.error


def test_vectors_help_imports_no_heavy_modules(keras_seq_command, monkeypatch):
    real = builtins.__import__

    def light(name, *rest, **more):
        assert name.partition(".")[0] not in ("numba", "sklearn", "scipy", "tensorflow")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", light)
    outcome = keras_seq_command("vectors", "train", "--help")
    assert outcome.code == 0 and b"--algorithm" in outcome.out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("name", ["map.html", "map.png"])
def test_full_disk_is_reported_with_the_name_of_the_map(tmp_path, file, keras_seq_command, name):
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    (tmp_path / name).symlink_to("/dev/full")
    outcome = keras_seq_command("vectors", "plot", file, "-o", tmp_path / name)
    assert outcome.code == 1
    assert outcome.error == f"{tmp_path / name}: no space left on device"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk_is_reported_with_the_folder_of_the_temporary_file(
    tmp_path, text, keras_seq_command, monkeypatch
):
    def full(**_):
        return open("/dev/full", "w+b", buffering=0)

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    outcome = keras_seq_command("vectors", "train", text, "-o", tmp_path / "v.txt")
    assert outcome.code == 1
    assert outcome.error == f"{tempfile.gettempdir()}: no space left on device"
