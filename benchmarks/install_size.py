"""Measures an installation of keras-seq: megabytes on the disk, and seconds to import it.

    python benchmarks/install_size.py [--wheel dist/keras_seq-0.1.0-py3-none-any.whl]

Installs keras-seq, or a wheel of it, in a new virtual environment, and prints the size of
site-packages with the ten largest packages. The size of a package includes the byte code that pip
writes. The seconds are medians of whole processes after one that is not counted.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import venv

ROOT = pathlib.Path(__file__).resolve().parents[1]
SIZES = """
import importlib.metadata, json, os
print(json.dumps({
    f"{one.name} {one.version}": sum(
        os.path.getsize(path) for file in one.files if os.path.exists(path := file.locate())
    )
    for one in importlib.metadata.distributions()
}))
"""
MEGABYTE = 1_000_000


def install(folder: pathlib.Path, package: str) -> pathlib.Path:
    """Installs the package in a new environment without pip, and returns the programs' folder."""
    venv.create(folder)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    command = [sys.executable, "-m", "pip", "--python", str(programs / "python"), "install"]
    subprocess.run([*command, "--quiet", package], check=True)
    return programs


def run(*command: object, **options: object) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = list(map(str, command))
    return subprocess.run(
        words, check=True, stdout=subprocess.PIPE, text=True, env=environment, **options
    ).stdout


def print_sizes(python: pathlib.Path) -> None:
    sizes = json.loads(run(python, "-c", SIZES))
    rows = sorted(sizes.items(), key=lambda row: -row[1])[:10]
    print("| package | MB |\n|---|---|")
    for name, size in rows:
        print(f"| {name} | {size / MEGABYTE:.1f} |")
    others = sum(sizes.values()) - sum(size for _, size in rows)
    print(f"| {len(sizes) - len(rows)} others | {others / MEGABYTE:.1f} |")
    print(f"| all | {sum(sizes.values()) / MEGABYTE:.1f} |")


def print_seconds(programs: pathlib.Path, repeat: int) -> None:
    commands = {
        "python -c pass": (programs / "python", "-c", "pass"),
        "python -c 'import keras_seq'": (programs / "python", "-c", "import keras_seq"),
        "keras-seq --help": (programs / "keras-seq", "--help"),
    }
    print(f"\n| command | seconds, median of {repeat} |\n|---|---|")
    for name, command in commands.items():
        seconds = []
        for _ in range(repeat + 1):
            start = time.perf_counter()
            run(*command)
            seconds.append(time.perf_counter() - start)
        print(f"| `{name}` | {statistics.median(seconds[1:]):.3f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--wheel", default=str(ROOT), help="a wheel; by default the clone")
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        programs = install(pathlib.Path(folder), arguments.wheel)
        describe = "import machine; print(machine.describe())"
        print(run(programs / "python", "-c", describe, cwd=ROOT / "benchmarks"))
        print_sizes(programs / "python")
        print_seconds(programs, arguments.repeat)


if __name__ == "__main__":
    main()
