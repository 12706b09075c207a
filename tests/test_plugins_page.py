"""Every file and command of docs/plugins.md works, on small texts with small models."""

import re
import shlex
from pathlib import Path

import pytest
from restored_plugins import restored_plugins

pytestmark = pytest.mark.docs

PAGE = Path(__file__).resolve().parents[1] / "docs" / "plugins.md"
SMALL = {
    "training.max_steps": 2,
    "training.validate_every": 2,
    "training.sample_count": 0,
    "tokenizer.size": 300,
    "search.max_length": 8,
}
SMALL_MODEL = {
    "gru": {"model.units": 8},
    "topics": {"model.units": 8},
    "focal": {"model.family": "rnn"}
    | {f"model.{name}": 8 for name in ("embedding_units", "encoder_units", "decoder_units")},
}
SMALL_MODEL["syllables"] = SMALL_MODEL["focal"]


def blocks(language):
    text = PAGE.read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the files that the page names."""
    words = [f"{a}{b} no" for a in ("ka", "mi", "ta", "so") for b in ("ka", "na", "to")] * 3
    pairs = "".join(f"{word}\t{word[::-1]}\n" for word in words)
    for name in ("pairs.tsv", "unseen.tsv"):
        (tmp_path / name).write_text(pairs)
    (tmp_path / "topics.tsv").write_text("".join(f"{word}\t{word[0]}\n" for word in words))
    (tmp_path / "input.txt").write_text("kano\nmiso\n")
    for block in blocks("python"):
        if named := re.match(r"# (\w+\.py)\n", block):
            (tmp_path / named[1]).write_text(block)
    monkeypatch.chdir(tmp_path)
    with restored_plugins():
        yield tmp_path


@pytest.mark.weekly
def test_every_command_and_file_of_the_plugins_page_works(folder, keras_seq_command):
    commands = [shlex.split(line) for block in blocks("bash") for line in block.split("\n") if line]
    for program, *arguments in commands:
        assert program == "keras-seq"
        if arguments[0] == "train":
            settings = SMALL | SMALL_MODEL[Path(arguments[1]).name]
            if "classify" in arguments:
                del settings["search.max_length"]
            arguments += [f"--set={key}={value}" for key, value in settings.items()]
        if arguments[0] == "export":
            arguments += ["--verify", "4"]
        outcome = keras_seq_command(*arguments)
        assert outcome.code == 0, f"{shlex.join(arguments)}\n{outcome.err}"
        if "same-length,exact" in arguments:
            assert "answers as long as the reference = " in outcome.out.decode()
    assert (folder / "runs" / "focal" / "epochs.csv").exists()
    for block in blocks("python"):
        if not block.startswith("# "):
            exec(block, {})


@pytest.mark.weekly
def test_quoted_message_is_that_of_the_command(folder, keras_seq_process):
    family = ["--import", "plain_gru.py", "--set=model.family=plain-gru"]
    small = [f"--set={key}={value}" for key, value in (SMALL | SMALL_MODEL["gru"]).items()]
    trained = keras_seq_process("train", "runs/gru", "--pairs", "pairs.tsv", *family, *small)
    assert trained.code == 0, trained.err
    (quoted,) = re.findall(r"^    keras-seq: (.*)$", PAGE.read_text("utf-8"), re.MULTILINE)
    assert keras_seq_process("translate", "runs/gru", "input.txt").error == quoted
