"""Creates the Python environments of the peers from PyPI and runs commands."""

from __future__ import annotations

import functools
import json
import pathlib
import subprocess
import sys

REQUIREMENTS = {
    "opennmt-tf": ("OpenNMT-tf==2.32.0", "tensorflow==2.12.*", "setuptools<70"),
    "transformers": ("transformers==5.23.0", "torch==2.13.*"),
    # JoeyNMT imports importlib_metadata but does not require it.
    "joeynmt": ("joeynmt==2.3.0", "torch==2.13.*", "importlib_metadata"),
    "scikit-learn": ("scikit-learn==1.9.1",),
    # fastText's own package does not run with numpy 2.
    "fasttext": ("fasttext-numpy2==0.10.4",),
    "sklearn-crfsuite": ("sklearn-crfsuite==0.5.0",),
    "torch": ("torch==2.13.*", "numpy"),
    "yoyodyne": ("yoyodyne==0.5.27", "torch==2.13.*"),
}
# Packages that are required, but not used, and fail to load with the CPU build of torch.
UNUSED = {"yoyodyne": ("torchvision",)}


class SkippedError(Exception):
    """Raised with the reason if a peer cannot take part."""


@functools.cache
def environment(work: pathlib.Path, name: str) -> str:
    """Returns the Python of a peer's environment, which is created if necessary."""
    folder, requirements = work / name, REQUIREMENTS[name]
    python, note = folder / "bin" / "python", folder / "installed.json"
    if not note.exists() or json.loads(note.read_text()) != list(requirements):
        print(f"{name}: making its environment", file=sys.stderr)
        if not python.exists():
            run([sys.executable, "-m", "venv", str(folder)], "no environment can be made")
        install = [str(python), "-m", "pip", "install", "--quiet", *requirements]
        run(install, "it cannot be installed")
        for package in UNUSED.get(name, ()):
            run([str(python), "-m", "pip", "uninstall", "--yes", package], "it cannot be installed")
        note.write_text(json.dumps(requirements))
    return str(python)


def ours(*arguments: object) -> None:
    """Runs a keras-seq command."""
    command = [sys.executable, "-m", "keras_seq", *map(str, arguments)]
    run(command, f"keras-seq {arguments[0]} failed")


def run(command: list[str], failure: str) -> None:
    """Runs a command; raises `SkippedError` with its last line of output if it fails."""
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    if done.returncode:
        words = done.stdout.strip().splitlines()
        raise SkippedError(f"{failure}: {words[-1] if words else f'exit {done.returncode}'}")
