"""Every block of the README and the docs runs, and the generated pages are up to date.

Each change runs the README; all pages together take minutes and are `weekly`.
tests/test_documented_commands.py checks the options of every command at each change.

The blocks run as printed, in order, in a folder with small files under the names that the README
uses. A command that occurs in several blocks runs once. Three differences keep the tests fast:

* `keras-seq train` gets the settings `SMALL` in addition to its own, and some trainings are dry
  runs. In Python blocks, `SMALL` replaces `"training.max_minutes": 30`.
* `keras-seq export` writes a SavedModel with `--verify 0`; Python blocks verify their exports.
* `python -m pip`, `python -m pytest`, `keras-seq demo` and `python docs/make_docs.py` do nothing,
  because `.ci/run`, `tests/cli/test_demo.py` and `tests/test_site.py` cover them.

Blocks of plain commands run in this process, which saves each command the seconds that TensorFlow
needs to start. Commands with several processes or devices, and other shell syntax, run in a shell.
"""

import importlib
import os
import re
import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
# Trains and exports the run that most of the other pages use.
FIRST_MODEL = ROOT / "docs" / "first-model.md"
DOCUMENTS = list(dict.fromkeys([README, FIRST_MODEL, *sorted((ROOT / "docs").rglob("*.md"))]))
# Pages with many commands, each with its own test that runs the commands in one process.
PAGES_WITH_OWN_TESTS = [
    ROOT / "docs" / name
    for name in (
        "callbacks.md",
        "classification.md",
        "diagnosis.md",
        "generation-from-vectors.md",
        "kernel-regression.md",
        "language-models.md",
        "latent-variables.md",
        "metrics.md",
        "migration.md",
        "output.md",
        "plugins.md",
        "pretrained.md",
        "pretrained-encoders.md",
        "decoding.md",
        "speech.md",
        "training.md",
        "tuning.md",
        "vectors.md",
    )
]
# The script that writes the generated pages.
sys.path.insert(0, str(ROOT / "docs"))
generated = importlib.import_module("make_generated_pages")

SMALL = {
    "model.members": 1,
    "model.num_encoder_layers": 1,
    "model.num_decoder_layers": 1,
    "model.units": 16,
    "model.feedforward_units": 16,
    "model.num_heads": 2,
    "training.max_steps": 2,
    "training.validate_every": 2,
    "training.checkpoint_every": 1,
    "training.patience": 1,
    "training.sample_count": 0,
    "search.max_length": 8,
}
# What the settings of a language model lack.
ENCODER_AND_DECODER = ("model.members", "model.num_encoder_layers", "model.num_decoder_layers")
# Other tests train with the options of these commands.
DRY = [
    f"runs/{name}"
    for name in "mine bpe letters tagged one two small two-devices shared largest more".split()
]
PYTHON_LIMIT = '"training.max_minutes": 30'


def blocks(path, language):
    text = path.read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path_factory):
    """Small files under the README's names, and wrappers for `keras-seq` and `python`."""
    from keras_seq.text.dates import date_pairs

    folder = tmp_path_factory.mktemp("readme")
    pairs = date_pairs(120)
    columns = {"en": [pair[0] for pair in pairs], "de": [pair[1] for pair in pairs]}
    for language, lines in columns.items():
        for split, part in (("train", lines[:100]), ("val", lines[100:110]), ("test", lines[110:])):
            text = "".join(f"{line}\n" for line in part).encode()
            (folder / f"{split}.{language}").write_bytes(text)
            subprocess.run(["gzip", "-k", folder / f"{split}.{language}"], check=True)
    # All pairs fit into the smallest batch, so `--batch-tokens auto` starts only one process.
    (folder / "pairs.tsv").write_text(
        "".join(f"{source}\t{target}\n" for source, target in pairs[:60]), encoding="utf-8"
    )
    (folder / "unseen.tsv").write_text(
        "".join(f"{source}\t{target}\n" for source, target in pairs[60:80]), encoding="utf-8"
    )
    (folder / "mono.de").write_bytes((folder / "test.de").read_bytes())
    (folder / "mine.toml").write_text(
        "".join(blocks(ROOT / "docs" / "presets.md", "toml")), encoding="utf-8"
    )

    programs = folder / "programs"
    programs.mkdir()
    small = shlex.join(small_options([]))
    python = shlex.quote(sys.executable)
    write_program(
        programs / "keras-seq",
        f'case "$2" in {"|".join(DRY)}) set -- "$@" --dry-run;; esac\n'
        f'case "$1" in demo) exit 0;; train) exec {python} -m keras_seq "$@" {small};; esac\n'
        'case "$*" in *--format*) ;; export*) set -- "$@" --verify 0;; esac\n'
        f'exec {python} -m keras_seq "$@"\n',
    )
    write_program(
        programs / "python",
        'case "$1 $2" in "-m pip"|"-m pytest"|"docs/make_docs.py ") exit 0;; esac\n'
        f'exec {python} "$@"\n',
    )
    return folder


def write_program(path, body):
    path.write_text(f"#!/bin/sh\n{body}", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def run_in(folder, *command):
    result = subprocess.run(
        command,
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{folder / 'programs'}{os.pathsep}{os.environ['PATH']}",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def small_options(arguments):
    """Returns the options of a training on a small model, or of none at all."""
    left_out = ENCODER_AND_DECODER if "language-model" in arguments else ()
    small = [f"--set={key}={value}" for key, value in SMALL.items() if key not in left_out]
    return [*small, "--dry-run"] if set(DRY).intersection(arguments) else small


# A command that runs in this process, and the file of its output.
PLAIN_COMMAND = re.compile(r"keras-seq (?P<arguments>[^&|<>$]+?)(?: > (?P<output>\S+))?")
OWN_PROCESS = re.compile(r"--(devices|backend|hosts|workers|runner)|--batch-tokens auto|serve ")


def run_plain(command, keras_seq_command):
    """Runs a `PLAIN_COMMAND` with the differences that the wrapper of `folder` has."""
    arguments = shlex.split(command["arguments"])
    if arguments[0] == "train":
        arguments += small_options(arguments)
    if arguments[0] == "export" and "--format" not in arguments:
        arguments += ["--verify", "0"]
    outcome = keras_seq_command(*arguments)
    assert outcome.code == 0, f"{command[0]}\n{outcome.err}"
    if command["output"]:
        Path(command["output"]).write_bytes(outcome.out)


@pytest.mark.docs
@pytest.mark.parametrize(
    "pages",
    [
        pytest.param([README], id="readme"),
        pytest.param(DOCUMENTS, id="all", marks=pytest.mark.weekly),
    ],
)
def test_every_block_runs(pages, folder, monkeypatch, keras_seq_command):
    monkeypatch.chdir(folder)
    have_run = set()
    for path in pages:
        for block in blocks(path, "bash") if path not in PAGES_WITH_OWN_TESTS else []:
            lines = block.split("\n")
            new = [line for line in lines if line and line not in have_run]
            commands = list(map(PLAIN_COMMAND.fullmatch, new))
            if all(commands) and not any(map(OWN_PROCESS.search, new)):
                for command in commands:
                    run_plain(command, keras_seq_command)
            else:
                run_in(folder, "bash", "-euo", "pipefail", "-c", "\n".join(new))
            # Skip repeats only of one-line commands that did not run in the background.
            have_run |= {line for line in lines if re.match(r"keras-seq .*[^&\\]$", line)}
    assert (folder / "served" / "dates" / "1" / "saved_model.pb").is_file()
    if FIRST_MODEL in pages:
        lines = (folder / "test.en").read_text().count("\n")
        assert (folder / "test.hyp").read_text().count("\n") == lines
        assert len((folder / "test.nbest").read_text().split("\n")) > lines
    run_python_blocks(folder, [path for path in pages if path not in PAGES_WITH_OWN_TESTS])


def run_python_blocks(folder, pages):
    """Runs the Python blocks of the pages, which use the runs of the shell blocks."""
    python = [block for path in pages for block in blocks(path, "python")]
    assert any(PYTHON_LIMIT in block for block in python)
    small = ", ".join(f"{key!r}: {value!r}" for key, value in SMALL.items())
    # In one process, which saves each block the seconds that TensorFlow needs to start.
    scripts = [block.replace(PYTHON_LIMIT, small) for block in python]
    run_in(folder, sys.executable, "-c", f"for script in {scripts!r}: exec(script, {{}})")


def test_every_block_has_a_language_that_is_tested():
    for path in DOCUMENTS:
        fences = re.findall(r"^```(\w*)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert set(fences) <= {"", "bash", "mermaid", "python", "toml"}


def test_the_readme_is_short():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 130


def test_every_command_and_option_has_help_and_is_in_the_documents():
    documents = "".join(
        path.read_text(encoding="utf-8") for path in DOCUMENTS if path.name != "commands.md"
    )
    for name, command in generated.all_commands():
        assert command.help, name
        assert f"keras-seq {name}" in documents
        for parameter in command.params:
            assert getattr(parameter, "help", None), f"{name}: {parameter.name}"


def test_generated_pages_are_up_to_date():
    for path, text in generated.pages().items():
        assert path.read_text(encoding="utf-8") == text, "python docs/make_generated_pages.py"
