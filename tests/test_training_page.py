"""Every command of docs/training.md runs for one update on a small text with a small model.

Commands whose options other tests train with run with `--dry-run`, up to their first batch. All
commands run in this process, which saves each the seconds that TensorFlow needs to start. Each line
of a block must therefore be one `keras-seq` command without other shell syntax. The fixture
`folder` creates the files that the commands name.
"""

import gzip
import importlib
import re
import shlex
from pathlib import Path

import pytest
import safetensors.numpy

from keras_seq.settings import PRESETS, Settings

pytestmark = [pytest.mark.docs, pytest.mark.usefixtures("without_graphs")]

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "training.md"

SMALL = {
    "training.max_steps": 1,
    "training.validate_every": 1,
    "training.checkpoint_every": 1,
    "training.sample_count": 0,
    "search.max_length": 4,
}
SMALL_MODEL = {
    "transformer": {
        "model.num_encoder_layers": 1,
        "model.num_decoder_layers": 1,
        "model.units": 16,
        "model.feedforward_units": 16,
        "model.num_heads": 2,
    },
    "rnn": {
        "model.embedding_units": 8,
        "model.encoder_units": 8,
        "model.decoder_units": 8,
        "model.attention_units": 8,
    },
}


PYTHON_NUMBERS = {
    '"training.max_steps": 2000': '"training.max_steps": 1',
    '"runs/best", 3,': '"runs/best", 1,',
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the files that the page names."""
    folder = tmp_path_factory.mktemp("page")
    source = [f"a dog runs {n} times" for n in range(40)]
    files = {
        "train.en": source,
        "train.de": [f"{n} times runs a dog" for n in range(40)],
        "train.weights": [str(n % 3) for n in range(40)],
        "train.links": ["0-3 1-4 2-2 3-0 4-1"] * 40,
        "valid.en": source[:4],
        "other.tsv": [f"{line}\tdog {n}" for n, line in enumerate(source)],
        "sentences.csv": [
            "id,german,english",
            *(f'{n},"ja, {n}",{line}' for n, line in enumerate(source)),
        ],
        "inflection.tsv": [f"dog\tdogs {n}\tN;PL" for n in range(40)],
        "questions.csv": [f"{'ab'[n % 2]};{line}" for n, line in enumerate(source)],
        "deu.txt": [f"{line}\tHund {n}\tCC-BY 2.0" for n, line in enumerate(source)],
        # The vectors have the width of the small model's embedding.
        "vectors.txt": [f"dog {'0.5 ' * 16}", f"runs {'0.1 ' * 16}"],
        "valid.de": source[:4],
    }
    for name, lines in files.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines))
    (folder / "corpus").mkdir()
    for part in ("news", "web"):
        for side in ("en", "de"):
            with gzip.open(folder / "corpus" / f"{part}.{side}.gz", "wt") as file:
                file.writelines(f"{part} {line}\n" for line in source)
    return folder


def last_weights(run):
    (path,) = run.glob("checkpoints/step-*/weights.safetensors")
    return safetensors.numpy.load_file(path)


def blocks(language):
    text = PAGE.read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def commands():
    lines = [
        line for block in blocks("bash") for line in block.replace("\\\n", " ").split("\n") if line
    ]
    return [shlex.split(line, comments=True) for line in lines if not line.startswith("#")]


DRY = [
    f"runs/{name}"
    for name in (
        *("table", "forms", "topics", "anki", "judged", "intl", "many", "weighted", "mixed"),
        *("aligned", "hidden", "agreeing", "subwords", "sampled", "guided", "large", "half"),
        *("level", "snapshots"),
    )
]


def with_small_model(arguments):
    if arguments[0] == "average":
        # A training run of one update has only one checkpoint, and a dry run none.
        small = {"3": "1", "--cycles": "--last"} | dict.fromkeys(DRY, "runs/first")
        return [small.get(argument, argument) for argument in arguments]
    if arguments[0] != "train":
        return arguments
    if arguments[1] in DRY:
        return [*arguments, "--dry-run"]
    family = "rnn" if "rnn" in " ".join(arguments) else "transformer"
    small = SMALL | SMALL_MODEL[family]
    return [*arguments, *(f"--set={key}={value}" for key, value in small.items())]


@pytest.mark.weekly
def test_every_command_of_the_training_page_runs(folder, monkeypatch, keras_seq_command):
    monkeypatch.chdir(folder)
    found = commands()
    assert len(found) > 5
    for program, *arguments in found:
        assert program == "keras-seq", program
        outcome = keras_seq_command(*with_small_model(arguments))
        assert outcome.code == 0, f"{shlex.join(arguments)}\n{outcome.err}"
    # The Python blocks use the runs that the commands have created.
    assert sum(word in block for block in blocks("python") for word in PYTHON_NUMBERS) == 2
    for block in blocks("python"):
        for word, small in PYTHON_NUMBERS.items():
            block = block.replace(word, small)
        exec(block, {})
    # The average of one checkpoint equals that checkpoint.
    one, mean = (last_weights(folder / "runs" / name) for name in ("first", "mean"))
    assert one.keys() == mean.keys()
    assert all((one[name] == mean[name]).all() for name in one)


def test_defaults_named_on_the_training_page_are_right():
    section = PAGE.read_text("utf-8").split("\n## ")[1]
    rows = re.findall(r"^\| `(\w+)\.(\w+)` \| ([^|]*) \|", section, re.MULTILINE)
    assert len(rows) == 7
    for section, key, said in rows:
        default = getattr(getattr(Settings(), section), key)
        by_preset = {
            name: preset.get(section, {}).get(key, default) for name, preset in PRESETS.items()
        }
        if said.startswith("by preset"):
            low, high = map(float, re.findall(r"0\.\d", said))
            assert (low, high) == (min(by_preset.values()), max(by_preset.values()))
            continue
        assert said.split(",")[0].strip("`") == str(default)
        others = {name: str(value) for name, value in by_preset.items() if value != default}
        assert all(value in said and f"`{name}`" in said for name, value in others.items()), others
        assert set(re.findall(r"`([a-z]+-?[a-z]*)`", said)) - {default} == set(others)


def test_names_imported_in_the_documents_are_public():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = {
        line
        for page in pages
        for line in re.findall(r"^from (keras_seq.*) import (.*)$", page.read_text("utf-8"), re.M)
    }
    assert len(found) > 8
    for name, imported in found:
        module = importlib.import_module(name)
        for part in imported.split(", "):
            # An imported name is either public or a module with public names.
            is_public = part in module.__all__
            assert is_public or importlib.import_module(f"{name}.{part}").__all__, f"{name}.{part}"
