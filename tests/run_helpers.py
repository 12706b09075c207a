"""Helpers that write small checkpoints and forge checkpoint files."""

import hashlib
import json
from pathlib import Path

import numpy as np

from keras_seq.run import Run
from keras_seq.settings import load_settings

SHAPES = {"encoder/kernel": ((3, 4), "float32"), "bias": ((4,), "float32"), "rate": ((), "float32")}
SETTINGS = load_settings(
    overrides={"model.units": 4, "model.feedforward_units": 4, "training.keep_checkpoints": 3}
)
# A regular file on Linux, whose first byte cannot be read: input/output error.
UNREADABLE = Path("/proc/self/mem")


def weights(value: float) -> dict[str, np.ndarray]:
    return {name: np.full(shape, value, dtype) for name, (shape, dtype) in SHAPES.items()}


def save(run: Run, step: int) -> Path:
    tensors = {"weights": weights(step), "training": {"moment": np.full(2000, step, np.float32)}}
    return run.save_checkpoint(step, tensors, {"step": step})


FILES = ["weights.safetensors", "training.safetensors", "state.json", "MANIFEST.json"]
BOTH = {"weights": SHAPES, "training": {"moment": ((2000,), "float32")}}


def header_file(path: Path, header: object, data: bytes = b"", length: int | None = None) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    size = len(text) if length is None else length
    path.write_bytes(size.to_bytes(8, "little") + text + data)
    return path


def entry(shape, start, end, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


def forge(path: Path, name: str, content: bytes) -> None:
    """Replaces a file and updates its checksum in the manifest, as an attacker could."""
    (path / name).write_bytes(content)
    manifest = json.loads((path / "MANIFEST.json").read_text())
    digest = hashlib.sha256(content).hexdigest()
    manifest["files"][name] = {"size": len(content), "sha256": digest}
    (path / "MANIFEST.json").write_text(json.dumps(manifest))
