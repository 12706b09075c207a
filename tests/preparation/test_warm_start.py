"""Initial checkpoints and embeddings are checked and copied before Keras is imported."""

import hashlib
import json
import os
import shutil

import numpy as np
import pytest
from run_helpers import forge

from keras_seq import Run, SettingsError, load_settings
from keras_seq.preparation import (
    base_settings,
    find_run,
    open_or_prepare,
    prepare_run,
    resolve_settings,
)
from keras_seq.preparation.warm_start import copied_vectors, initial_checkpoint
from keras_seq.text import InputError, Tokenizer

MODEL = {
    # BPE learns whole words even from a few lines.
    "tokenizer.kind": "bpe",
    "model.num_encoder_layers": 1,
    "model.num_decoder_layers": 1,
    "model.units": 4,
    "model.feedforward_units": 4,
    "model.num_heads": 1,
    "training.learning_rate": 0.5,
    "training.clip_norm": 7.0,
    "training.max_steps": 9,
    "training.freeze": "encoder_*",
}
SIZE = 30_000


@pytest.fixture
def base(tmp_path):
    """A run with a best and a later checkpoint, whose weights fit no model."""
    text = tmp_path / "base.tsv"
    text.write_text("".join(f"a dog runs {n}\tein Hund {n}\n" for n in range(60)))
    settings = load_settings(overrides={"data.pairs": str(text), **MODEL})
    run = prepare_run(settings, tmp_path / "base")
    for step in (3, 5):
        arrays = {"table": np.full(SIZE, step, np.float32)}
        run.save_checkpoint(step, {"weights": arrays, "training": arrays}, {"step": step})
    run.mark_best(3)
    run.unlock()
    return run


@pytest.fixture
def overrides(tmp_path, base):
    text = tmp_path / "other.tsv"
    text.write_text("".join(f"a cat sleeps {n}\tKatze {n}\n" for n in range(60)))
    return {"data.pairs": str(text), "training.from_run": str(base.path)}


def resolved(overrides, **options):
    return resolve_settings(overrides=overrides, **options)[0]


def test_settings_of_the_starting_run_replace_the_preset(base, overrides):
    said = []
    settings = resolved(overrides | {"training.label_smoothing": 0.2}, notice=said.append)
    assert said == [f"settings of {base.path} instead of a preset"]
    assert settings.model == base.settings.model
    assert settings.tokenizer == base.settings.tokenizer
    assert settings.training.learning_rate == 0.5
    # Limits and methods that may not fit the other text keep their defaults.
    defaults = load_settings().training
    assert settings.training.max_steps is settings.training.freeze is None
    assert settings.training.clip_norm == defaults.clip_norm
    assert settings.training.label_smoothing == 0.2
    assert resolved(overrides | {"training.learning_rate": 0.1}).training.learning_rate == 0.1
    assert load_settings(base=base_settings(base.path)).model == base.settings.model


def test_best_weights_and_vocabulary_of_the_starting_run_are_copied(base, overrides, tmp_path):
    said = []
    run = prepare_run(resolved(overrides), tmp_path / "run", notice=said.append)
    assert f"the vocabulary is that of {base.path}" in said
    assert f"initial weights: the best weights of {base.path}, of step 3, are copied" in said
    assert run.source_tokenizer.to_bytes() == base.source_tokenizer.to_bytes()
    start = Run.open(run.start_directory)
    assert start.checkpoints.steps == [3]
    weights = start.load_weights({"table": ((SIZE,), "float32")})
    np.testing.assert_array_equal(weights["table"], 3)
    assert not list(run.start_directory.rglob("training.safetensors"))
    # A changed copy of the initial checkpoint is detected when the run is opened again.
    run.unlock()
    forge(start.path / "checkpoints" / "step-00000003", "weights.safetensors", b"x" * 99)
    with pytest.raises(InputError, match="step-00000003/.*: changed since the training began"):
        open_or_prepare(resolved(overrides), tmp_path / "run")


def test_new_vocabulary_option_trains_a_new_vocabulary(base, overrides, tmp_path):
    overrides |= {"training.from_run_vocabulary": "new"}
    run = prepare_run(resolved(overrides), tmp_path / "run")
    assert run.source_tokenizer.to_bytes() != base.source_tokenizer.to_bytes()
    start = Run.open(run.start_directory)
    assert start.source_tokenizer.to_bytes() == base.source_tokenizer.to_bytes()


def test_damaged_best_checkpoint_falls_back_and_all_damaged_is_refused(base, overrides, tmp_path):
    for step in (3, 5):
        path = base.path / "checkpoints" / f"step-{step:08}" / "weights.safetensors"
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)
        said = []
        if step == 3:
            run = prepare_run(resolved(overrides), tmp_path / "run", notice=said.append)
            assert any("step-00000003: damaged: weights.safetensors" in line for line in said)
            assert Run.open(run.start_directory).checkpoints.steps == [5]
        else:
            with pytest.raises(InputError, match="no undamaged checkpoint"):
                prepare_run(resolved(overrides), tmp_path / "none", notice=said.append)
            assert not (tmp_path / "none").exists()


def test_initial_weights_that_do_not_fit_on_the_disk_are_not_copied(
    base, overrides, tmp_path, monkeypatch
):
    usage = shutil.disk_usage(tmp_path)
    settings = resolved(overrides)
    for free, fits in ((4 * SIZE - 1, False), (8 * SIZE, True)):
        monkeypatch.setattr(shutil, "disk_usage", lambda path, free=free: usage._replace(free=free))
        if fits:
            prepare_run(settings, tmp_path / "new").unlock()
            continue
        with pytest.raises(InputError, match=r"new: the copy of the weights of .* needs 0.1 MB, b"):
            prepare_run(settings, tmp_path / "new")
        assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["weights.safetensors", "state.json"])
def test_sparse_files_of_a_starting_checkpoint_are_not_copied(base, tmp_path, name):
    """The manifest says that they are that large, and their hash is never computed."""
    folder = base.path / "checkpoints" / "step-00000005"
    shutil.rmtree(base.path / "checkpoints" / "step-00000003")
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    manifest["files"][name]["size"] = 20 << 30
    (folder / "MANIFEST.json").write_text(json.dumps(manifest))
    os.truncate(folder / name, 20 << 30)
    with pytest.raises(InputError, match=f"{name} is sparse: it has holes instead of values"):
        Run.open(base.path, notice=lambda line: None).copy_checkpoint(tmp_path / "new")
    assert not list((tmp_path / "new" / "checkpoints").glob("*"))


def test_enormous_state_of_a_starting_checkpoint_is_not_copied(base, tmp_path):
    folder = base.path / "checkpoints" / "step-00000005"
    shutil.rmtree(base.path / "checkpoints" / "step-00000003")
    content = b" " * (2 << 20) + b"{}"
    manifest = json.loads((folder / "MANIFEST.json").read_text())
    manifest["files"]["state.json"] = {
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    (folder / "MANIFEST.json").write_text(json.dumps(manifest))
    (folder / "state.json").write_bytes(content)
    with pytest.raises(InputError, match="state.json is too large"):
        Run.open(base.path, notice=lambda line: None).copy_checkpoint(tmp_path / "new")
    assert not list((tmp_path / "new" / "checkpoints").glob("*"))


def test_prepared_run_reopens_after_the_starting_run_is_deleted(base, overrides, tmp_path):
    """The run keeps its own copy of the initial weights and accepts no other starting run."""
    run = prepare_run(resolved(overrides), tmp_path / "run")
    run.unlock()
    shutil.rmtree(base.path)
    with pytest.raises(InputError, match="no such run directory"):
        resolved(overrides)
    settings = resolved(overrides, earlier=find_run(tmp_path / "run"))
    gone_on = open_or_prepare(settings, tmp_path / "run")
    assert gone_on.settings == run.settings
    gone_on.unlock()
    elsewhere = overrides | {"training.from_run": "elsewhere"}
    assert initial_checkpoint("elsewhere", find_run(tmp_path / "run")) == "elsewhere"
    assert initial_checkpoint("elsewhere", find_run(tmp_path / "nowhere")) == "elsewhere"
    with pytest.raises(InputError, match=r"training.from_run .*base -> elsewhere"):
        open_or_prepare(load_settings(base=settings.to_dict(), overrides=elsewhere), run.path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"model.units": 8}, "model.units 4 -> 8: leave out the preset"),
        ({"model.family": "rnn"}, "model.family transformer -> rnn"),
        ({"tokenizer.size": 300}, r"tokenizer.size \d+ -> 300"),
        ({"tokenizer.joint": False}, "tokenizer.joint True -> False"),
        (
            {"tokenizer.joint": False, "training.from_run_vocabulary": "new"},
            "tokenizer.joint True -> False",
        ),
    ],
)
def test_starting_from_another_model_raises_input_error(base, overrides, tmp_path, change, words):
    with pytest.raises(InputError, match=f"weights do not fit the model to train.*{words}"):
        prepare_run(resolved(overrides | change), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_dropout_and_new_vocabulary_size_may_differ_from_the_starting_run(overrides, tmp_path):
    change = {"model.dropout": 0.5, "model.attention_dropout": 0.0}
    prepare_run(resolved(overrides | change), tmp_path / "run").unlock()
    change = {"tokenizer.size": 300, "training.from_run_vocabulary": "new"}
    prepare_run(resolved(overrides | change), tmp_path / "new")


def test_overwrite_keeps_existing_runs_when_the_start_is_refused(base, overrides, tmp_path):
    with pytest.raises(InputError, match="are in the same directory: use another"):
        prepare_run(resolved(overrides), base.path, overwrite=True)
    assert base.checkpoints.steps == [3, 5]
    # A starting run with another model shape does not overwrite an existing run either.
    other = resolved(overrides | {"model.units": 8})
    shutil.copytree(base.path, tmp_path / "other")
    with pytest.raises(InputError, match="do not fit the model to train"):
        prepare_run(other, tmp_path / "other", overwrite=True)
    assert Run.open(tmp_path / "other").checkpoints.steps == [3, 5]


def test_unusable_starting_run_raises_input_error(base, overrides, tmp_path):
    (tmp_path / "empty").mkdir()
    shutil.copytree(base.path, tmp_path / "untrained")
    shutil.rmtree(tmp_path / "untrained" / "checkpoints")
    for name, words in (
        ("nowhere", "no such run directory"),
        ("empty", "not a run directory of keras-seq"),
        ("untrained", "no checkpoint, the training has not saved one yet"),
    ):
        with pytest.raises(InputError, match=words):
            resolved(overrides | {"training.from_run": str(tmp_path / name)})


def test_from_run_settings_that_conflict_raise_settings_error(overrides):
    with pytest.raises(SettingsError, match="from_run_vocabulary: received 'new' without"):
        load_settings(overrides={"training.from_run_vocabulary": "new"})
    with pytest.raises(SettingsError, match="source_embeddings: received 'v' with .*from_run"):
        load_settings(overrides=overrides | {"training.source_embeddings": "v"})


VECTORS = "dog 1 2 3 4\nHund 5 6 7 8\na 9 9 9 9\n"


@pytest.fixture
def with_vectors(base, tmp_path):
    """Settings that initialize the source embeddings from a file."""
    (tmp_path / "vectors").write_text(VECTORS)
    overrides = {**MODEL, "data.pairs": str(tmp_path / "base.tsv"), "training.freeze": None}
    return overrides | {"training.source_embeddings": str(tmp_path / "vectors")}


def test_source_embedding_vectors_are_read_once_and_kept(with_vectors, tmp_path):
    said = []
    run = prepare_run(load_settings(overrides=with_vectors), tmp_path / "run", notice=said.append)
    (tmp_path / "vectors").unlink()
    ids, vectors = copied_vectors(run, "source", 4)
    texts = [run.source_tokenizer.pieces[id].text for id in ids]
    expected = {"dog": [1, 2, 3, 4], "Hund": [5, 6, 7, 8], "a": [9] * 4}
    assert {"▁dog", "▁a"} < set(texts)
    for text, vector in zip(texts, vectors.tolist(), strict=True):
        assert vector == expected[text.removeprefix("▁")]
    words = sum(piece.is_text for piece in run.source_tokenizer.pieces)
    share = f"vectors for {len(ids)} of {words} pieces of the source vocabulary"
    assert any(share in line for line in said), said
    assert copied_vectors(run, "target", 4) is None
    with pytest.raises(InputError, match="changed since the run was prepared"):
        copied_vectors(run, "source", 5)


def test_changed_embedding_file_is_refused_before_the_first_checkpoint(with_vectors, tmp_path):
    open_or_prepare(load_settings(overrides=with_vectors), tmp_path / "run").unlock()
    (tmp_path / "others").write_text(VECTORS)
    for name in (str(tmp_path / "others"), None):
        other = load_settings(overrides=with_vectors | {"training.source_embeddings": name})
        with pytest.raises(InputError, match=r"training\.source_embeddings .*vectors -> "):
            open_or_prepare(other, tmp_path / "run")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("dog 1 2 3\n", "vectors have 3 numbers, the source embedding has 4: set model.units=3"),
        ("", "vectors: empty"),
        (VECTORS + "cow 1 2 3\n", "vectors:4: received 3 numbers after a word, expected 4"),
        ("cow 1 2 3 4\ndog 1 2 3 x\n", "vectors:2: could not convert string to float: 'x'"),
        ("Katze 1 2 3 4\n", "vectors: has none of the .* pieces of the source vocabulary"),
    ],
)
def test_invalid_embedding_file_raises_input_error(with_vectors, tmp_path, content, words):
    (tmp_path / "vectors").write_text(content)
    with pytest.raises(InputError, match=words):
        prepare_run(load_settings(overrides=with_vectors), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_vectors_of_another_width_are_refused_before_the_text_is_read(with_vectors, tmp_path):
    (tmp_path / "vectors").write_text("dog 1 2 3\n")
    (tmp_path / "base.tsv").write_bytes(b"\xff\xff")
    with pytest.raises(InputError, match="vectors have 3 numbers"):
        prepare_run(load_settings(overrides=with_vectors), tmp_path / "run")
    rnn = {"model.family": "rnn", "model.embedding_units": 5}
    kept = {key: value for key, value in with_vectors.items() if not key.startswith("model.")}
    with pytest.raises(InputError, match="has 5: set model.embedding_units=3"):
        prepare_run(load_settings(overrides=kept | rnn), tmp_path / "run")


@pytest.mark.usefixtures("without_tensorflow")
def test_train_command_refuses_a_wrong_starting_run_with_exit_code_2(
    keras_seq_command, base, overrides, tmp_path
):
    outcome = keras_seq_command(
        "train", tmp_path / "run", "--pairs", overrides["data.pairs"], "--from-run", base.path,
        "--preset", "transformer-tiny",
    )  # fmt: skip
    assert outcome.code == 2
    assert "its weights do not fit the model to train" in outcome.error
    assert "model.units 4 -> 128" in outcome.error
    outcome = keras_seq_command(
        "train", base.path, "--pairs", overrides["data.pairs"], "--from-run", base.path,
        "--overwrite",
    )  # fmt: skip
    assert outcome.code == 2 and "are in the same directory" in outcome.error
    assert base.checkpoints.steps == [3, 5]


def test_copied_tokenizer_of_the_starting_run_encodes_the_same(base, overrides, tmp_path):
    run = prepare_run(resolved(overrides), tmp_path / "run")
    copy = run.start_directory / "tokenizer" / "joint.model"
    assert Tokenizer.from_bytes(copy.read_bytes()).encode(["a dog"]) == (
        base.source_tokenizer.encode(["a dog"])
    )
