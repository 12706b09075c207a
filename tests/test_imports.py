"""Imports between the parts of the package follow the allowed directions and have no cycle.

The imports are read from the source text, so those inside functions and under
`if TYPE_CHECKING` count as well. A new folder or top-level file needs a row in `ARROWS`.
"""

import ast
import functools
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

# What each part may import: our own parts, then third-party packages (besides the stdlib).
TEXT_ONLY = {"numpy", "sentencepiece", "sacrebleu"}
PLAIN = {
    "plugins",
    "storage",
    "storage.checkpoints",
    "process",
    "text",
    "scoring",
    "data",
    "settings",
}
TENSORS = {
    "backend",
    "cluster",
    "layers",
    "losses",
    "schedules",
    "models",
    "search",
    "search.options",
}
WITH_RUN = {
    "run",
    "run.memory",
    "run.models",
    "preparation",
    "tasks.task",
    "inference",
    "evaluation",
    "analysis",
    "vectors",
}
ABOVE_RUN = PLAIN | TENSORS | WITH_RUN | {"keras_seq"}
# Every part may import it.
EVERYWHERE = "operating_system"
ARROWS: dict[str, tuple[set[str], set[str]]] = {
    EVERYWHERE: (set(), set()),
    # The package `tokenizers` is optional and reads vocabularies in its own format.
    "text": (set(), TEXT_ONLY | {"tokenizers"}),
    "scoring": (set(), TEXT_ONLY),
    # Plugins import what they need; this part imports the plugins.
    "plugins": ({"text"}, set()),
    "settings": ({"plugins", "search.options", "text"}, {"pydantic", "tomli_w"}),
    "storage": ({"text"}, set()),
    "storage.checkpoints": ({"storage", "text"}, {"numpy", "ml_dtypes"}),
    # One file, of which each ONNX export has a copy.
    "runtime": (set(), {"numpy", "onnxruntime", "sentencepiece"}),
    "litert": ({"runtime"}, {"ai_edge_litert", "numpy"}),
    # This part only checks whether JAX is installed and does not import JAX.
    "process": ({"text"}, {"jax", "tensorflow"}),
    "cleaning": ({"text"}, {"numpy"}),
    "augmentation": (
        {"cleaning", "jobs", "preparation", "run", "scoring", "storage", "text"},
        {"numpy"},
    ),
    # Optuna is optional. Trainings run in separate processes, which import what they need.
    "tuning": (PLAIN | {"keras_seq", "preparation", "run", "training"}, {"numpy", "optuna"}),
    # The packages that read recordings are optional.
    "data": ({"storage", "text"}, {"numpy", "soundfile", "soxr"}),
    "backend": ({"process"}, {"keras", "numpy", "tensorflow", "jax", "torch"}),
    "cluster": ({"backend", "process", "text"}, {"keras", "numpy", "tensorflow", "jax"}),
    "layers": ({"backend"}, {"keras"}),
    "losses": ({"backend", "layers"}, {"keras"}),
    "schedules": (set(), {"keras"}),
    # KerasHub is an optional dependency for pretrained encoders.
    "models": ({"backend", "layers", "text"}, {"keras", "keras_hub"}),
    "metrics": ({"backend", "scoring"}, {"keras", "numpy", "sacrebleu"}),
    "search": ({"backend", "search.options", "text"}, {"keras", "numpy"}),
    # Settings and commands import this before Keras is imported.
    "search.options": (set(), set()),
    # MLflow and Weights & Biases are optional.
    "callbacks": ({"backend", "storage", "text"}, {"keras", "mlflow", "numpy", "wandb"}),
    # The package of the Hugging Face Hub is optional.
    "run": (
        {"plugins", "settings", "storage", "storage.checkpoints", "text"},
        {"huggingface_hub", "numpy"},
    ),
    "run.memory": ({"backend", "process", "settings"}, set()),
    "run.models": (PLAIN | TENSORS | {"run", "run.memory"}, {"keras", "numpy"}),
    "run.checkpoint_ensemble": (PLAIN | {"run", "run.models"}, {"numpy"}),
    "run.averaging": (PLAIN | {"run", "run.checkpoint_ensemble", "run.models"}, {"numpy"}),
    # Runs before Keras is imported, so that errors in a user's files are reported at once.
    # This part only checks whether KerasHub is installed and does not import KerasHub.
    "preparation": (PLAIN | {"keras_seq", "run"}, {"keras_hub", "numpy"}),
    "inference": (PLAIN | TENSORS | {"run", "run.memory", "run.models"}, {"keras", "numpy"}),
    "evaluation": (PLAIN | {"inference", "preparation", "run", "run.models"}, {"numpy"}),
    # Matplotlib is an optional dependency for plots.
    "analysis": (
        PLAIN | TENSORS | {"evaluation", "inference", "preparation", "run", "run.models"},
        {"keras", "matplotlib", "numpy"},
    ),
    # Numba, matplotlib and scikit-learn are optional dependencies.
    "vectors": (PLAIN, {"matplotlib", "numba", "numpy", "sklearn", "threadpoolctl"}),
    # The interface of a task. The tasks are imported dynamically, by the names in `TASKS`.
    "tasks.task": (
        {"backend", "evaluation", "preparation", "run", "serving", "settings", "text", "training"},
        set(),
    ),
    "tasks": (ABOVE_RUN | {"callbacks", "serving", "training"}, set()),
    "training": (ABOVE_RUN | {"callbacks"}, {"keras", "numpy", "tensorboard"}),
    # The export finds version directories with the server's own code.
    "serving": (
        ABOVE_RUN
        | {"litert", "runtime", "serving.graph_file", "serving.http", "serving.model_export"},
        {
            *("keras", "numpy", "ctranslate2", "onnx", "onnxruntime", "tf2onnx"),
            "ai_edge_litert",
            *("tensorflow", "tensorflow_serving", "tensorflow_text"),
        },
    ),
    # Exports a model without a run, with the signatures of the task of translation.
    "serving.model_export": (ABOVE_RUN | {"serving", "tasks"}, set()),
    # Everything that a user does with a model in Python. Matplotlib is optional.
    "estimators": (
        ABOVE_RUN | {"serving", "training"},
        {"keras", "matplotlib", "numpy", "soundfile"},
    ),
    "pretrained": ({"estimators", "run"}, set()),
    # Each worker imports what it needs; the coordinating process needs no Keras.
    "jobs": (ABOVE_RUN | {"serving"}, {"numpy", "ray"}),
    # Graph files are read without TensorFlow, before it is imported.
    "serving.graph_file": ({"process", "storage", "text"}, set()),
    # A server needs only the exported graph: no Keras and no run directory.
    "serving.http": (
        {"data", "process", "serving.graph_file", "storage", "text"},
        {"numpy", "prometheus_client", "tensorflow", "tensorflow_text"}
        | {"h11", "starlette", "uvicorn"},
    ),
    # The lazily imported public names, and `python -m keras_seq`.
    "keras_seq": (
        ABOVE_RUN
        | {
            "callbacks",
            "estimators",
            "jobs",
            "metrics",
            "pretrained",
            "run.averaging",
            "serving",
            "tasks",
            "training",
            "tuning",
        },
        set(),
    ),
    "__main__": ({"cli"}, set()),
    "cli": (
        ABOVE_RUN
        | {
            "augmentation",
            "cleaning",
            "jobs",
            "run.averaging",
            "serving",
            "serving.http",
            "training",
            "tuning",
        },
        {"typer", "click", "rich"},
    ),
}


@dataclass(frozen=True)
class Module:
    name: str
    source: str
    is_package: bool

    @property
    def part(self) -> str:
        return part_of(self.name)


@dataclass(frozen=True)
class Import:
    target: str
    line: int
    runs: bool
    """False under `if TYPE_CHECKING`, where no import happens."""


def part_of(name: str) -> str:
    """Returns the `ARROWS` row of a module of this project, or "" for a third-party module."""
    package, *rest = name.split(".")
    if package == "keras_seq_cli":
        return "cli"
    if package != "keras_seq":
        return ""
    inner = ".".join(rest[:2])
    if inner in ARROWS:
        return inner
    return rest[0] if rest else "keras_seq"


def modules_of_the_project() -> dict[str, Module]:
    found = {}
    for package, folder in (("keras_seq", ROOT / "keras_seq"), ("keras_seq_cli", ROOT / "cli")):
        for path in sorted(folder.rglob("*.py")):
            parts = [package, *path.relative_to(folder).with_suffix("").parts]
            is_package = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if is_package else parts)
            found[name] = Module(name, path.read_text(encoding="utf-8"), is_package)
    return found


def read_imports(module: Module, known: set[str]) -> Iterator[Import]:
    for found, submodule in _statements(module):
        yield replace(found, target=submodule) if submodule in known else found


@functools.cache
def _statements(module: Module) -> list[tuple[Import, str | None]]:
    return list(_read_statements(module))


def _read_statements(module: Module) -> Iterator[tuple[Import, str | None]]:
    """Yields each import and, for `from a import b`, the name `a.b`, which may be a module."""
    tree = ast.parse(module.source)
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for statement in node.body
        for inner in ast.walk(statement)
    }
    for node in ast.walk(tree):
        runs = id(node) not in typing_only
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno, runs), None
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = module.name.split(".")
                keep = len(package) - node.level + module.is_package
                base = ".".join([*package[:keep], *([base] if base else [])])
            for alias in node.names:
                yield Import(base, node.lineno, runs), f"{base}.{alias.name}"
        elif isinstance(node, ast.Call) and "import" in ast.unparse(node.func):
            # Matches importlib.import_module("...") and __import__("...").
            if node.args and isinstance(node.args[0], ast.Constant):
                yield Import(str(node.args[0].value), node.lineno, runs), None


def wrong_arrows(modules: dict[str, Module]) -> list[str]:
    wrong = []
    for module in modules.values():
        if module.part not in ARROWS:
            wrong.append(f"{module.name}: {module.part!r} has no row in ARROWS")
            continue
        ours, others = ARROWS[module.part]
        for found in read_imports(module, set(modules)):
            part = part_of(found.target)
            top = found.target.split(".")[0]
            if part:
                allowed = part in ours | {module.part, EVERYWHERE}
            else:
                allowed = top in others or top in sys.stdlib_module_names
            if not allowed:
                wrong.append(f"{module.name}:{found.line} imports {found.target}")
    return wrong


def commands_that_import_commands(modules: dict[str, Module]) -> list[str]:
    """Lists imports between commands: modules that `main` imports and that import typer."""
    main = modules["keras_seq_cli.main"]
    commands = {
        found.target
        for found in read_imports(main, set(modules))
        if part_of(found.target) == "cli" and "import typer" in modules[found.target].source
    }
    return [
        f"{command}:{found.line} imports {found.target}"
        for command in sorted(commands)
        for found in read_imports(modules[command], set(modules))
        if found.target in commands | {main.name} and found.target != command
    ]


def find_cycle(modules: dict[str, Module]) -> list[str]:
    """Returns one import cycle as module names, the first repeated at the end, or []."""
    graph = {
        name: sorted(
            {
                found.target
                for found in read_imports(module, set(modules))
                if found.runs and found.target in modules and found.target != name
            }
        )
        for name, module in modules.items()
    }
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> list[str]:
        if name in path:
            return [*path[path.index(name) :], name]
        if name in done:
            return []
        for target in graph[name]:
            if cycle := visit(target, [*path, name]):
                return cycle
        done.add(name)
        return []

    for name in graph:
        if cycle := visit(name, []):
            return cycle
    return []


def test_every_import_follows_the_allowed_direction():
    assert wrong_arrows(modules_of_the_project()) == []


def test_imports_have_no_cycle():
    assert find_cycle(modules_of_the_project()) == []


def test_no_command_imports_another():
    assert commands_that_import_commands(modules_of_the_project()) == []


def plant(name: str, source: str, is_package: bool = False) -> dict[str, Module]:
    """Returns the project's modules with one module replaced or added."""
    return modules_of_the_project() | {name: Module(name, source, is_package)}


@pytest.mark.parametrize(
    ("name", "source", "culprit"),
    [
        ("keras_seq.text.planted", "import keras", "keras"),
        ("keras_seq.text.planted", "from keras_seq import data", "keras_seq.data"),
        ("keras_seq.text.planted", "from ..data import write_corpus", "keras_seq.data"),
        ("keras_seq.text.planted", "from .. import layers", "keras_seq.layers"),
        ("keras_seq.scoring.planted", "import keras_seq.text", "keras_seq.text"),
        ("keras_seq.data.planted", "def f():\n    import tensorflow as tf", "tensorflow"),
        ("keras_seq.layers.planted", "import numpy", "numpy"),
        ("keras_seq.layers.planted", "from jax import numpy", "jax"),
        ("keras_seq.models.planted", "import keras_seq.search", "keras_seq.search"),
        ("keras_seq.search.planted", "import keras_seq.models", "keras_seq.models"),
        ("keras_seq.training.planted", "import tensorflow_text", "tensorflow_text"),
        ("keras_seq.training.planted", "import keras_seq_cli.main", "keras_seq_cli.main"),
        ("keras_seq.callbacks.planted", "import keras_seq.run", "keras_seq.run"),
        (
            "keras_seq.data.planted",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import keras_seq.models",
            "keras_seq.models",
        ),
        ("keras_seq.layers.planted", "__import__('tensorflow')", "tensorflow"),
    ],
)
def test_planted_forbidden_import_is_caught(name, source, culprit):
    line = source.count("\n") + 1
    assert f"{name}:{line} imports {culprit}" in wrong_arrows(plant(name, source))


def test_folder_without_an_import_rule_is_caught():
    found = wrong_arrows(plant("keras_seq.planted.thing", ""))
    assert found == ["keras_seq.planted.thing: 'planted' has no row in ARROWS"]


def test_a_planted_cycle_is_caught():
    modules = plant("keras_seq.text.one", "def f():\n    from keras_seq.text import two")
    modules["keras_seq.text.two"] = Module("keras_seq.text.two", "from . import one", False)
    assert set(find_cycle(modules)) == {"keras_seq.text.one", "keras_seq.text.two"}


def test_a_planted_command_that_imports_another_is_caught():
    modules = modules_of_the_project()
    main = modules["keras_seq_cli.main"].source + "\nfrom keras_seq_cli import planted\n"
    modules["keras_seq_cli.main"] = Module("keras_seq_cli.main", main, False)
    planted = "import typer\nfrom . import main"
    modules["keras_seq_cli.planted"] = Module("keras_seq_cli.planted", planted, False)
    assert commands_that_import_commands(modules) == [
        "keras_seq_cli.planted:2 imports keras_seq_cli.main"
    ]
