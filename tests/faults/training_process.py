"""Runs small trainings in separate processes that tests can kill, and reads their results."""

import contextlib
import json
import os
import queue
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import safetensors.numpy
from forked_process import ForkedProcess
from training.toy import write_pairs

# XLA_FLAGS for tests that run each compiled program only a few times.
QUICK_TO_COMPILE = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"
# Seconds that a test waits for a process on the slowest machine before the test fails.
PATIENCE = 300.0
MODEL = {
    "model.num_encoder_layers": 1,
    "model.num_decoder_layers": 1,
    "model.units": 16,
    "model.feedforward_units": 16,
    "model.num_heads": 2,
}
SETTINGS = {
    "seed": 1,
    "training.batch_tokens": 300,
    "training.ema": 0.5,
    "training.patience": 0,
    "training.sample_count": 1,
    "search.beam_size": 2,
    "search.max_length": 8,
}
# Code for `Training` that prints a line after each update.
SAY_UPDATES = """
import keras_seq.training.loop as loop
def saying(after):
    def said(self, *arguments, **options):
        after(self, *arguments, **options)
        print("update", file=sys.stderr, flush=True)
    return said
loop.TrainingLoop._after_update = saying(loop.TrainingLoop._after_update)
"""


def on(backend: str) -> str:
    """Returns code for `Training` that chooses the backend."""
    return f"import os\nos.environ['KERAS_BACKEND'] = '{backend}'\n"


# Code for `Training` that prints a line when a save begins, then waits for the signal {}.
HOLD_SAVES = """
import time
import keras_seq.storage.checkpoints.directory as checkpoint
from keras_seq.training.stopping import SignalStop
came = []
def noting(handle):
    def noted(self, number, frame):
        came.append(number)
        return handle(self, number, frame)
    return noted
def holding(write):
    def held(path, arrays):
        print("begin save", file=sys.stderr, flush=True)
        while {} not in came:
            time.sleep(0.01)
        return write(path, arrays)
    return held
SignalStop._handle = noting(SignalStop._handle)
checkpoint.write_tensors = holding(checkpoint.write_tensors)
"""


# Keras imports scikit-learn where it is installed, which takes a second. Few users have it.
WITHOUT_SKLEARN = "sys.modules['sklearn'] = None"
# TensorFlow would optimize graphs that run a few times, which takes longer than they do.
_UNOPTIMIZED = """
import keras_seq_cli.quiet as quiet
def unoptimized(import_quietly):
    def imported(*arguments, **options):
        module = import_quietly(*arguments, **options)
        if tensorflow := sys.modules.get("tensorflow"):
            tensorflow.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
        return module
    return imported
quiet.import_quietly = unoptimized(quiet.import_quietly)
"""
# Without the optional packages that Keras imports where they are installed, as the command does.
_IMPORT_QUICKLY = "quiet.import_quietly('keras_seq.training', lambda: None)\n"
_SHARE_CORES = "from keras_seq.process.threads import share_training_cores; share_training_cores()"


def write_corpus(folder: Path) -> None:
    write_pairs(folder / "train.tsv", 200, seed=1)
    write_pairs(folder / "valid.tsv", 12, seed=2)


def command(
    folder: Path, run: str, preset: str = "transformer-tiny", **settings: object
) -> list[str]:
    """Returns command-line arguments; a setting is a keyword such as `training__max_steps=5`."""
    files = ["--pairs", str(folder / "train.tsv"), "--valid-pairs", str(folder / "valid.tsv")]
    sizes = MODEL if preset == "transformer-tiny" else {}
    all_settings = (
        sizes | SETTINGS | {key.replace("__", "."): value for key, value in settings.items()}
    )
    return [
        *("train", str(folder / run), *files, "--preset", preset),
        *(f"--set={key}={value}" for key, value in all_settings.items()),
    ]


class Training:
    """A running `keras-seq train` process, which executes the Python code in `code` first."""

    def __init__(self, arguments: list[str], code: str = "") -> None:
        code = re.sub(r"^(?=(import|from) keras_seq)", _IMPORT_QUICKLY, code, count=1, flags=re.M)
        if "--devices" not in arguments and "--hosts" not in arguments:
            # The command sets the threads, unless TensorFlow is imported already.
            code = f"{_SHARE_CORES}\n{code}"
        code = f"import sys\n{WITHOUT_SKLEARN}\n{_UNOPTIMIZED}\n{code}"
        script = f"{code}\nfrom keras_seq_cli.main import main\nsys.exit(main())"
        environment = os.environ | {"PYTHONUNBUFFERED": "1"}
        self.process: ForkedProcess | subprocess.Popen[str]
        if _backend(arguments, code) == "tensorflow":
            self.process = ForkedProcess(script, arguments, environment)
        else:
            self.process = subprocess.Popen(
                [sys.executable, "-c", script, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                env=environment,
            )
        self.said: list[str] = []
        self._lines: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self.process.stderr:
            self.said.append(line.rstrip("\n"))
            self._lines.put(line)
        self._lines.put(None)

    def wait_for(self, text: str, seconds: float = PATIENCE) -> None:
        """Waits until the process prints a line that contains `text`."""
        end = time.monotonic() + seconds
        with contextlib.suppress(queue.Empty):
            while (line := self._lines.get(timeout=max(0.01, end - time.monotonic()))) is not None:
                if text in line:
                    return
        # An endless training would slow down all later tests.
        self.process.kill()
        self.end()
        raise AssertionError("\n".join(self.said))

    def end(self, seconds: float = PATIENCE) -> tuple[int, str]:
        """Waits for the process and returns its exit code and standard error."""
        try:
            code = self.process.wait(timeout=seconds)
        finally:
            self.process.kill()
            self.process.wait()
            self._reader.join()
            self.process.stderr.close()
        return code, "\n".join(self.said)

    def signalled(self, number: int) -> tuple[int, str, float]:
        """Sends a signal and returns the exit code, standard error and seconds until the exit.

        The seconds exclude the time in which a thread waited for a free CPU on a busy machine.
        """
        waited = self._waits()
        before = dict(waited)
        begin = time.monotonic()
        self.process.send_signal(number)
        while self.process.poll() is None:
            if time.monotonic() - begin > PATIENCE:
                break
            time.sleep(0.01)
            waited |= self._waits()
        seconds = time.monotonic() - begin
        seconds -= max((wait - before.get(key, 0.0) for key, wait in waited.items()), default=0.0)
        code, said = self.end()
        return code, said, seconds

    def _waits(self) -> dict[str, float]:
        """Seconds that each runnable thread waited for a CPU, as counted by Linux."""
        found = {}
        tasks = Path(f"/proc/{self.process.pid}/task")
        # The process or a thread may end meanwhile, which removes its folder.
        with contextlib.suppress(OSError):
            for path in tasks.glob("*/schedstat"):
                with contextlib.suppress(OSError, IndexError):
                    found[path.parent.name] = int(path.read_text().split()[1]) / 1e9
        return found


def _backend(arguments: list[str], code: str) -> str:
    """Returns the backend that the arguments of a command, or the code before it, choose."""
    if "--backend" in arguments:
        return arguments[arguments.index("--backend") + 1]
    chosen = re.search(r"\['KERAS_BACKEND'\] = '(\w+)'", code)
    return chosen[1] if chosen else "tensorflow"


def last_arrays(run: Path) -> dict[str, bytes]:
    """Returns all arrays of the newest checkpoint as bytes."""
    path = run / "checkpoints" / (run / "checkpoints" / "latest").read_text().strip()
    return {
        f"{part}/{name}": array.tobytes()
        for part in ("weights", "training")
        for name, array in safetensors.numpy.load_file(path / f"{part}.safetensors").items()
    }


def validations(run: Path) -> list[dict[str, object]]:
    """Returns the validation lines of metrics.jsonl without their times."""
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    return [
        {key: value for key, value in line.items() if key != "minutes"}
        for line in lines
        if line["kind"] == "validation"
    ]
