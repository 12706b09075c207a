"""Trains the models of `keras_seq.pretrained`, scores them, and writes a folder of them.

    python tools/make_pretrained.py FOLDER [NAME ...] [--data DATA]

FOLDER/NAME is a run with one checkpoint and a model card, and FOLDER/index.json lists all models
with their scores and the SHA-256 of their files. DATA is the folder with the files that
`benchmarks/public/tasks.py` names; `dates` needs no data. Each model is trained with the defaults
of `keras-seq train`, except for the settings in `pretrained_recipes.py`, and scored on the
validation file. No test file of a public task is read. A model of more than 10 MB is an error.
FOLDER/.work keeps the trainings, so the same command resumes an interrupted one.

To publish the models: upload each to the Hub as keras-seq/NAME, and copy FOLDER/index.json to
keras_seq/run/pretrained_models.json.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks" / "public"), str(ROOT / "tools")]

import recordings  # noqa: E402
from pretrained_recipes import RECIPES, Recipe  # noqa: E402
from tasks import TASKS, file_options, train_options  # noqa: E402

from keras_seq.run import Run  # noqa: E402
from keras_seq.run.pretrained_models import INDEX, PREFIX, PretrainedModel, digest  # noqa: E402
from keras_seq.run.sharing import card_head, public_card, public_copy  # noqa: E402

MAX_BYTES = 10_000_000
_SEED = 1


class Commands(NamedTuple):
    """The words after `keras-seq` that train a model and that score it."""

    train: list[str]
    evaluate: list[str]


def commands(recipe: Recipe, work: Path, data: Path | None) -> Commands:
    """Returns the commands of a model; the run is `work / "run"`."""
    run = work / "run"
    evaluate = ["evaluate", str(run)]
    if recipe.public_task is None:
        test = run / "corpus"
        files = ("--source", str(test / "test.date"), "--target", str(test / "test.iso"))
        return Commands(["demo", str(run)], [*evaluate, *files])
    if data is None:
        raise SystemExit("make_pretrained: --data is missing: the folder of data")
    [task] = [one for one in TASKS if one.name == recipe.public_task]
    if task.kind == "listen":
        recordings.unpack(data / "digits.zip", work)
    valid = file_options(task, task.files[1], data, work)
    if task.kind == "listen":
        valid = {"pairs": valid["data"]}
    if "wake-word" in task.options:
        valid["pairs"], _ = recordings.write_streams(work, task.files[1], _SEED)
    files = [word for name, path in valid.items() for word in (f"--{name}", str(path))]
    return Commands(["train", str(run), *train_options(task, data, work)], [*evaluate, *files])


def keras_seq(words: list[str]) -> str:
    """Runs a command; returns its standard output. Its standard error is shown."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "keras_seq", *words]
    done = subprocess.run(command, stdout=subprocess.PIPE, env=environment, check=False)
    if done.returncode:
        raise SystemExit(f"make_pretrained: `keras-seq {shlex.join(words)}` failed")
    return done.stdout.decode()


def make(name: str, folder: Path, data: Path | None, settings: list[str]) -> PretrainedModel:
    """Trains and scores a model, and writes its run to the folder."""
    recipe, work, directory = RECIPES[name], folder / ".work" / name, folder / name
    work.mkdir(parents=True, exist_ok=True)
    train, evaluate = commands(recipe, work, data)
    options = [word for one in (*recipe.settings, *settings) for word in ("--set", one)]
    if not (work / "run" / "result.json").exists():
        # `keras-seq train` resumes; the demo starts again.
        keras_seq([*train, *options, *(["--overwrite"] if train[0] == "demo" else [])])
    evaluation = json.loads(keras_seq([*evaluate, "--json"]))
    shutil.rmtree(work / "copy", ignore_errors=True)
    run = Run.open(work / "run")
    copy = public_copy(run, work / "copy")
    card = card_head(run, recipe.model_license, recipe.language)
    card += public_card(run, f"{PREFIX}{name}") + _card_end(recipe, [*train, *options])
    copy.write_card(card)
    copy.unlock()
    size = checked_size(copy.path)
    shutil.rmtree(directory, ignore_errors=True)
    copy.path.rename(directory)
    return PretrainedModel(
        task=recipe.task,
        data=recipe.data,
        license=recipe.license,
        citation=recipe.citation,
        metric=recipe.metric,
        score=evaluation["metrics"][recipe.metric]["value"],
        examples=evaluation["lines"],
        size=size,
        digest=digest(directory),
        shared=recipe.model_license is not None,
    )


def checked_size(directory: Path) -> int:
    """Returns the bytes of all files; ends the script if there are too many."""
    size = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    if size > MAX_BYTES:
        raise SystemExit(f"{directory}: {size:,} bytes, expected at most {MAX_BYTES:,}")
    return size


def _card_end(recipe: Recipe, train: list[str]) -> str:
    """Returns the part of a card about the data and the training."""
    words = (Path(word).name if os.sep in word else word for word in train)
    shared = "" if recipe.model_license else " So the model must not be published."
    chosen = "The scored examples took no part in the training."
    if recipe.public_task:
        chosen = (
            "The checkpoint was chosen on the scored examples, so the score is a little too good."
        )
    return f"""
## Data and training

* Task: {recipe.task}.
* Data: {recipe.data}; {recipe.citation}.
* License of the data: {recipe.license}.{shared}
* {chosen}

```
keras-seq {shlex.join(words)}
```
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="the folder to write")
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help=f"{', '.join(RECIPES)}; all by default"
    )
    parser.add_argument("--data", type=Path, help="the folder of data")
    settings = {"metavar": "KEY=VALUE", "help": "a setting, such as training.max_steps=2"}
    parser.add_argument("--set", action="append", default=[], dest="settings", **settings)
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - set(RECIPES)):
        parser.error(f"unknown: {', '.join(unknown)}; expected names of: {', '.join(RECIPES)}")
    folder = options.folder.resolve()
    for name in options.names or RECIPES:
        model = make(name, folder, options.data, options.settings)
        write_entry(folder / INDEX, name, model)
        print(f"{name}: {model}", flush=True)


def write_entry(path: Path, name: str, model: PretrainedModel) -> None:
    """Adds a model to an index, or replaces it. The index has the order of `RECIPES`."""
    found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    found[name] = model._asdict()
    ordered = {name: found[name] for name in RECIPES if name in found}
    path.write_text(json.dumps(ordered, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
