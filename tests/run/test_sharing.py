"""Runs that are uploaded to the Hugging Face Hub, and used from there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from weekly import weekly_but

import keras_seq
from keras_seq.run import Run
from keras_seq.run.hub_address import FILES, HubAddress
from keras_seq.run.sharing import public_copy
from keras_seq.text import InputError

pytest.importorskip("huggingface_hub")
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "text",
    [
        "runs/dates",
        "hf://anna",
        "hf://anna/dates/more",
        "hf://../dates",
        "hf://anna/dates@",
        "hf:/anna/dates",
    ],
)
def test_wrong_addresses_are_refused(text):
    with pytest.raises(InputError, match="expected hf://USER/NAME"):
        HubAddress.parse(text)


def test_public_copy_has_no_text_and_no_path_of_the_training(tiny_run, tmp_path):
    run = Run.open(tiny_run)
    copy = public_copy(run, tmp_path / "copy")
    names = {path.relative_to(copy.path).as_posix() for path in copy.path.rglob("*")}
    assert not [name for name in names if "valid" in name or name.startswith("data/train")]
    texts = [path.read_bytes() for path in copy.path.rglob("*") if path.is_file()]
    folder = str(Path(run.settings.data.pairs).parent).encode()
    assert not [text for text in texts if folder in text]
    lines = ["1 May 2020", "3 June 2021"]
    expected = keras_seq.Translator.load(tiny_run)(lines)
    assert keras_seq.Translator.load(copy.path)(lines) == expected


def test_a_copy_has_no_text_to_verify_an_export_with(tiny_run, tmp_path, keras_seq_command):
    copy = public_copy(Run.open(tiny_run), tmp_path / "copy").path
    done = keras_seq_command("export", copy, tmp_path / "served")
    assert done.code == 2 and "no validation text: name a test set, or export" in done.error
    assert not (tmp_path / "served").exists()


@pytest.mark.slow
@pytest.mark.parametrize("run", weekly_but(["tiny_run", "tagger_run"], "tiny_run"))
def test_a_copy_is_exported_without_verification(run, request, tmp_path, keras_seq_command):
    copy = public_copy(Run.open(request.getfixturevalue(run)), tmp_path / "copy").path
    done = keras_seq_command("export", copy, tmp_path / "served", "--verify", 0)
    assert done.code == 0, done.err
    assert (tmp_path / "served" / "1" / "saved_model.pb").is_file()


def run_command(hub, cache, *arguments, token="secret"):
    environment = {
        **os.environ,
        "HF_ENDPOINT": hub,
        "HF_TOKEN": token,
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "KERAS_SEQ_CACHE": str(cache),
        "PYTHONPATH": str(ROOT),
    }
    return subprocess.run(
        [sys.executable, "-m", "keras_seq", *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.process
def test_a_pushed_run_translates_from_its_address(hub, tiny_run, tmp_path):
    cache = tmp_path / "cache"
    pushed = run_command(
        hub, cache, "push", tiny_run, "hf://anna/dates", "--license", "mit", "--language", "en"
    )
    assert (pushed.returncode, pushed.stdout) == (0, f"{hub}/anna/dates\n"), pushed.stderr
    expected = run_command(hub, cache, "translate", tiny_run, "1 May 2020")
    found = run_command(hub, cache, "translate", "hf://anna/dates", "1 May 2020")
    assert (found.returncode, found.stdout) == (0, expected.stdout), found.stderr
    assert (cache / "hub" / "anna" / "dates" / "main" / "settings.toml").exists()

    pulled = run_command(hub, cache, "pull", "hf://anna/dates", tmp_path / "pulled")
    assert pulled.returncode == 0, pulled.stderr
    card = (tmp_path / "pulled" / "README.md").read_text(encoding="utf-8")
    head = yaml.safe_load(card.split("---\n")[1])
    assert head["language"] == "en" and head["license"] == "mit"
    assert head["library_name"] == "keras-seq" and head["pipeline_tag"] == "translation"
    assert "keras-seq translate hf://anna/dates" in card
    # Without the Hub, the last download is used.
    alone = run_command("http://127.0.0.1:9", cache, "translate", "hf://anna/dates", "1 May 2020")
    assert (alone.returncode, alone.stdout) == (0, expected.stdout), alone.stderr
    again = run_command(hub, cache, "pull", "hf://anna/dates", tmp_path / "pulled")
    assert again.returncode == 2


@pytest.mark.process
def test_errors_of_the_hub_are_one_line(hub, tiny_run, tmp_path):
    for arguments, words in (
        (("pull", "hf://anna/nothing", tmp_path / "a"), "no such repository"),
        (("translate", "hf://anna/nothing", "x"), "no such repository"),
        (("push", tiny_run, "hf://anna/dates@v2"), "without a revision"),
    ):
        done = run_command(hub, tmp_path / "cache", *arguments)
        assert done.returncode == 2 and words in done.stderr, done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
    done = run_command(hub, tmp_path, "push", tiny_run, "hf://anna/other", token="wrong")
    assert done.returncode == 2 and "hf://anna/other: " in done.stderr, done.stderr


def test_every_file_that_a_run_needs_is_downloaded(tiny_run, tmp_path):
    from fnmatch import fnmatch

    copy = public_copy(Run.open(tiny_run), tmp_path / "copy")
    names = [path.relative_to(copy.path).as_posix() for path in copy.path.rglob("*")]
    files = [name for name in names if (copy.path / name).is_file() and name != ".lock"]
    assert not [name for name in files if not any(fnmatch(name, one) for one in FILES)]
