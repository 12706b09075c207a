"""Shared fixtures: the command line, and small trained runs."""

import functools
import gc
import io
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest
from filelock import FileLock

from keras_seq.run import Run
from keras_seq.settings import load_settings

# Workers whose libraries start a thread for every core wait for each other. On a busy machine, a
# translation by PyTorch took 118 seconds of CPU time with two threads and 14 seconds with one.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# The CI script .ci/run selects tests by these markers; a test with two would run twice.
KINDS = ("slow", "process", "docs")
BACKENDS = ("jax", "torch")

# Other work on the machine must not fail a test.
hypothesis.settings.register_profile("untimed", deadline=None)
hypothesis.settings.load_profile("untimed")


@functools.cache
def _names_marker(path: Path, marker: str) -> bool:
    """Returns whether a test file can have tests with the marker.

    The tests of tests/conformance/ get their markers from the table there.
    """
    if "conformance" in path.parts:
        return True
    text = path.read_text(encoding="utf-8")
    imported = {"slow": "SLOW_AND_WEEKLY", "weekly": "from weekly import"}
    return f"mark.{marker}" in text or (marker in imported and imported[marker] in text)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Skips files without a marker given by `-m`, to save each worker 10 s of imports."""
    markers = config.option.markexpr.split(" or ")
    if not set(markers) <= {*KINDS, *BACKENDS, "weekly"} or collection_path.suffix != ".py":
        return None
    # None lets pytest's other rules decide, such as `--ignore`.
    named = any(_names_marker(collection_path, marker) for marker in markers)
    return None if named else True


# Files with tests of minutes. At the end of a call, one of them would leave a worker idle.
LONG = ("test_readme.py", "test_shared_trainings.py", "test_notebooks.py", "test_examples.py")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        kinds = [kind for kind in KINDS if item.get_closest_marker(kind)]
        if len(kinds) > 1:
            raise pytest.UsageError(f"{item.nodeid}: expected one marker, found {kinds}")
        for marker in (*KINDS, *BACKENDS, "weekly"):
            if item.get_closest_marker(marker) and not _names_marker(item.path, marker):
                raise pytest.UsageError(f"{item.path}: expected `mark.{marker}` in this file")
    if "jax" in config.option.markexpr:
        from weekly import is_weekly_on_jax

        for item in filter(is_weekly_on_jax, items):
            item.add_marker("weekly")
    if config.option.markexpr and "weekly" not in config.option.markexpr:
        # These tests have another marker too, so their calls would select them.
        weekly = [item for item in items if item.get_closest_marker("weekly")]
        config.hook.pytest_deselected(items=weekly)
        items[:] = [item for item in items if item not in weekly]
    items.sort(key=lambda item: item.path.name not in LONG)


def pytest_collection_finish() -> None:
    """Leaves out work that does not pay for most tests.

    Garbage collection would look at the million objects of imported modules again and again, and
    TensorFlow would optimize graphs that run once. Separate processes optimize theirs, except the
    trainings of `faults/training_process.py`.
    """
    gc.collect()
    gc.freeze()
    if tensorflow := sys.modules.get("tensorflow"):
        tensorflow.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Gives unseeded layers the same weights in every run of the tests.

    Keras draws its seeds from Python's `random`. `keras.utils.set_random_seed` would also clear
    TensorFlow's kernel cache, and with it the tokenizers that the kernels hold.
    """
    random.seed(1)


@pytest.fixture(autouse=True, scope="module")
def _no_gradients_kept() -> Iterator[None]:
    """Frees the graphs of a file's tests, which TensorFlow would keep for the whole process.

    `tf.custom_gradient` registers, for each use in a graph, a function that refers to that graph,
    and nothing public takes it back. A worker of `-m slow` came to 12 GB that way.
    """
    yield
    if "tensorflow" in sys.modules:
        from tensorflow.python.framework import ops

        registered = ops.gradient_registry._registry
        for name in [name for name in registered if name.startswith("CustomGradient-")]:
            del registered[name]
        # What is still alive mostly belongs to TensorFlow and stays. Scanning it again in every
        # later collection took a tenth of the time of the tests of trainings.
        gc.collect()
        gc.freeze()


@pytest.fixture
def without_graphs() -> Iterator[None]:
    """Runs TensorFlow without compiled graphs, for tests that only ask if a command runs.

    A command of a page computes for a second, and its graphs would take several. The tests of the
    parts that the command uses run with graphs. Exports need them.
    """
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@dataclass(frozen=True)
class Outcome:
    """The result of a command: exit code, stdout and stderr."""

    code: int
    out: bytes
    err: str

    @property
    def lines(self) -> list[str]:
        """The lines of stdout, split only at line feeds, unlike `str.splitlines`."""
        return self.out.decode().split("\n")[:-1]

    @property
    def error(self) -> str:
        """The error message; asserts that stderr ends with exactly one such line."""
        assert "Traceback" not in self.err
        said = [line for line in self.err.split("\n") if line.startswith("keras-seq: ")]
        assert len(said) == 1 and self.err.rstrip("\n").endswith(said[0]), self.err
        return said[0].removeprefix("keras-seq: ")


@pytest.fixture
def keras_seq_command(capsysbinary, monkeypatch) -> Callable[..., Outcome]:
    """Runs `keras-seq` in this process."""
    from keras_seq_cli.main import main

    def call(*arguments: object, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capsysbinary.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsysbinary.readouterr()
        return Outcome(code, captured.out, captured.err.decode())

    return call


@pytest.fixture
def without_tensorflow(monkeypatch) -> None:
    """Makes every import of Keras or a backend an error."""
    for name in (
        "tensorflow",
        "keras",
        "jax",
        "keras_seq.training",
        "keras_seq.inference.translator",
    ):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.fixture
def keras_seq_process() -> Callable[..., Outcome]:
    """Runs `keras-seq` in a separate process."""
    code = "import sys; from keras_seq_cli.main import main; sys.exit(main())"

    def call(*arguments: object, stdin: bytes = b"", **environment: str) -> Outcome:
        result = subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)],
            input=stdin,
            capture_output=True,
            env=os.environ | environment,
            timeout=300,
            check=False,
        )
        return Outcome(result.returncode, result.stdout, result.stderr.decode())

    return call


@pytest.fixture(scope="session")
def made_once(tmp_path_factory) -> Callable[[str, Callable[[Path], object]], Path]:
    """Makes a file or directory once for all workers, and returns its path.

    `made_once(name, make)` calls `make(path)` in the first worker that asks; the others wait.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent

    def made(name: str, make: Callable[[Path], object]) -> Path:
        path, done = folder / name, folder / f"{name}.done"
        with FileLock(folder / f"{name}.lock"):
            if not done.exists():
                make(path)
                done.touch()
        return path

    return made


@pytest.fixture(scope="session")
def dates_file(made_once) -> Path:
    """A small file with lines of the form source<TAB>target."""
    from keras_seq.text.dates import date_pairs

    text = "".join(f"{source}\t{target}\n" for source, target in date_pairs(400))
    return made_once("dates.tsv", lambda path: path.write_text(text, encoding="utf-8"))


TINY = {
    "tokenizer.kind": "unigram",
    "tokenizer.size": 500,
    "model.num_encoder_layers": 1,
    "model.num_decoder_layers": 1,
    "training.batch_tokens": 512,
    "training.max_steps": 4,
    "training.validate_every": 2,
    "training.checkpoint_every": 2,
    "search.beam_size": 2,
    "search.max_length": 12,
}


@pytest.fixture(scope="session")
def tiny_run(dates_file, made_once) -> Path:
    """A run of a Transformer that was trained for 4 updates; its translations are poor."""
    from keras_seq.training import train

    settings = load_settings(
        preset="demo",
        overrides={
            **TINY,
            "data.pairs": str(dates_file),
            "model.units": 32,
            "model.feedforward_units": 32,
            "model.num_heads": 2,
        },
    )
    return made_once("tiny", lambda run: train(settings, run, notice=lambda line: None))


@pytest.fixture(scope="session")
def tiny_rnn_run(dates_file, made_once) -> Path:
    """A run of a recurrent model with separate vocabularies, trained for 4 updates."""
    from keras_seq.training import train

    settings = load_settings(
        preset="rnn-small",
        overrides={
            **TINY,
            "data.pairs": str(dates_file),
            "tokenizer.joint": False,
            "model.embedding_units": 16,
            "model.encoder_units": 16,
            "model.decoder_units": 16,
            "model.attention_units": 16,
        },
    )
    return made_once("tiny-rnn", lambda run: train(settings, run, notice=lambda line: None))


@pytest.fixture(scope="session")
def tiny_export(tiny_run, made_once) -> Path:
    """The Transformer of `tiny_run` as a SavedModel; the directory that holds its one version."""
    from keras_seq.serving import export_saved_model

    run = Run.open(tiny_run)
    return made_once("served", lambda base: export_saved_model(run, base, n_best=2, verify=0))


@pytest.fixture(scope="session")
def classifier_run(made_once) -> Path:
    """A run of a small trained classifier; see `label_runs`."""
    return made_once("classifier", lambda folder: _label_run(folder, "classify")) / "run"


@pytest.fixture(scope="session")
def tagger_run(made_once) -> Path:
    """A run of a small trained tagger with a conditional random field."""
    return made_once("tagger", lambda folder: _label_run(folder, "tag")) / "run"


def _label_run(folder: Path, task: str) -> None:
    from label_runs import label_settings

    from keras_seq.training import train

    folder.mkdir()
    train(label_settings(folder, task), folder / "run", notice=lambda line: None)


@pytest.fixture
def run(tmp_path) -> Run:
    """An untrained run with the smallest possible model."""
    settings = load_settings(
        overrides={
            "model.num_encoder_layers": 1,
            "model.num_decoder_layers": 1,
            "model.units": 1,
            "model.num_heads": 1,
            "model.feedforward_units": 1,
        }
    )
    return Run.create(tmp_path / "run", settings)


@pytest.fixture
def notices() -> list[str]:
    """Collects the notices of the run that `reopened` opens."""
    return []


@pytest.fixture
def reopened(run, notices):
    """Opens the run again from disk, like a new process."""
    return lambda: Run.open(run.path, notice=notices.append)
