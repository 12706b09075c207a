"""Messages that quote what strangers wrote: no control character and no endless line."""

import json
import shutil
import warnings

import pytest

from keras_seq.text import InputError

# They set the title of a terminal, change colors and begin a line anew.
CONTROLS = "\x1b]0;pwn\x07\x1b[31m\x9b7m\r"


def settings_key(folder, run):
    (folder / "s.toml").write_text(f"[data]\n{json.dumps(CONTROLS)} = 1\n")
    return "train", folder / "new", "--settings", folder / "s.toml"


def settings_value(folder, run):
    (folder / "s.toml").write_text(f"[model]\nfamily = {json.dumps(CONTROLS)}\n")
    return "train", folder / "new", "--settings", folder / "s.toml"


def settings_syntax(folder, run):
    (folder / "s.toml").write_text(f"[{json.dumps(CONTROLS)}]\n" * 2)
    return "train", folder / "new", "--settings", folder / "s.toml"


def settings_of_a_run(folder, run):
    text = (run / "settings.toml").read_text()
    (run / "settings.toml").write_text(text + f"\n[{json.dumps(CONTROLS)}]\n")
    return "translate", run, "hi"


def checkpoint_manifest(folder, run):
    for manifest in run.glob("checkpoints/step-*/MANIFEST.json"):
        content = json.loads(manifest.read_text())
        content["files"]["weights.safetensors"]["size"] = CONTROLS
        manifest.write_text(json.dumps(content))
    return "translate", run, "hi"


def labels(folder, run):
    (folder / "texts.tsv").write_text(f"a\tgo{CONTROLS}od\nb\tbad\n" * 3)
    tables = ["--labeled", folder / "texts.tsv", "--valid-labeled", folder / "texts.tsv"]
    return "train", folder / "new", "--task", "classify", *tables, "--dry-run"


def tags(folder, run):
    (folder / "tags.tsv").write_text(f"a word\tB-{CONTROLS.strip()} X\n" * 3)
    tables = ["--labeled", folder / "tags.tsv", "--valid-labeled", folder / "tags.tsv"]
    return "train", folder / "new", "--task", "tag", *tables, "--dry-run"


def record_of_an_export(folder, run):
    """The target languages of an export, whose graph is a signature alone."""
    version = folder / "served" / "1"
    version.mkdir(parents=True)
    inputs = [_tensor(1, name, dtype=7, rank=1) for name in ("text", "target_language")]
    outputs = [
        _tensor(2, name, dtype, rank=2)
        for name, dtype in (("translation", 7), ("score", 1), ("truncated", 10))
    ]
    signature = _field(1, b"n_best") + _field(2, b"".join(inputs + outputs))
    graph = _field(2, _field(2, b"") + _field(5, signature))
    (version / "saved_model.pb").write_bytes(graph)
    (version / "checkpoint.json").write_text(json.dumps({"languages": [f"<2{CONTROLS}>"]}))
    return "translate", version.parent, "hi", "--to", "fr"


def _tensor(number, name, dtype, rank):
    """An entry of a protobuf map from names to `TensorInfo`; its sizes are 1."""
    info = bytes([2 << 3, dtype]) + _field(3, rank * _field(2, bytes([1 << 3, 1])))
    return _field(number, _field(1, name.encode()) + _field(2, info))


def _field(number, content):
    """A protobuf field of bytes, of fewer than 2^14."""
    size = len(content)
    return bytes([number << 3 | 2, size & 127 | 128, size >> 7]) + content


def name_of_a_file(folder, run):
    (run / "checkpoints" / CONTROLS).symlink_to("latest")
    return "train", run, "--settings", run / "settings.toml"


MAKERS = [
    settings_key, settings_value, settings_syntax, settings_of_a_run, checkpoint_manifest,
    labels, tags, record_of_an_export, name_of_a_file,
]  # fmt: skip


@pytest.mark.parametrize("maker", MAKERS)
def test_no_message_obeys_a_file(tmp_path, tiny_run, keras_seq_command, maker):
    run = shutil.copytree(tiny_run, tmp_path / "run")
    outcome = keras_seq_command(*maker(tmp_path, run))
    assert outcome.code == (0 if maker in (labels, tags) else 2)
    # The file is quoted, so that there was something to hide.
    assert "pwn" in outcome.err
    assert not [c for c in outcome.err if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160]


@pytest.mark.parametrize("kind", ["error", "warning", "notice"])
def test_a_long_line_is_cut_in_the_middle(keras_seq_command, monkeypatch, tmp_path, kind):
    """The beginning names the file, and the end says what to do instead."""
    message = f"some file: received {10**4 * CONTROLS}, expected less: use another"

    def open_run(path, notice):
        if kind == "warning":
            warnings.simplefilter("always")
            warnings.warn(message, stacklevel=1)
        elif kind == "notice":
            notice(message)
        raise InputError(message)

    monkeypatch.setattr("keras_seq.run.Run.open", open_run)
    for line in keras_seq_command("generate", tmp_path).err.splitlines():
        assert 1900 < len(line) <= 2000
        assert "some file: received " in line[:60]
        assert line.endswith(", expected less: use another")
        assert " ... " in line


@pytest.mark.parametrize("size", [1990, 1991])
def test_a_line_of_usual_length_is_whole(keras_seq_command, monkeypatch, tmp_path, size):
    """The prefix `keras-seq: ` has 11 characters; 2,000 remain whole."""
    message = "x" * (size - 1)
    monkeypatch.setattr("keras_seq.run.Run.open", lambda *_, **__: _raise(InputError(message)))
    shown = keras_seq_command("generate", tmp_path).error
    assert (shown == message) == (size == 1990)


def _raise(error):
    raise error
