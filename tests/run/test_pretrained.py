"""Models of the collection: from a folder and from the Hub, and the script that builds them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from model_folder import add_model

import keras_seq
from keras_seq.run.pretrained_models import PretrainedModel, digest
from keras_seq.text import InputError

ROOT = Path(__file__).resolve().parents[2]
LINES = ["1 May 2020", "3 June 2021"]


@pytest.fixture
def folder(tiny_run, tmp_path, monkeypatch):
    """A folder with the model `dates`, which is the one to use."""
    folder = tmp_path / "models"
    folder.mkdir()
    add_model(folder, "dates", tiny_run)
    monkeypatch.setenv("KERAS_SEQ_PRETRAINED", str(folder))
    return folder


def test_names_have_a_line_with_task_data_license_citation_score_and_size(folder):
    line = (
        "dates to ISO 8601; made for this test; license of the data: CC0; Doe 2020; "
        "exact match 12.50 on 1,200 examples; 2.3 MB"
    )
    assert keras_seq.pretrained.names() == {"dates": line}


@pytest.mark.slow
@pytest.mark.weekly
def test_a_translator_is_loaded_by_name(folder, tiny_run):
    translator = keras_seq.pretrained.load("dates", beam_size=1)
    assert type(translator) is keras_seq.Translator
    assert translator(LINES) == keras_seq.Translator.load(tiny_run, beam_size=1)(LINES)
    assert keras_seq.Translator.load("pretrained:dates", beam_size=1)(LINES) == translator(LINES)


def test_a_classifier_is_loaded_by_name(folder, classifier_run):
    add_model(folder, "weather", classifier_run)
    classifier = keras_seq.pretrained.load("pretrained:weather")
    assert type(classifier) is keras_seq.Classifier
    assert classifier(["rain"]) == keras_seq.Classifier.load(classifier_run)(["rain"])


def test_a_command_takes_a_name(folder, tiny_run, keras_seq_command):
    expected = keras_seq_command("translate", tiny_run, LINES[0])
    found = keras_seq_command("translate", "pretrained:dates", LINES[0])
    assert (found.code, found.lines) == (0, expected.lines)


def test_a_model_can_be_evaluated_and_loaded_again(folder, dates_file, keras_seq_command):
    for _ in range(2):
        done = keras_seq_command("evaluate", "pretrained:dates", "--pairs", dates_file)
        assert done.code == 0, done.err
    assert "dates.tsv" in (folder / "dates" / "README.md").read_text(encoding="utf-8")


def test_digest_is_the_sha256_of_what_sha256sum_prints(folder):
    directory = folder / "dates"
    names = {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}
    listed = sorted(names - {"README.md", ".lock"})
    printed = subprocess.run(["sha256sum", *listed], cwd=directory, capture_output=True, check=True)
    total = subprocess.run(["sha256sum"], input=printed.stdout, capture_output=True, check=True)
    assert total.stdout.decode().split()[0] == digest(directory)


def test_a_wrong_name_is_answered_with_the_names(folder, keras_seq_command):
    done = keras_seq_command("translate", "pretrained:date", "x")
    assert done.code == 2
    assert f"pretrained:date: {folder} has no such model, expected one of: dates;" in done.error
    assert "`python tools/make_pretrained.py --help` lists" in done.error


def damage(path):
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


@pytest.mark.parametrize(
    "change",
    [
        lambda model: damage(next(model.rglob("weights.safetensors"))),
        lambda model: damage(model / "settings.toml"),
        lambda model: next(model.glob("tokenizer/*")).unlink(),
        lambda model: (model / "data").mkdir() or (model / "data/source.vectors").write_text("1"),
    ],
    ids=["a weight", "a setting", "a missing file", "an added file"],
)
def test_changed_files_are_refused(folder, change):
    change(folder / "dates")
    with pytest.raises(InputError, match="the files differ from those that were built"):
        keras_seq.pretrained.load("dates")


def test_a_link_is_refused(folder, tmp_path):
    settings = folder / "dates" / "settings.toml"
    settings.rename(tmp_path / "elsewhere")
    settings.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="a link, expected a regular file"):
        keras_seq.pretrained.load("dates")


def test_a_missing_directory_is_reported_with_the_command_that_builds_it(folder):
    shutil.rmtree(folder / "dates")
    with pytest.raises(InputError, match=r"no such directory; to build it: python tools/"):
        keras_seq.pretrained.load("dates")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "no such file: build the models with"),
        ('{"dates": {"task": "x"}}', "not an index of trained models"),
        ('{"dates": 1}', "not an index of trained models"),
        ("[", "not valid JSON"),
    ],
)
def test_a_wrong_index_is_refused(folder, content, words):
    (folder / "index.json").unlink()
    if content is not None:
        (folder / "index.json").write_text(content)
    with pytest.raises(InputError, match=words):
        keras_seq.pretrained.names()


def test_a_model_whose_data_has_no_license_is_not_looked_for_on_the_hub(monkeypatch):
    monkeypatch.delenv("KERAS_SEQ_PRETRAINED", raising=False)
    with pytest.raises(InputError, match="not on the Hub, because the license of its data is none"):
        keras_seq.pretrained.load("questions-trec")


# The Hub


def run_process(*command, folder=ROOT, **environment):
    inherited = {key: value for key, value in os.environ.items() if key != "KERAS_SEQ_PRETRAINED"}
    return subprocess.run(
        [sys.executable, *map(str, command)],
        env={**inherited, "PYTHONPATH": str(folder), **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


UPLOAD = """
import sys, huggingface_hub
api = huggingface_hub.HfApi()
api.create_repo(sys.argv[1])
api.upload_folder(repo_id=sys.argv[1], folder_path=sys.argv[2])
"""


@pytest.mark.process
def test_a_model_is_loaded_from_the_hub_if_its_files_are_those_of_the_package(
    hub, folder, tiny_run, tmp_path
):
    # The package of a release has the index of the models that were uploaded.
    package = tmp_path / "package"
    for name in ("keras_seq", "cli"):
        target = package / {"cli": "keras_seq_cli"}.get(name, name)
        shutil.copytree(ROOT / name, target, ignore=shutil.ignore_patterns("__pycache__"))
    index = package / "keras_seq" / "run" / "pretrained_models.json"
    shutil.copyfile(folder / "index.json", index)
    environment = {
        "HF_ENDPOINT": hub,
        "HF_TOKEN": "secret",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
        "KERAS_SEQ_CACHE": str(tmp_path / "cache"),
        "folder": package,
    }
    translate = ("-m", "keras_seq", "translate", "pretrained:dates", LINES[0])

    missing = run_process(*translate, **environment)
    assert missing.returncode == 2 and "hf://keras-seq/dates: no such repository" in missing.stderr
    assert "to build it: python tools/make_pretrained.py FOLDER dates" in missing.stderr

    uploaded = run_process("-c", UPLOAD, "keras-seq/dates", folder / "dates", **environment)
    assert uploaded.returncode == 0, uploaded.stderr
    expected = keras_seq.Translator.load(tiny_run)([LINES[0]])
    found = run_process(*translate, **environment)
    assert (found.returncode, found.stdout.split("\n")[:-1]) == (0, expected), found.stderr

    entry = json.loads(index.read_text())["dates"]
    index.write_text(json.dumps({"dates": entry | {"digest": "0" * 64}}))
    other = run_process(*translate, **environment)
    assert other.returncode == 2 and "delete the directory" in other.stderr


# The script

FEW_UPDATES = (
    *("--set", "training.max_steps=2", "--set", "training.validate_every=2"),
    *("--set", "training.checkpoint_every=2", "--set", "training.sample_count=0"),
)


@pytest.mark.process
@pytest.mark.weekly
def test_the_script_builds_a_model_that_is_loaded_by_name(tmp_path):
    script = ROOT / "tools" / "make_pretrained.py"
    # A model of two updates writes translations of the largest length.
    small = (
        "model.units=32",
        "model.feedforward_units=32",
        "search.max_length=4",
        "search.beam_size=1",
    )
    options = (word for value in small for word in ("--set", value))
    built = run_process(script, tmp_path, "dates", *FEW_UPDATES, *options)
    assert built.returncode == 0, built.stderr
    [entry] = json.loads((tmp_path / "index.json").read_text()).values()
    model = PretrainedModel(**entry)
    assert model.examples == 1000 and model.shared
    assert built.stdout == f"dates: {model}\n"
    files = [path for path in (tmp_path / "dates").rglob("*") if path.is_file()]
    assert model.size == sum(path.stat().st_size for path in files)
    assert not [path for path in files if path.name == "training.safetensors"]
    assert not [path for path in files if str(tmp_path).encode() in path.read_bytes()]
    card = (tmp_path / "dates" / "README.md").read_text(encoding="utf-8")
    assert "trained on `train.date -> train.iso`." in card
    assert "license: apache-2.0" in card and "keras-seq translate pretrained:dates" in card
    assert "| EXACT |" in card and "keras-seq demo run --set training.max_steps=2" in card
    command = ("-m", "keras_seq", "translate", "pretrained:dates", "1 May 2020")
    used = run_process(*command, KERAS_SEQ_PRETRAINED=str(tmp_path))
    assert (used.returncode, used.stdout.count("\n")) == (0, 1), used.stderr


@pytest.mark.process
@pytest.mark.weekly
def test_the_script_builds_a_public_task_and_marks_a_model_that_must_not_be_shared(tmp_path):
    # The modules of the benchmark have names that the tests use for others.
    write = "import pathlib, sys, tasks; tasks.write_small(pathlib.Path(sys.argv[1]))"
    (tmp_path / "data").mkdir()
    benchmark = str(ROOT / "benchmarks" / "public")
    assert run_process("-c", write, tmp_path / "data", PYTHONPATH=benchmark).returncode == 0
    script = ROOT / "tools" / "make_pretrained.py"
    options = ("--data", tmp_path / "data", *FEW_UPDATES, "--set", "model.members=1")
    built = run_process(script, tmp_path / "zoo", "questions-trec", *options)
    assert built.returncode == 0, built.stderr
    entry = json.loads((tmp_path / "zoo" / "index.json").read_text())["questions-trec"]
    assert entry["shared"] is False and entry["examples"] == 30
    card = (tmp_path / "zoo" / "questions-trec" / "README.md").read_text(encoding="utf-8")
    assert "So the model must not be published." in card and "license:" not in card
    assert "keras-seq train run --labeled train.tsv.gz --valid-labeled valid.tsv.gz" in card


@pytest.mark.process
@pytest.mark.parametrize(("size", "code"), [(10_000_000, 0), (10_000_001, 1)])
def test_the_script_fails_above_10_megabytes(tmp_path, size, code):
    with (tmp_path / "weights").open("wb") as file:
        file.truncate(size)
    check = (
        "import pathlib, sys, make_pretrained\n"
        "print(make_pretrained.checked_size(pathlib.Path(sys.argv[1])))"
    )
    done = run_process("-c", check, tmp_path, PYTHONPATH=str(ROOT / "tools"))
    assert done.returncode == code, done.stderr
    if code:
        assert "10,000,001 bytes, expected at most 10,000,000" in done.stderr
    else:
        assert done.stdout == "10000000\n"
