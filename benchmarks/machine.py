"""Describes the machine of a measurement; every benchmark prints it."""

import importlib.metadata
import os
import pathlib
import platform


def describe() -> str:
    """One line with processor, cores, load and versions."""
    name = platform.processor() or platform.machine()
    info = pathlib.Path("/proc/cpuinfo")
    if info.exists():
        models = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        name = models[0].partition(":")[2].strip() if models else name
    versions = ", ".join(
        f"{package} {importlib.metadata.version(package)}"
        for package in ("keras-seq", "keras", "tensorflow")
    )
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{name}, {os.cpu_count()} cores{load}; Python {platform.python_version()}, {versions}"


def multi30k() -> pathlib.Path:
    """The Multi30k folder from the environment variable KERAS_SEQ_MULTI30K."""
    folder = pathlib.Path(os.environ.get("KERAS_SEQ_MULTI30K", "../shared/data/multi30k"))
    if not (folder / "train.en.gz").exists():
        raise SystemExit(
            f"{folder}: no train.en.gz there; set KERAS_SEQ_MULTI30K to the folder that holds "
            "train, val and test_2016_flickr as .en.gz and .de.gz"
        )
    return folder
