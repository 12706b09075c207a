"""Training that starts from the weights of a pretrained encoder."""

import numpy as np
import pytest
from hub_preset import PIECES, save_preset, who_comes_first

import keras_seq
from keras_seq.preparation import prepare_run, resolve_settings
from keras_seq.run import Run
from keras_seq.run.models import build_run_model, load_model, weight_arrays
from keras_seq.settings import load_settings
from keras_seq.text import InputError
from keras_seq.training import train
from keras_seq.training.warm_start import initialize_weights, set_pretrained

pytestmark = pytest.mark.slow

QUIET = {"notice": lambda line: None}
TRAINING = {
    "training.learning_rate": 0.003,
    "training.warmup_steps": 20,
    "training.batch_tokens": 1024,
    "training.ema": 0.9,
    "training.max_steps": 120,
    "training.validate_every": 60,
    "training.checkpoint_every": 60,
}


@pytest.fixture(scope="module")
def presets(tmp_path_factory):
    folder = tmp_path_factory.mktemp("presets")
    return {kind: save_preset(folder / kind, kind) for kind in ("Bert", "DistilBert")}


@pytest.fixture
def preset(presets):
    return presets["Bert"]


@pytest.fixture(scope="module")
def lines():
    return who_comes_first(1000, 1)


def classify(preset, folder, lines, **overrides):
    path = folder / "lines.tsv"
    path.write_text("".join(f"{text}\t{label}\n" for text, label in lines), encoding="utf-8")
    return load_settings(
        preset=f"hub:{preset}",
        overrides={
            "task": "classify",
            "data.labeled": str(path),
            "data.max_source_length": 20,
            **TRAINING,
            **overrides,
        },
    )


@pytest.mark.parametrize("kind", ["Bert", "DistilBert"])
def test_pretrained_encoder_output_equals_keras_hub(presets, kind, lines, tmp_path):
    """Compares with the tokenizer and backbone of KerasHub."""
    preset = presets[kind]
    import keras_hub

    run = prepare_run(classify(preset, tmp_path, lines), tmp_path / "run")
    model = build_run_model(run)
    set_pretrained(run, model)
    texts = [text for text, _ in lines[:4]] + ["Unknown 漢字, cats!"]
    backbone = keras_hub.models.Backbone.from_preset(str(preset))
    tokenizer = keras_hub.tokenizers.Tokenizer.from_preset(str(preset))
    packer = keras_hub.layers.StartEndPacker(
        sequence_length=24,
        start_value=PIECES.index("[CLS]"),
        end_value=PIECES.index("[SEP]"),
        pad_value=PIECES.index("[PAD]"),
    )
    ids = np.asarray(packer(tokenizer(texts)))
    inputs = {"token_ids": ids, "padding_mask": (ids != PIECES.index("[PAD]")).astype("int32")}
    if "segment_ids" in backbone.input:
        inputs["segment_ids"] = np.zeros_like(ids)
    output = backbone(inputs)
    expected = np.asarray(output["sequence_output"] if isinstance(output, dict) else output)

    rows = [[*row, 3] for row in run.source_tokenizer.encode(texts)]
    source = np.array([row + [0] * (23 - len(row)) for row in rows], np.int32)
    found = np.asarray(_encoded(model, source))
    for row, length in enumerate(map(len, rows)):
        np.testing.assert_allclose(
            found[row, : length + 1], expected[row, : length + 1], rtol=1e-5, atol=1e-5
        )
    if isinstance(output, dict):
        pooled = model.get_layer("pooled_dense")(found[:, 0])
        np.testing.assert_allclose(pooled, output["pooled_output"], rtol=1e-4, atol=1e-5)


def _encoded(model, source):
    """Returns the output of a model's encoder for the source with `[CLS]` prepended."""
    ids = np.pad(source, [[0, 0], [1, 0]], constant_values=2)
    encoder = model.get_layer("encoder_backbone")
    inputs = {"token_ids": ids, "padding_mask": (ids != 0).astype("int32")}
    if "segment_ids" in encoder.input:
        inputs["segment_ids"] = np.zeros_like(ids)
    return encoder(inputs)


@pytest.mark.weekly
def test_pretrained_classifier_learns_word_order(presets, lines, tmp_path):
    run = tmp_path / "run"
    train(classify(presets["DistilBert"], tmp_path, lines), run, **QUIET)
    new = who_comes_first(200, 2)
    found = keras_seq.Classifier.load(run)([text for text, _ in new])
    right = sum(one == label for one, (_, label) in zip(found, new, strict=True))
    # Each text has two nouns, so a model that ignores order is right half the time.
    assert right > 190


def test_new_run_starts_from_the_weights_of_a_pretrained_run(presets, lines, tmp_path):
    first = classify(presets["DistilBert"], tmp_path, lines, **{"training.max_steps": 1})
    train(first, tmp_path / "first", **QUIET)
    second, _ = resolve_settings(
        overrides={
            "task": "classify",
            "data.labeled": first.data.labeled,
            "training.from_run": str(tmp_path / "first"),
        }
    )
    run = prepare_run(second, tmp_path / "second")
    assert run.settings.data.max_source_length == first.data.max_source_length
    assert run.source_tokenizer.kind == "wordpiece"
    model = build_run_model(run)
    initialize_weights(run, model, lambda line: None)
    expected = weight_arrays(load_model(Run.open(tmp_path / "first")))
    found = weight_arrays(model)
    assert all(np.array_equal(found[name], expected[name]) for name in expected)


@pytest.mark.weekly
def test_pretrained_training_resumes_bit_for_bit(preset, lines, tmp_path):
    short = {"training.max_steps": 6, "training.checkpoint_every": 3, "training.validate_every": 3}
    settings = classify(preset, tmp_path, lines, **short)
    train(settings, tmp_path / "straight", **QUIET)
    half = classify(preset, tmp_path, lines, **{**short, "training.max_steps": 3})
    train(half, tmp_path / "halved", **QUIET)
    train(settings, tmp_path / "halved", **QUIET)
    one, two = (
        weight_arrays(load_model(Run.open(tmp_path / name), "latest"))
        for name in ("straight", "halved")
    )
    assert all(np.array_equal(one[name], two[name]) for name in one)


@pytest.mark.weekly
def test_frozen_layers_keep_their_pretrained_weights(preset, lines, tmp_path):
    patterns = ["*token_embedding*", "transformer_layer_0/*"]
    settings = classify(
        preset, tmp_path, lines, **{"training.freeze": patterns, "training.max_steps": 3}
    )
    train(settings, tmp_path / "run", **QUIET)
    run = Run.open(tmp_path / "run")
    trained = weight_arrays(load_model(run, "latest"))
    model = build_run_model(run)
    set_pretrained(run, model)
    before = weight_arrays(model)
    same = {name for name in before if np.array_equal(before[name], trained[name])}
    assert {name for name in before if "layer_0/" in name or "token_embedding" in name} <= same
    assert not {name for name in same if "layer_1/" in name and "kernel" in name}


@pytest.mark.weekly
def test_translator_with_a_pretrained_encoder_learns_word_order(preset, lines, tmp_path):
    path = tmp_path / "pairs.tsv"
    # The target is the first noun, followed by the first three letters of the noun.
    path.write_text("".join(f"{text}\t{label} {text[2:5]}\n" for text, label in lines))
    settings = load_settings(
        preset=f"hub:{preset}",
        overrides={
            "data.pairs": str(path),
            "data.max_source_length": 20,
            "model.num_decoder_layers": 1,
            "model.units": 32,
            "model.feedforward_units": 64,
            "model.num_heads": 2,
            "search.beam_size": 2,
            **TRAINING,
            "training.max_steps": 320,
            "training.schedule": "constant",
            "training.learning_rate": 0.002,
        },
    )
    train(settings, tmp_path / "run", **QUIET)
    translator = keras_seq.Translator.load(tmp_path / "run")
    new = who_comes_first(50, 2)
    found = translator([text for text, _ in new])
    right = sum(one.split()[:1] == [label] for one, (_, label) in zip(found, new, strict=True))
    # A model that ignores order is right half the time.
    assert right > 35


def test_invalid_pretrained_weights_file_raises_input_error(preset, lines, tmp_path):
    run = prepare_run(classify(preset, tmp_path, lines), tmp_path / "run")
    model = build_run_model(run)
    for content in (b"", b"\x89HDF\r\n\x1a\n" + b"\0" * 100):
        (run.pretrained_directory / "model.weights.h5").write_bytes(content)
        with pytest.raises(InputError, match="not the weights of the encoder"):
            set_pretrained(run, model)


@pytest.mark.weekly
@pytest.mark.filterwarnings("ignore:Skipping nested container")
def test_damaged_pretrained_weights_load_or_raise_input_error(presets, lines, tmp_path):
    """Sets or deletes bytes of the file; most are array data, and h5py checks only the others."""
    run = prepare_run(classify(presets["DistilBert"], tmp_path, lines[:99]), tmp_path / "run")
    model = build_run_model(run)
    weights = run.pretrained_directory / "model.weights.h5"
    whole = weights.read_bytes()
    generator = np.random.default_rng(7)
    # The heap and the tree of the first group, for whose damage h5py raises RuntimeError.
    places = [whole.index(b"HEAP") + 24, whole.index(b"TREE") + 8, whole.index(b"SNOD") + 8]
    places += generator.integers(len(whole), size=40).tolist()
    refused = 0
    for place in places:
        damaged = bytearray(whole)
        damaged[place : place + 8] = b"\xff" * 8 if place % 3 else bytes(8)
        weights.write_bytes(damaged if place % 5 else whole[:place])
        try:
            set_pretrained(run, model)
        except InputError as error:
            refused += 1
            assert str(error).isprintable()
            assert len(str(error)) < 800
    assert refused > 8


@pytest.mark.filterwarnings("ignore:Skipping nested container")
def test_infinite_or_misshapen_pretrained_weights_are_named(preset, lines, tmp_path):
    import h5py

    run = prepare_run(classify(preset, tmp_path, lines), tmp_path / "run")
    model = build_run_model(run)
    weights = run.pretrained_directory / "model.weights.h5"
    whole = weights.read_bytes()
    with h5py.File(weights, "r+") as file:
        arrays = []
        file.visititems(
            lambda name, found: arrays.append(name) if hasattr(found, "shape") else None
        )
        first = next(name for name in arrays if file[name].dtype.kind == "f")
        file[first][...] = float("inf")
    with pytest.raises(InputError, match="has values that are not finite"):
        set_pretrained(run, model)
    weights.write_bytes(whole)
    with h5py.File(weights, "r+") as file:
        del file[first]
        file.create_dataset(first, data=[0.0])
    # Keras lists objects, and only then says what is wrong with one of them.
    with pytest.raises(InputError, match="describes: Layer") as error:
        set_pretrained(run, model)
    assert "Example error message" not in str(error.value)
