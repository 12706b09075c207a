"""The run directory: what a kill, a bad disk or a hostile author can do to it."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy

from keras_seq.checkpoints import CheckpointStore
from keras_seq.run import Run
from keras_seq.settings import load_settings
from keras_seq.tensor_file import TensorFileError, read_tensors, tensor_spec, write_tensors
from keras_seq.text import InputError, Tokenizer

SHAPES = {"encoder/kernel": ((3, 4), "float32"), "bias": ((4,), "float32"), "rate": ((), "float32")}
SETTINGS = load_settings(
    overrides={"model.units": 4, "model.feedforward_units": 4, "training.keep_checkpoints": 3}
)


def weights(value: float) -> dict[str, np.ndarray]:
    return {name: np.full(shape, value, dtype) for name, (shape, dtype) in SHAPES.items()}


def save(run: Run, step: int) -> Path:
    tensors = {"weights": weights(step), "training": {"moment": np.full(2000, step, np.float32)}}
    return run.save_checkpoint(step, tensors, {"step": step})


@pytest.fixture
def run(tmp_path) -> Run:
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
    return []


@pytest.fixture
def reopened(run, notices):
    """Opens the run again, as another process would."""
    return lambda: Run.open(run.path, notice=notices.append)


# The tensor file, against the safetensors package


ARRAYS = {
    "matrix": np.arange(12, dtype=np.float32).reshape(3, 4).T,
    "scalar": np.float32(2.5),
    "empty": np.zeros((0, 5), np.int32),
    "half": np.array([1.5, -2], np.float16),
    "double": np.array([1e300]),
    "flags": np.array([True, False, True]),
    "bytes": np.arange(5, dtype=np.uint8),
    "big endian": np.array([1, 2], ">i4"),
    "naïve/名": np.arange(3),
}


def test_the_safetensors_package_reads_what_we_write(tmp_path):
    written = write_tensors(tmp_path / "a.safetensors", ARRAYS)
    content = (tmp_path / "a.safetensors").read_bytes()
    assert (len(content), hashlib.sha256(content).hexdigest()) == written
    found = safetensors.numpy.load(content)
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].shape == array.shape


def test_we_read_what_the_safetensors_package_writes(tmp_path):
    arrays = {name: np.ascontiguousarray(array) for name, array in ARRAYS.items()}
    arrays["scalar"] = np.array(2.5, np.float32)
    safetensors.numpy.save_file(arrays, tmp_path / "a.safetensors", metadata={"format": "np"})
    expected = {name: tensor_spec(array.shape, array.dtype) for name, array in arrays.items()}
    found = read_tensors(tmp_path / "a.safetensors", expected)
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        found[name][...] = 0


def test_bfloat16_comes_back(tmp_path):
    array = np.array([1, 2.5, -3], ml_dtypes.bfloat16)
    write_tensors(tmp_path / "a", {"a": array})
    found = read_tensors(tmp_path / "a", {"a": tensor_spec((3,), "bfloat16")})["a"]
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found.astype("float32"), [1, 2.5, -3])


def header_file(path: Path, header: object, data: bytes = b"", length: int | None = None) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    size = len(text) if length is None else length
    path.write_bytes(size.to_bytes(8, "little") + text + data)
    return path


def entry(shape, start, end, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({"b": entry([2], 0, 8)}, "lacks 'a' and has 'b'"),
        ({}, "lacks 'a'"),
        ({"a": entry([2], 0, 8), "b": entry([0], 8, 8)}, "has 'b', which the model does not"),
        ({"a": entry([10**13], 0, 8)}, r"a is F32 \[10000000000000\], the model has F32 \[2\]"),
        ({"a": entry([2], 0, 8, "F16")}, "a is F16"),
        ({"a": entry([2], 8, 16)}, "overlaps another array or leaves a gap"),
        ({"a": entry([2], 0, 10**15)}, "offsets that do not fit"),
        ({"a": entry([2], -8, 0)}, "gap"),
        ({"a": entry([2], 0.0, 8.0)}, "offsets that do not fit"),
        ({"a": {"dtype": "F32", "shape": [2]}}, "offsets that do not fit"),
        ({"a": 3}, "a is None"),
        ({"a": entry([-2], 0, 8)}, r"a is F32 \[-2\]"),
        ([1], "not a safetensors file"),
        (b"{" * 4000, "not a safetensors file"),
        (b"[" * 4000, "not a safetensors file"),
    ],
)
def test_a_header_that_is_not_exactly_the_models_is_refused(tmp_path, header, words):
    path = header_file(tmp_path / "a", header, b"\0" * 8)
    with pytest.raises(TensorFileError, match=words):
        read_tensors(path, {"a": tensor_spec((2,), "float32")})


@pytest.mark.parametrize("length", [2**63, 2**40, 10**6, 9])
def test_a_header_length_is_not_believed(tmp_path, length):
    path = header_file(tmp_path / "a", b"{}", length=length)
    with pytest.raises(TensorFileError):
        read_tensors(path, {"a": tensor_spec((2,), "float32")})


def test_two_arrays_on_the_same_bytes_are_refused(tmp_path):
    header = {"a": entry([2], 0, 8), "b": entry([2], 0, 8)}
    specs = {name: tensor_spec((2,), "float32") for name in "ab"}
    with pytest.raises(TensorFileError, match="overlaps"):
        read_tensors(header_file(tmp_path / "a", header, b"\0" * 16), specs)


def test_data_that_is_missing_or_too_much_is_refused(tmp_path):
    for size in (0, 7, 9):
        path = header_file(tmp_path / "a", {"a": entry([2], 0, 8)}, b"\0" * size)
        with pytest.raises(TensorFileError, match="bytes, expected"):
            read_tensors(path, {"a": tensor_spec((2,), "float32")})


# Making and opening


def test_a_run_comes_back(run, reopened):
    tokenizer = Tokenizer.train(["A dog runs.", "Ein Hund läuft."], size=300)
    run.save_tokenizers(tokenizer, tokenizer)
    sources = ["a\u2028b", "c\rd", "\u0085e\x0b", ""]
    run.save_valid_lines(sources, ["1", "2", "3", "4"])
    run.log_metrics({"step": 1, "bleu": 1.5})
    run.log_metrics({"step": 2, "text": "ä\u2028"})
    run.append_samples("one")
    run.append_samples("two\n")
    run.write_card("# Card\n")
    save(run, 12)
    again = reopened()
    assert again.settings == run.settings
    assert again.source_tokenizer is again.target_tokenizer
    assert again.source_tokenizer.to_bytes() == tokenizer.to_bytes()
    assert again.valid_lines() == (sources, ["1", "2", "3", "4"])
    lines = (run.path / "metrics.jsonl").read_text("utf-8").split("\n")
    assert [json.loads(line)["step"] for line in lines[:-1]] == [1, 2]
    assert (run.path / "samples.txt").read_text() == "one\ntwo\n"
    assert (run.path / "README.md").read_text() == "# Card\n"
    np.testing.assert_array_equal(again.load_weights(SHAPES)["bias"], np.full(4, 12, "float32"))
    checkpoint = again.load_checkpoint({"weights": SHAPES, "training": {"moment": ((2000,), "f4")}})
    assert checkpoint.step == 12
    assert checkpoint.state == {"step": 12}


def test_two_tokenizers_come_back(tmp_path):
    run = Run.create(tmp_path / "two", load_settings(overrides={"tokenizer.joint": False}))
    source = Tokenizer.train(["A dog runs."], size=280)
    target = Tokenizer.train(["Ein Hund läuft."], size=280)
    run.save_tokenizers(source, target)
    again = Run.open(run.path)
    assert again.source_tokenizer.to_bytes() == source.to_bytes()
    assert again.target_tokenizer.to_bytes() == target.to_bytes()


def test_a_directory_with_other_things_is_never_touched(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    for overwrite in (False, True):
        with pytest.raises(InputError, match="not empty and not a run"):
            Run.create(tmp_path, SETTINGS, overwrite=overwrite)
    (tmp_path / "settings.toml").write_text("seed = 1\n")
    with pytest.raises(InputError, match="not empty and not a run"):
        Run.create(tmp_path, SETTINGS, overwrite=True)
    assert (tmp_path / "thesis.tex").read_text() == "years of work"


def test_overwriting_deletes_the_run_and_nothing_else(run):
    save(run, 1)
    (run.path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="has a run already.*--overwrite"):
        Run.create(run.path, SETTINGS)
    again = Run.create(run.path, SETTINGS, overwrite=True)
    assert again.latest_step is None
    assert sorted(os.listdir(run.path)) == ["notes.txt", "settings.toml"]


def test_overwriting_does_not_follow_links(run, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("keep")
    (run.path / "checkpoints").symlink_to(outside)
    Run.create(run.path, SETTINGS, overwrite=True)
    assert (outside / "file").read_text() == "keep"


def test_a_run_is_made_where_one_can_be(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="a file, expected a new"):
        Run.create(tmp_path / "file", SETTINGS)
    with pytest.raises(InputError, match="is a file"):
        Run.create(tmp_path / "file" / "below", SETTINGS)
    Run.create(tmp_path / "deep" / "below", SETTINGS)


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere"
)
def test_a_read_only_directory_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="permission denied"):
        Run.create(tmp_path / "run", SETTINGS)
    tmp_path.chmod(0o700)


def test_what_is_no_run_is_said_in_one_line(tmp_path):
    with pytest.raises(InputError, match="no such run directory"):
        Run.open(tmp_path / "absent")
    with pytest.raises(InputError, match="no settings.toml"):
        Run.open(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="not a run directory but a file"):
        Run.open(tmp_path / "file")
    # A SavedModel in place of a run.
    (tmp_path / "saved_model.pb").write_bytes(b"\x08\x01")
    with pytest.raises(InputError, match="no settings.toml"):
        Run.open(tmp_path)


# Checkpoints


def test_the_newest_and_the_best_are_kept(run):
    for step in range(1, 8):
        save(run, step)
        if step == 2:
            run.mark_best(2)
    assert run.saved_steps == [2, 5, 6, 7]
    assert (run.best_step, run.latest_step) == (2, 7)
    assert run.load_weights(SHAPES)["rate"] == 2
    assert run.load_weights(SHAPES, "latest")["rate"] == 7
    run.mark_best(6)
    save(run, 8)
    assert run.saved_steps == [6, 7, 8]


def test_the_format_on_disk(run):
    path = save(run, 1200)
    assert path == run.path / "checkpoints" / "step-00001200"
    manifest = json.loads((path / "MANIFEST.json").read_text())
    assert manifest["format"] == 1
    assert manifest["step"] == 1200
    assert manifest["files"].keys() == {
        "weights.safetensors",
        "training.safetensors",
        "state.json",
    }
    for name, recorded in manifest["files"].items():
        content = (path / name).read_bytes()
        assert recorded == {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    assert (path.parent / "latest").read_text() == "step-00001200\n"
    assert not [name for name in os.listdir(path.parent) if name.startswith(".tmp-")]


def test_the_same_step_may_be_saved_again(run):
    save(run, 3)
    run.save_checkpoint(3, {"weights": weights(9)}, {})
    assert run.saved_steps == [3]
    assert run.load_weights(SHAPES)["rate"] == 9


def test_marking_an_unsaved_step_is_an_error(run):
    save(run, 1)
    with pytest.raises(ValueError, match=r"step 2 is not saved: saved are \[1\]"):
        run.mark_best(2)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused_at_save(run, value):
    save(run, 1)
    bad = weights(1) | {"bias": np.array([0, value, 0, 0], np.float32)}
    with pytest.raises(InputError, match="bias holds a value that is not finite"):
        run.save_checkpoint(2, {"weights": bad}, {})
    assert run.saved_steps == [1]
    assert sorted(os.listdir(run.path / "checkpoints")) == ["latest", "step-00000001"]


def forge(path: Path, name: str, content: bytes) -> None:
    """Replaces a file and signs for it in the manifest, as an author with intent can."""
    (path / name).write_bytes(content)
    manifest = json.loads((path / "MANIFEST.json").read_text())
    digest = hashlib.sha256(content).hexdigest()
    manifest["files"][name] = {"size": len(content), "sha256": digest}
    (path / "MANIFEST.json").write_text(json.dumps(manifest))


def test_values_that_are_not_finite_are_refused_at_load(run, reopened, notices, tmp_path):
    save(run, 1)
    path = save(run, 2)
    bad = weights(2) | {"rate": np.array(np.nan, np.float32)}
    safetensors.numpy.save_file(bad, tmp_path / "bad")
    forge(path, "weights.safetensors", (tmp_path / "bad").read_bytes())
    assert reopened().load_weights(SHAPES, "latest")["rate"] == 1
    assert "rate holds a value that is not finite" in notices[0]


FILES = ["weights.safetensors", "training.safetensors", "state.json", "MANIFEST.json"]
BOTH = {"weights": SHAPES, "training": {"moment": ((2000,), "float32")}}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.99])
def test_a_truncated_file_is_found_and_the_earlier_checkpoint_taken(
    run, reopened, notices, name, share
):
    save(run, 1)
    path = save(run, 2) / name
    os.truncate(path, int(path.stat().st_size * share))
    loaded = reopened().load_checkpoint(BOTH)
    assert loaded.step == loaded.tensors["weights"]["rate"] == 1
    assert "step-00000002: damaged: " in notices[0]
    assert name in notices[0]
    assert "step-00000001: taken in its place" in notices[1]


def test_whoever_does_not_listen_is_warned(run):
    save(run, 1)
    (save(run, 2) / "state.json").unlink()
    with pytest.warns(UserWarning, match=r"state\.json is missing|taken in its place"):
        Run.open(run.path).load_checkpoint(BOTH)


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_is_found(run, reopened, notices, name):
    save(run, 1)
    path = save(run, 2) / name
    original = path.read_bytes()
    generator = np.random.default_rng(0)
    for position in generator.integers(0, len(original), 20):
        content = bytearray(original)
        content[position] ^= 1 << int(generator.integers(8))
        path.write_bytes(content)
        try:
            loaded = reopened().load_checkpoint(BOTH)
        except InputError as error:
            # The format's number made a greater one.
            assert name == "MANIFEST.json" and "newer keras-seq" in str(error)
            continue
        # White space of the manifest is the one place where a bit may do no harm.
        assert loaded.step == 1 or (
            name == "MANIFEST.json" and loaded.tensors["weights"]["rate"] == 2
        )


@pytest.mark.parametrize("name", FILES)
def test_a_deleted_file_is_found(run, reopened, notices, name):
    save(run, 1)
    (save(run, 2) / name).unlink()
    assert reopened().load_checkpoint(BOTH).step == 1
    assert f"{name} is missing" in notices[0]


def test_a_pointer_that_is_missing_or_leads_nowhere_is_made_good(run, reopened):
    save(run, 1)
    save(run, 2)
    pointer = run.path / "checkpoints" / "latest"
    for content in (None, b"", b"step-00000009\n", b"../../etc\n", b"\xff" * 1000):
        pointer.unlink()
        if content is not None:
            pointer.write_bytes(content)
        assert reopened().load_checkpoint(BOTH).step == 2
        pointer.write_bytes(b"")
    save(run, 3)
    assert pointer.read_text() == "step-00000003\n"


def test_no_checkpoint_and_no_whole_one_are_said(run, reopened):
    with pytest.raises(InputError, match="the training has not saved one yet"):
        reopened().load_weights(SHAPES)
    with pytest.raises(InputError, match="the training has not saved one yet"):
        reopened().require_weights()
    (save(run, 1) / "MANIFEST.json").unlink()
    with pytest.raises(InputError, match="no whole checkpoint.*MANIFEST.json is missing"):
        reopened().load_weights(SHAPES)


def test_a_newer_format_is_refused_and_not_passed_over(run, reopened):
    save(run, 1)
    path = save(run, 2) / "MANIFEST.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 2}))
    with pytest.raises(InputError, match="format 2 of a newer keras-seq; this one reads up to 1"):
        reopened().load_checkpoint(BOTH)


@pytest.mark.parametrize(
    "debris", [".tmp-step-00000002", ".tmp-old-step-00000001", ".tmp-latest", ".tmp-best"]
)
def test_what_a_killed_process_left_is_ignored_and_then_cleaned(run, reopened, debris):
    path = save(run, 1)
    left = path.parent / debris
    if "step" in debris:
        shutil.copytree(path, left)
        (left / "MANIFEST.json").unlink()
    else:
        left.write_text("step-0000")
    again = reopened()
    assert again.saved_steps == [1]
    assert again.load_checkpoint(BOTH).step == 1
    # One who only reads must not delete what another is writing just now.
    assert left.exists()
    save(again, 2)
    assert not left.exists()


SAVER = """
import sys
import numpy as np
from pathlib import Path
from keras_seq.checkpoints import CheckpointStore
store = CheckpointStore(Path(sys.argv[1]), keep=2)
step = max(store.steps, default=0)
while True:
    step += 1
    store.save(step, {"weights": {"a": np.full(300_000, step, np.float32)}}, {"step": step})
    store.mark_best(step)
    print(step, flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="kill -9 is of POSIX")
def test_kills_at_any_moment_lose_at_most_the_save_under_way(tmp_path):
    generator = np.random.default_rng(3)
    done = 0
    for _ in range(8):
        process = subprocess.Popen(
            [sys.executable, "-c", SAVER, str(tmp_path)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(generator.uniform(0, 0.1))
        process.send_signal(signal.SIGKILL)
        said = process.stdout.read().split()
        process.stdout.close()
        process.wait()
        done = max([done, *map(int, said)])
        notices: list[str] = []
        store = CheckpointStore(tmp_path, keep=2, notice=notices.append)
        specs = {"weights": {"a": tensor_spec((300_000,), "float32")}}
        for which in ("latest", "best"):
            loaded = store.load(specs, which)
            assert loaded.step >= done
            assert (loaded.tensors["weights"]["a"] == loaded.step).all()
        assert notices == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_leaves_the_earlier_checkpoint(run, monkeypatch):
    save(run, 1)
    real_open = open

    def open_full(path, mode="r", **options):
        # The device that takes no byte, under the name of the second file.
        wanted = str(path).endswith("training.safetensors") and "w" in mode
        return real_open("/dev/full" if wanted else path, mode, **options)

    monkeypatch.setattr("builtins.open", open_full)
    with pytest.raises(OSError, match="No space left on device"):
        save(run, 2)
    monkeypatch.undo()
    assert run.saved_steps == [1]
    assert run.load_checkpoint(BOTH).step == 1
    assert sorted(os.listdir(run.path / "checkpoints")) == ["latest", "step-00000001"]


# Hostile directories


@pytest.fixture
def bounded():
    """A context that allows five seconds and 50 MB."""

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


def test_a_linked_checkpoint_is_none(run, reopened, tmp_path):
    path = save(run, 1)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert reopened().saved_steps == []


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


def test_a_sparse_file_does_not_vouch_for_giant_settings(run, reopened, bounded):
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
    with bounded, pytest.raises(InputError, match="no whole checkpoint"):
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
def test_a_tokenizer_that_is_none_is_refused(run, reopened, bounded, content):
    (run.path / "tokenizer").mkdir()
    if content is not None:
        (run.path / "tokenizer" / "joint.model").write_bytes(content)
    with bounded, pytest.raises(InputError, match=r"joint\.model"):
        _ = reopened().source_tokenizer


def test_a_mutated_tokenizer_is_refused_or_sane(run, reopened):
    tokenizer = Tokenizer.train(["A dog runs.", "Ein Hund läuft."], size=300)
    run.save_tokenizers(tokenizer, tokenizer)
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
