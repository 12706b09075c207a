"""The command line in general: help, version, exit codes and imports."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

import keras_seq

COMMANDS = [
    "train",
    "translate",
    "score",
    "likelihood",
    "diagnose",
    "average",
    "export",
    "serve",
    "demo",
]

# Runs a command line, then prints which heavy modules it imported.
WITNESS = """
import sys
from keras_seq_cli.main import main
try:
    code = main(sys.argv[1:])
except SystemExit as exit:
    code = exit.code
heavy = {"tensorflow", "keras", "jax", "torch", "tensorflow_text", "pandas"} & sys.modules.keys()
print("code", code, "heavy", sorted(heavy), file=sys.stderr)
"""


def witness(*arguments: str) -> str:
    result = subprocess.run(
        [sys.executable, "-c", WITNESS, *arguments], capture_output=True, text=True, check=True
    )
    return result.stderr.rstrip("\n").split("\n")[-1]


def test_the_light_commands_import_nothing_heavy(tmp_path):
    (tmp_path / "text").write_text("a b c d\n")
    text = str(tmp_path / "text")
    for arguments in (
        ["--help"],
        ["--version"],
        ["train", "--help"],
        ["score", text, "--reference", text],
    ):
        assert witness(*arguments) == "code 0 heavy []", arguments


def test_importing_the_package_imports_nothing_heavy():
    code = "import sys, keras_seq; print(sorted({'keras', 'numpy', 'pydantic'} & {*sys.modules}))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert result.stdout == b"[]\n"


def test_all_public_names_are_available():
    for name in keras_seq.__all__:
        assert getattr(keras_seq, name) is not None
    assert set(dir(keras_seq)) == set(keras_seq.__all__)
    with pytest.raises(AttributeError, match="no attribute 'absent'"):
        _ = keras_seq.absent


def test_version_option_prints_the_version(keras_seq_command):
    outcome = keras_seq_command("--version")
    assert (outcome.code, outcome.out) == (0, f"keras-seq {keras_seq.__version__}\n".encode())


def test_help_names_every_command(keras_seq_command):
    outcome = keras_seq_command("--help")
    assert outcome.code == 0
    for command in COMMANDS:
        assert f"\n  {command} " in outcome.out.decode()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_help(keras_seq_command, command):
    outcome = keras_seq_command(command, "--help")
    assert outcome.code == 0
    for line in outcome.lines:
        if line.startswith("  --"):
            assert len(line.split("  ")) > 2 or len(line) > 20, line


def test_missing_command_prints_help_and_exits_with_2(keras_seq_command):
    outcome = keras_seq_command()
    assert (outcome.code, outcome.out) == (2, b"")
    assert "Commands:" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["trian"], "Did you mean 'train'?"),
        (["train", "run", "--sorce", "x"], "--source"),
        (["train", "run", "--max-steps", "many"], "--max-steps"),
        (["score", "x"], "--reference"),
    ],
)
@pytest.mark.usefixtures("without_tensorflow")
def test_wrong_command_line_is_reported_in_one_line(keras_seq_command, arguments, words):
    outcome = keras_seq_command(*arguments)
    assert (outcome.code, outcome.out) == (2, b"")
    assert words in outcome.error


def test_internal_error_is_reported_in_one_line(keras_seq_command, monkeypatch, tmp_path):
    def broken(*_, **__):
        raise KeyError("some\ninvariant")

    monkeypatch.setattr("keras_seq.run.Run.open", broken)
    outcome = keras_seq_command("generate", tmp_path)
    assert outcome.code == 1
    assert outcome.error.startswith("internal error: KeyError: ")
    monkeypatch.setenv("KERAS_SEQ_TRACEBACK", "1")
    assert "Traceback (most recent call last)" in keras_seq_command("translate", "r", "a").err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_full_disk_behind_standard_output_is_reported(keras_seq_command, monkeypatch, tmp_path):
    path = tmp_path / "lines"
    path.write_text("a b c d\n")
    with open("/dev/full", "wb", buffering=0) as full:
        monkeypatch.setattr("sys.stdout", io.TextIOWrapper(full))
        outcome = keras_seq_command("score", path, "--reference", path)
    assert outcome.code == 1
    assert outcome.error == "standard output: no space left on device"


def test_a_tensor_without_room_is_reported_as_out_of_memory(
    keras_seq_command, monkeypatch, tmp_path
):
    """TensorFlow raises an error of its own."""
    import tensorflow as tf

    monkeypatch.setattr("keras_seq.run.Run.open", lambda *_, **__: tf.zeros((1 << 48,)))
    outcome = keras_seq_command("generate", tmp_path)
    assert outcome.code == 4
    assert outcome.error.startswith("out of memory: use smaller batches (--batch-size")


@pytest.mark.parametrize("control", ["\x1b]0;title\x07", "\x9b31m", "\r\x00\x7f"])
def test_messages_have_no_control_characters(keras_seq_command, tmp_path, control):
    """A terminal would obey them."""
    outcome = keras_seq_command("translate", f"{tmp_path}/no{control}run", "hi")
    assert outcome.code == 2
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in outcome.err.removesuffix("\n"))
    shown = [f"\\x{ord(c):02x}" for c in control if not (c.isprintable() or c.isspace())]
    assert shown and all(text in outcome.error for text in shown)
    assert "no such run directory" in outcome.error


def test_python_m_keras_seq_prints_the_version(keras_seq_process):
    outcome = keras_seq_process("--version")
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out.startswith(b"keras-seq ")
