"""Errors about a pretrained encoder have one line and are raised before Keras is imported."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from hub_preset import NOUNS, PIECES, POSITIONS, save_preset, who_comes_first

from keras_seq.preparation import find_run, open_or_prepare, pretrained, resolve_settings
from keras_seq.preparation.pretrained import copied_preset
from keras_seq.settings import SettingsError, load_settings, preset_directory
from keras_seq.text import InputError


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return save_preset(tmp_path_factory.mktemp("hub") / "preset")


@pytest.fixture
def preset(saved, tmp_path):
    """A copy of the preset that a test may damage."""
    return shutil.copytree(saved, tmp_path / "preset")


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "lines.tsv"
    lines = who_comes_first(200, 1)
    path.write_text("".join(f"{text}\t{label}\n" for text, label in lines), encoding="utf-8")
    return path


def settings_of(preset, data, *overrides):
    resolved, _ = resolve_settings(
        preset=f"hub:{preset}",
        overrides=["task=classify", f"data.labeled={data}", *overrides],
    )
    return resolved


def test_hub_preset_sets_the_model_shape_and_word_pieces(preset, data, tmp_path):
    settings = settings_of(preset, data)
    assert settings.model.family == "classifier-hub"
    assert settings.model.backbone_units == 32
    assert settings.data.max_source_length == POSITIONS - 2
    notices = []
    run = open_or_prepare(settings, tmp_path / "run", notice=notices.append)
    assert f"source vocabulary of the encoder's {len(PIECES)} word pieces" in notices
    assert run.source_tokenizer.vocabulary == tuple(PIECES)
    assert run.labels.names == tuple(sorted(NOUNS))
    # The run has its own copy and no longer needs the preset.
    shutil.rmtree(preset)
    assert (run.pretrained_directory / "model.weights.h5").stat().st_size > 10_000
    run.unlock()
    again = []
    open_or_prepare(settings, tmp_path / "run", notice=again.append)
    assert again == []


def test_hub_preset_for_translation_trains_a_separate_target_vocabulary(preset, tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{text}\t{text}\n" for text, _ in who_comes_first(200, 1)))
    settings, _ = resolve_settings(
        preset=f"hub:{preset}", overrides={"data.pairs": str(path), "tokenizer.kind": "unigram"}
    )
    assert settings.model.family == "transformer-hub"
    run = open_or_prepare(settings, tmp_path / "run")
    assert run.source_tokenizer.kind == "wordpiece"
    assert run.target_tokenizer.kind == "unigram"
    assert run.settings.tokenizer.size == run.target_tokenizer.vocabulary_size


def spoil(path, change):
    values = json.loads(path.read_text())
    change(values)
    path.write_text(json.dumps(values))


@pytest.mark.parametrize(
    ("name", "change", "words"),
    [
        ("config.json", lambda v: v.update(class_name="GemmaBackbone"), "expected an encoder with"),
        ("config.json", lambda v: v["config"].pop("num_heads"), "not the configuration"),
        ("config.json", lambda v: v["config"].update(num_heads=3), "num_heads: received 3"),
        ("config.json", lambda v: v["config"].update(hidden_dim=10**9), "hidden_dim: received 1"),
        ("config.json", lambda v: v["config"].update(hidden_dim="32"), "hidden_dim: received '32'"),
        (
            "config.json",
            lambda v: v["config"].update(dropout=float("nan")),
            "dropout: received nan",
        ),
        ("config.json", lambda v: v["config"].update(dropout=True), "dropout: received True"),
        ("config.json", lambda v: v["config"].update(max_sequence_length=2), "length: received 2"),
        ("config.json", lambda v: v["config"].update(vocabulary_size=10**9), "size: received 1"),
        (
            "config.json",
            lambda v: v["config"].update(hidden_dim=4096, num_layers=200),
            "expected at least .* that config.json describes",
        ),
        ("tokenizer.json", lambda v: v["config"].update(split=False), "expected split words"),
        ("config.json", lambda v: v["config"].update(vocabulary_size=9), "embeddings for only 9"),
        ("tokenizer.json", lambda v: v.update(class_name="T5Tokenizer"), "expected a tokenizer of"),
        (
            "tokenizer.json",
            lambda v: v["config"].update(oov_token="?"),
            r"the unknown token \[UNK\]",
        ),
    ],
)
def test_unsupported_hub_preset_raises_a_one_line_error(
    preset, data, tmp_path, name, change, words
):
    spoil(preset / name, change)
    with pytest.raises((InputError, SettingsError), match=words) as error:
        open_or_prepare(settings_of(preset, data), tmp_path / "run")
    assert len(str(error.value).splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_sparse_weights_of_a_preset_are_not_copied(preset, data, tmp_path):
    """Their size is that of the encoder, but they are holes."""
    weights = preset / "model.weights.h5"
    weights.write_bytes(weights.read_bytes()[:4096])
    os.truncate(weights, 8 << 20)
    with pytest.raises(InputError, match=r"model.weights.h5: a sparse file: it has holes instead"):
        open_or_prepare(settings_of(preset, data), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_weights_of_a_preset_that_do_not_fit_on_the_disk_are_not_copied(
    preset, data, tmp_path, monkeypatch
):
    settings = settings_of(preset, data)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=10_000))
    with pytest.raises(
        InputError, match=r"run: the copy of .*model.weights.h5 needs \d.\d MB, but"
    ):
        open_or_prepare(settings, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_weights_larger_than_the_encoder_are_not_copied(preset, data, tmp_path):
    weights = preset / "model.weights.h5"
    weights.write_bytes(weights.read_bytes() + b"a" * (65 << 20))
    with pytest.raises(InputError, match="expected at most .* that config.json describes"):
        open_or_prepare(settings_of(preset, data), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("config.json", None, "not a preset of KerasHub"),
        ("config.json", b"{" * 10**5, "not the configuration"),
        ("config.json", b" " * (2 << 20), "not the configuration"),
        ("tokenizer.json", None, "no such file"),
        ("tokenizer.json", b"[]", "expected a JSON object"),
        ("assets/tokenizer/vocabulary.txt", None, "no such file"),
        ("assets/tokenizer/vocabulary.txt", b"\xff\xfe", "not UTF-8"),
        ("assets/tokenizer/vocabulary.txt", b"a\nb\nc\nd\ne\n", r"no \[PAD\]"),
        ("model.weights.h5", None, "a preset without weights"),
    ],
)
def test_missing_or_invalid_hub_preset_file_raises_an_error(
    preset, data, tmp_path, name, content, words
):
    (preset / name).unlink()
    if content is not None:
        (preset / name).write_bytes(content)
    with pytest.raises((InputError, SettingsError), match=words):
        open_or_prepare(settings_of(preset, data), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("model.backbone_units=64", "model.backbone_units 32 -> 64: leave these settings"),
        ("data.max_source_length=31", "expected at most 30: the encoder has 32 positions"),
        (
            "training.source_embeddings=v.txt",
            "training.source_embeddings: received 'v.txt', expected none",
        ),
        ("training.subword_alpha=0.1", "training.subword_alpha: "),
        ("training.from_run=other", "give one of the two"),
        ("model.family=classifier-rnn", "training.from_hub: received"),
    ],
)
def test_setting_that_conflicts_with_the_hub_preset_raises_an_error(
    preset, data, tmp_path, override, words
):
    with pytest.raises((InputError, SettingsError), match=words):
        open_or_prepare(settings_of(preset, data, override), tmp_path / "run")


def test_unsupported_hub_preset_settings_raise_settings_error(preset, data):
    with pytest.raises(SettingsError, match="for task 'classify' or 'translate', not for 'tag'"):
        load_settings(preset=f"hub:{preset}", overrides={"task": "tag"})
    with pytest.raises(SettingsError, match="expected False with model.family"):
        load_settings(preset=f"hub:{preset}", overrides={"tokenizer.joint": True})
    for override in ("subword_alpha=0.1", "from_run_vocabulary=new"):
        with pytest.raises(SettingsError, match="with model.family 'transformer-hub'"):
            load_settings(
                preset=f"hub:{preset}",
                overrides=["training.from_hub=none", "training.from_run=x", f"training.{override}"],
            )
    with pytest.raises(SettingsError, match="give --preset hub:NAME"):
        resolve_settings(
            overrides={
                "model.family": "transformer-hub",
                "tokenizer.joint": False,
                "data.pairs": str(data),
            }
        )


@pytest.mark.slow
def test_fetched_hub_preset_is_used_by_name_from_the_cache(saved, data, tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    fetched = preset_directory("some/name")
    assert fetched == tmp_path / "keras" / "keras-seq" / "some%2Fname"
    # KerasHub loads a local directory like a named preset, so nothing is downloaded.
    with monkeypatch.context() as patch:
        patch.setattr(pretrained, "is_known_by_name", lambda name: True)
        patch.setattr(pretrained, "preset_directory", lambda name: fetched)
        pretrained.fetch_preset(f"hub:{saved}")
    assert pretrained.read_word_pieces(fetched).vocabulary == tuple(PIECES)
    assert [path.name for path in fetched.parent.iterdir()] == [fetched.name]
    # The fetched preset is used without a download or a notice.
    notices = []
    settings, _ = resolve_settings(
        preset="hub:some/name",
        overrides={"task": "classify", "data.labeled": str(data)},
        notice=notices.append,
    )
    assert notices == []
    # The settings store the name of the preset, not its path.
    assert settings.training.from_hub == "some/name"
    run = open_or_prepare(settings, tmp_path / "run")
    assert run.source_tokenizer.vocabulary == tuple(PIECES)


@pytest.mark.slow
def test_unknown_hub_preset_name_raises_input_error(tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    with pytest.raises(InputError, match="KerasHub cannot load it"):
        resolve_settings(preset="hub:there_is_no_such_preset", overrides={"data.pairs": "a.tsv"})
    assert not preset_directory("there_is_no_such_preset").exists()


def test_prepared_run_reopens_after_the_hub_preset_is_deleted(preset, data, tmp_path):
    asked = {"task": "classify", "data.labeled": str(data)}
    name = f"hub:{preset}"
    first, _ = resolve_settings(preset=name, overrides=asked)
    open_or_prepare(first, tmp_path / "run").unlock()
    shutil.rmtree(preset)
    for overrides in (asked, [f"{key}={value}" for key, value in asked.items()]):
        again, _ = resolve_settings(
            preset=name,
            overrides=overrides,
            earlier=find_run(tmp_path / "run"),
        )
        assert again == first
    open_or_prepare(again, tmp_path / "run")
    assert copied_preset("hub:another", find_run(tmp_path / "run")) is None
    assert copied_preset(name, find_run(tmp_path / "nothing")) is None
    assert copied_preset("transformer-tiny", find_run(tmp_path / "run")) is None


def test_preparing_from_a_hub_preset_does_not_import_keras(preset, data, tmp_path):
    program = (
        "import sys\n"
        "from keras_seq.preparation import open_or_prepare, resolve_settings\n"
        f"overrides = ['task=classify', 'data.labeled={data}']\n"
        f"settings, _ = resolve_settings(preset='hub:{preset}', overrides=overrides)\n"
        f"open_or_prepare(settings, {str(tmp_path / 'run')!r})\n"
        "assert not {'keras', 'keras_hub', 'tensorflow'} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize(
    ("longest", "words"),
    [
        (20, "differ from the source vocabulary of the prepared"),
        (31, "expected at most 30: the encoder has 32 positions"),
    ],
)
def test_text_prepared_for_another_model_is_refused_with_a_hub_preset(
    preset, data, tmp_path, longest, words
):
    open_or_prepare(
        load_settings(
            preset="classify-birnn",
            overrides={
                "task": "classify",
                "data.labeled": str(data),
                "data.max_source_length": longest,
                "tokenizer.size": 280,
            },
        ),
        tmp_path / "prepared",
    ).unlock()
    with pytest.raises((InputError, SettingsError), match=words):
        settings, _ = resolve_settings(
            preset=f"hub:{preset}",
            overrides={"task": "classify", "data.prepared": str(tmp_path / "prepared")},
        )
        open_or_prepare(settings, tmp_path / "run")
