"""The commands of docs/pretrained.md run, and its table shows the index of the package."""

import re
import shlex
from pathlib import Path

import pytest
from model_folder import add_model
from sound_files import write_sounds

from keras_seq.run.pretrained_models import pretrained_models
from keras_seq.settings import METRICS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "pretrained.md"
SMALL_RECOGNIZER = ("training.max_steps=1", "model.num_mels=8", "model.num_layers=1")


def blocks(language):
    text = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def test_the_table_shows_the_index_of_the_package(monkeypatch):
    monkeypatch.delenv("KERAS_SEQ_PRETRAINED", raising=False)
    shown = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"\| `([\w-]+)` \| (.+) \|$", line):
            shown[found[1]] = found[2].split(" | ")
    models = pretrained_models()
    assert list(shown) == list(models) and models
    for name, model in models.items():
        metric = METRICS[model.metric]
        score = f"{metric.label} {model.score:.{metric.digits}f}"
        cells = [model.task, model.data, model.license, score, f"{model.size / 1e6:.1f}"]
        assert shown[name] == cells


@pytest.mark.docs
@pytest.mark.weekly
def test_commands_and_code_of_the_page_run(
    tiny_run, classifier_run, tagger_run, tmp_path, monkeypatch, keras_seq_command, capsysbinary
):
    monkeypatch.chdir(tmp_path)
    sounds = write_sounds(tmp_path, 20, 1)
    (tmp_path / "1-0.wav").rename(tmp_path / "seven.wav")
    sounds.write_text(sounds.read_text().replace("1-0.wav", "seven.wav"))
    small = [word for setting in SMALL_RECOGNIZER for word in ("--set", setting)]
    train = ("train", "recognizer", "--task", "speech", "--data", sounds, *small)
    assert keras_seq_command(*train).code == 0
    runs = {
        "translate": tiny_run,
        "classify": classifier_run,
        "tag": tagger_run,
        "transcribe": tmp_path / "recognizer",
    }
    lines = [line for block in blocks("bash") for line in block.splitlines()]
    pattern = re.compile(r"(?:echo (?P<stdin>.+) \| )?keras-seq (?P<words>.+)")
    commands = [found for line in lines if (found := pattern.fullmatch(line))]
    assert len(commands) >= 5
    (tmp_path / "models").mkdir()
    used = {}
    for found in commands:
        command, model, *_ = shlex.split(found["words"])
        used[model.removeprefix("pretrained:")] = runs[command]
    for name, run in used.items():
        add_model(tmp_path / "models", name, run)
    monkeypatch.setenv("KERAS_SEQ_PRETRAINED", "models")
    for found in commands:
        [stdin] = shlex.split(found["stdin"] or "''")
        outcome = keras_seq_command(*shlex.split(found["words"]), stdin=f"{stdin}\n".encode())
        assert outcome.code == 0 and len(outcome.lines) == 1, outcome.err
    for block in blocks("python"):
        exec(compile(block, PAGE.name, "exec"), {})
    assert capsysbinary.readouterr().out.count(b"\n") == len(used) + 1
