"""Malicious run directories are rejected quickly and with little memory."""

import json
import os
import time
import tracemalloc

import numpy as np
import pytest
from run_helpers import BOTH, FILES, SHAPES, entry, forge, header_file, save

from keras_seq.settings import load_settings
from keras_seq.text import InputError, Tokenizer


@pytest.fixture
def bounded():
    """A context that allows at most five seconds and 50 MB."""

    class Bounded:
        def __enter__(self):
            tracemalloc.start()
            self.start = time.monotonic()

        def __exit__(self, *_):
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            assert time.monotonic() - self.start < 5
            assert peak < 50_000_000

    return Bounded()


@pytest.mark.parametrize(
    "name", ["settings.toml", "checkpoints", "tokenizer", "data", "metrics.jsonl", "README.md"]
)
def test_links_out_of_the_directory_are_refused(run, reopened, tmp_path, name):
    save(run, 1)
    outside = tmp_path / "outside"
    if (run.path / name).exists():
        (run.path / name).rename(outside)
    (run.path / name).symlink_to(outside)
    with pytest.raises(InputError, match="a link"):
        reopened()


@pytest.mark.parametrize("name", FILES)
def test_links_inside_a_checkpoint_are_refused(run, reopened, tmp_path, name):
    path = save(run, 1) / name
    path.rename(tmp_path / name)
    path.symlink_to(tmp_path / name)
    with pytest.raises(InputError, match="link"):
        reopened().load_checkpoint(BOTH)


def test_a_checkpoint_that_is_a_link_is_refused(run, reopened, tmp_path):
    path = save(run, 1)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert run.checkpoints.steps == []
    with pytest.raises(InputError, match="step-00000001: a link"):
        reopened()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes of POSIX")
@pytest.mark.parametrize("name", ["settings.toml", "checkpoints/step-00000001/MANIFEST.json"])
def test_a_pipe_does_not_hang_the_reader(run, reopened, bounded, name):
    save(run, 1)
    (run.path / name).unlink()
    os.mkfifo(run.path / name)
    with bounded, pytest.raises(InputError, match="regular file"):
        reopened().load_weights(SHAPES)


@pytest.mark.parametrize("shape", [[10**13], [1000, 1000, 1000], [2**62, 4]])
def test_a_shape_bomb_is_refused_before_it_is_read(run, reopened, bounded, shape):
    path = save(run, 1)
    header = {name: entry([], 0, 4) for name in SHAPES} | {"bias": entry(shape, 0, 10**13)}
    header_file(run.path / "bomb", header)
    forge(path, "weights.safetensors", (run.path / "bomb").read_bytes())
    with bounded, pytest.raises(InputError, match="does not belong to this model"):
        reopened().load_weights(SHAPES)


def test_sparse_weights_file_does_not_justify_huge_model_settings(run, reopened, bounded):
    path = save(run, 1)
    os.truncate(path / "weights.safetensors", 4 << 40)
    base = run.settings.to_dict()
    run.update_settings(load_settings(base=base, overrides={"model.units": 16_384}))
    with bounded, pytest.raises(InputError, match="they do not belong together"):
        reopened()


def test_a_sparse_file_of_terabytes_is_refused_before_it_is_hashed(run, reopened, bounded):
    path = save(run, 1)
    os.truncate(path / "weights.safetensors", 4 << 40)
    manifest = json.loads((path / "MANIFEST.json").read_text())
    manifest["files"]["weights.safetensors"]["size"] = 4 << 40
    (path / "MANIFEST.json").write_text(json.dumps(manifest))
    with bounded, pytest.raises(InputError, match="too large"):
        reopened().load_weights(SHAPES)


@pytest.mark.parametrize("name", ["MANIFEST.json", "state.json"])
@pytest.mark.parametrize(
    "content",
    [
        b"[" * 200_000,
        b'{"a":' * 100_000,
        b" " * (2 << 20),
        b"\xff\xfe",
        b"[]",
        b"null",
        b"9" * 9999,
    ],
)
def test_hostile_json_is_refused(run, reopened, bounded, name, content):
    path = save(run, 1)
    if name == "MANIFEST.json":
        (path / name).write_bytes(content)
    else:
        forge(path, name, content)
    with bounded, pytest.raises(InputError, match="no undamaged checkpoint"):
        reopened().load_weights(SHAPES)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("model.units", 16_384),
        ("model.num_encoder_layers", 100),
        ("model.feedforward_units", 65_536),
    ],
)
def test_settings_far_larger_than_the_weights_are_refused(run, reopened, key, value):
    save(run, 1)
    base = run.settings.to_dict()
    run.update_settings(load_settings(base=base, overrides={"model.units": 64, key: value}))
    with pytest.raises(InputError, match="they do not belong together"):
        reopened()


@pytest.mark.parametrize(
    "content",
    [
        b"units = [" + b"[" * 200_000,
        b"x" * 1_000_000,
        b"\x80\x04",
        b"!!python/object/apply:os.system",
    ],
)
def test_hostile_settings_are_refused(run, reopened, bounded, content):
    (run.path / "settings.toml").write_bytes(content)
    with bounded, pytest.raises(InputError, match=r"settings\.toml"):
        reopened()


@pytest.mark.parametrize("content", [b"", b"garbage", b"\x0a\xff" * 1000, None])
def test_missing_or_invalid_tokenizer_file_is_refused(run, reopened, bounded, content):
    (run.path / "tokenizer").mkdir()
    if content is not None:
        (run.path / "tokenizer" / "joint.model").write_bytes(content)
    with bounded, pytest.raises(InputError, match=r"joint\.model"):
        _ = reopened().source_tokenizer


def test_a_mutated_tokenizer_is_refused_or_sane(run, reopened):
    tokenizer = Tokenizer.train(["A dog runs.", "Ein Hund läuft."], size=300)
    run.save_vocabularies(tokenizer, tokenizer)
    path = run.path / "tokenizer" / "joint.model"
    original = path.read_bytes()
    generator = np.random.default_rng(5)
    for _ in range(60):
        content = bytearray(original)
        for position in generator.integers(0, len(content), 5):
            content[position] = generator.integers(256)
        path.write_bytes(content)
        try:
            loaded = reopened().source_tokenizer
        except InputError as error:
            assert "joint.model" in str(error)
        else:
            assert 4 < loaded.vocabulary_size <= 1_000_000


def test_empty_validation_text_is_refused(run, reopened):
    run.save_valid_lines([], [])
    with pytest.raises(InputError, match=r"data: valid\.source and valid\.target are empty"):
        reopened().valid_lines()
