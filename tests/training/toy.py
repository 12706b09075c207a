"""A toy task that a tiny model starts to learn in seconds: copy or reverse a line of letters."""

import contextlib
import io
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from keras_seq.settings import Settings, load_settings
from keras_seq.training import TrainingResult, train

LETTERS = "abcdefgh"
LENGTH = 5


def write_pairs(path: Path, count: int, seed: int, reverse: bool = True) -> list[tuple[str, str]]:
    """Writes pairs of lines of equal length; spaces separate the letters, so each is a token."""
    generator = random.Random(seed)
    pairs = []
    for _ in range(count):
        letters = [generator.choice(LETTERS) for _ in range(LENGTH)]
        pairs.append((" ".join(letters), " ".join(reversed(letters) if reverse else letters)))
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))
    return pairs


def toy_settings(folder: Path, **overrides: object) -> Settings:
    """Returns settings of a tiny model on 200 training and 12 validation pairs in `folder`."""
    if not (folder / "train.tsv").exists():
        write_pairs(folder / "train.tsv", 200, seed=1)
        write_pairs(folder / "valid.tsv", 12, seed=2)
    return load_settings(
        overrides={
            "data.pairs": str(folder / "train.tsv"),
            "data.valid_pairs": str(folder / "valid.tsv"),
            "tokenizer.kind": "unigram",
            "model.num_encoder_layers": 1,
            "model.num_decoder_layers": 1,
            "model.units": 16,
            "model.feedforward_units": 16,
            "model.num_heads": 2,
            "training.batch_tokens": 300,
            "training.schedule": "constant",
            "training.learning_rate": 0.01,
            "training.keep_checkpoints": 100,
            # Sample translations take a tenth of the time of such a training.
            "training.sample_count": 0,
            "search.beam_size": 2,
            "search.max_length": 8,
        }
        | {key.replace("__", "."): value for key, value in overrides.items()}
    )


def killed_after(step: int, run: Path, copy: Path) -> Path:
    """Copies a run as it would be after a kill that follows the checkpoint of `step`."""
    shutil.copytree(run, copy)
    for checkpoint in (copy / "checkpoints").glob("step-*"):
        if int(checkpoint.name.removeprefix("step-")) > step:
            shutil.rmtree(checkpoint)
    (copy / "checkpoints" / "latest").write_text(f"step-{step:08}\n")
    (copy / "result.json").unlink()
    return copy


def tensors_of(run: Path, step: int | None = None, part: str = "weights") -> dict[str, np.ndarray]:
    """Returns the tensors of a checkpoint, by default the newest."""
    folder = run / "checkpoints"
    name = (folder / "latest").read_text().strip() if step is None else f"step-{step:08}"
    return safetensors.numpy.load_file(folder / name / f"{part}.safetensors")


def assert_equal_tensors(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert found.keys() == expected.keys()
    for name, array in found.items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)


def quiet_train(settings: Settings, directory, **arguments) -> tuple[TrainingResult, str]:
    """Trains and returns the result and the standard error."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        result = train(settings, directory, **arguments)
    return result, said.getvalue()


@contextlib.contextmanager
def without_tensorboard() -> Iterator[None]:
    """Hides TensorBoard, so that training writes no event files and no attention images."""
    with pytest.MonkeyPatch.context() as patch:
        found = __import__("importlib.util").util.find_spec
        patch.setattr(
            "importlib.util.find_spec",
            lambda name, *rest: None if name == "tensorboard" else found(name, *rest),
        )
        yield
