"""Variational autoencoders: training, resuming, and decoding of latent codes."""

import json
import random
import re

import numpy as np
import pytest
from training.toy import assert_equal_tensors, killed_after, tensors_of

import keras_seq
from keras_seq.data import TokenCorpus
from keras_seq.preparation import prepare_run
from keras_seq.run import Run
from keras_seq.settings import SettingsError, load_settings
from keras_seq.text import InputError
from keras_seq.training import plan, train

LETTERS = "abcdefgh"


def lines(count, seed):
    """Returns lines of two letters, each repeated, which fit into a small latent code."""
    generator = random.Random(seed)
    drawn = [[generator.choice(LETTERS) for _ in range(2)] for _ in range(count)]
    return [" ".join(letter for letter in pair for _ in range(2)) for pair in drawn]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    for name, count, seed in (("train", 400, 1), ("valid", 40, 2)):
        (folder / name).write_text("".join(f"{line}\n" for line in lines(count, seed)))
    return folder


def small(text, **overrides):
    return load_settings(
        preset="vae",
        overrides={
            "data.text": str(text / "train"),
            "data.valid_text": str(text / "valid"),
            "model.latent_units": 6,
            "model.embedding_units": 16,
            "model.encoder_units": 16,
            "model.decoder_units": 32,
            "model.dropout": 0.0,
            "training.batch_tokens": 500,
            "training.schedule": "constant",
            "training.learning_rate": 0.01,
            "training.ema": 0.0,
            "training.max_steps": 4,
            "training.kl_annealing_steps": 100,
            "training.kl_cycles": 1,
            "training.sample_count": 1,
            "search.max_length": 8,
            "search.beam_size": 2,
        }
        | {key.replace("__", "."): value for key, value in overrides.items()},
    )


@pytest.fixture(scope="module")
def learned(text, tmp_path_factory):
    settings = small(text, training__max_steps=200, training__validate_every=100)
    said = []
    result = train(settings, tmp_path_factory.mktemp("runs") / "learned", notice=said.append)
    return result, said


@pytest.fixture(scope="module")
def autoencoder(learned):
    return keras_seq.Autoencoder.load(learned[0].path)


def test_autoencoder_learns_to_reconstruct_lines_from_an_informative_code(learned, autoencoder):
    result, said = learned
    # The best language model predicts only the repeated letters and the end with certainty.
    least = 8 ** (2 / 5)
    text = (Run.open(result.path).path / "metrics.jsonl").read_text()
    metrics = [json.loads(line) for line in text.splitlines()]
    last = [entry for entry in metrics if entry["kind"] == "validation"][-1]
    assert result.metric == "perplexity" and last["reconstruction_perplexity"] < 0.75 * least
    assert last["active_units"] >= 2 and last["mutual_information"] > np.log(4)
    # The reported perplexity is an upper bound.
    assert last["perplexity"] > least
    assert any("of 6 units active" in line and "mutual information" in line for line in said)
    given = sorted(set(lines(40, 2)))
    written = autoencoder.reconstruct(given)
    assert np.mean([one == other for one, other in zip(given, written, strict=True)]) > 0.6


def test_autoencoder_result_is_independent_of_other_texts_in_the_batch(autoencoder):
    given = ["a a b b", "h h c c d d", "", "g g g g"]
    codes = autoencoder.encode(given)
    for text, code in zip(given, codes, strict=True):
        np.testing.assert_allclose(autoencoder.encode([text])[0], code, atol=1e-5)
    every = autoencoder.reconstruct(given)
    assert every[2] == ""
    assert [autoencoder.reconstruct([text])[0] for text in given] == every


def test_interpolate_decodes_points_between_two_reconstructed_texts(autoencoder):
    first, second = "a a a a", "h h h h"
    way = autoencoder.interpolate(first, second, steps=3)
    assert len(way) == 5
    assert [way[0], way[-1]] == autoencoder.reconstruct([first, second])
    middle = autoencoder.encode([first, second]).mean(0, keepdims=True)
    assert way[2] == autoencoder.decode(middle)[0][0].text
    assert autoencoder.interpolate(first, second, steps=0) == [way[0], way[-1]]


def test_report_has_the_reconstructions_samples_and_interpolated_texts(learned, autoencoder):
    lines = Run.open(learned[0].path).valid_lines()[0]
    page = keras_seq.report(learned[0].path)
    data = json.loads(re.findall(r"^const data = (.*);$", page, re.MULTILINE)[0])
    assert data["test"]["scores"] == []
    for line in data["lines"]:
        assert line["reference"] == lines[line["number"] - 1]
    shown = [line["reference"] for line in data["lines"]]
    assert [line["output"] for line in data["lines"]] == autoencoder.reconstruct(shown)
    assert data["samples"][0]["texts"] == autoencoder.sample(5)
    assert data["samples"][1]["texts"] == autoencoder.interpolate(lines[0], lines[-1], steps=5)


def test_autoencoder_samples_are_reproducible_by_seed(autoencoder):
    drawn = autoencoder.sample(40)
    assert autoencoder.sample(3) == drawn[:3] and len(set(drawn)) > 10
    assert autoencoder.sample(3, seed=1) != drawn[:3]
    # Most samples have the form of the training lines.
    letters = [line.split() for line in drawn]
    assert np.mean([len(line) == 4 and line[0] == line[1] for line in letters]) > 0.5


def test_decoding_by_sampling_depends_on_the_code_and_not_on_the_position(learned, autoencoder):
    drawing = keras_seq.Autoencoder.load(learned[0].path, method="sampling", seed=3)
    given = ["a a b b", "h h c c d d", "g g g g"] * 4
    drawn = drawing.reconstruct(given)
    # The same code gives the same sample in any row, also in a batch of one.
    assert drawn[:3] * 4 == drawn and drawing.reconstruct(given[1:2]) == drawn[1:2]
    codes = np.random.default_rng(1).normal(size=(40, 6)).astype("float32")
    texts, likeliest = (
        [found[0].text for found in one.decode(codes)] for one in (drawing, autoencoder)
    )
    assert len(set(texts)) > 10 and texts != likeliest


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda a: a.encode("a"), "received one string; pass"),
        (lambda a: a.decode(np.zeros((2, 5))), r"shape \(texts, 6\), received \(2, 5\)"),
        (lambda a: a.decode(np.full((1, 6), np.nan)), "must be finite"),
        (lambda a: a.sample(0), "`count` must be positive, received 0"),
        (lambda a: a.interpolate("a", "b", -1), "`steps` must not be negative"),
    ],
)
def test_autoencoder_methods_reject_invalid_arguments(autoencoder, call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call(autoencoder)


def test_autoencoder_commands_print_the_same_texts_as_the_python_api(
    learned, autoencoder, keras_seq_command, tmp_path
):
    path = learned[0].path
    outcome = keras_seq_command("generate", path, "--count", "2")
    assert outcome.lines == autoencoder.sample(2), outcome.err
    outcome = keras_seq_command("interpolate", path, "a a b b", "c c d d", "--steps", "1")
    assert outcome.lines == autoencoder.interpolate("a a b b", "c c d d", 1)
    (tmp_path / "lines").write_text("a a b b\n\nc c d d\n")
    outcome = keras_seq_command("reconstruct", path, tmp_path / "lines")
    assert outcome.lines == autoencoder.reconstruct(["a a b b", "", "c c d d"])


def test_autoencoder_commands_reject_unsuitable_arguments(learned, keras_seq_command):
    path = learned[0].path
    for arguments, words in (
        (["interpolate", path, " ", "a"], "received blank text"),
        (["generate", path, "--prompt", "a"], "--prompt: not with a VAE"),
        (["generate", path, "--n-best", "2"], "--n-best: not with a VAE"),
        (["translate", path], "task 'vae', expected 'translate': use `keras-seq generate`"),
    ):
        outcome = keras_seq_command(*arguments)
        assert outcome.code == 2 and words in outcome.error, outcome.error


@pytest.mark.slow
@pytest.mark.weekly
def test_autoencoder_export_returns_the_same_texts_as_the_autoencoder(
    learned, autoencoder, tmp_path
):
    import tensorflow as tf

    from keras_seq.serving import export_saved_model

    version = export_saved_model(Run.open(learned[0].path), tmp_path / "export", verify=3)
    signatures = tf.saved_model.load(str(version)).signatures
    given = ["a a b b", "", "c c d d e e f f g g"]
    found = signatures["serving_default"](text=tf.constant(given))["text"]
    assert [text.decode() for text in found.numpy()] == autoencoder.reconstruct(given)
    codes = np.random.default_rng(0).standard_normal((5, 6), np.float32)
    found = signatures["decode"](latent=tf.constant(codes))["text"]
    assert [text.decode() for text in found.numpy()] == autoencoder.sample(5)
    guide = (tmp_path / "export" / "serving" / "README.md").read_text("utf-8")
    assert "a latent code of 6 numbers" in guide and "translation" not in guide


@pytest.mark.slow
def test_autoencoder_export_samples_the_same_texts_from_a_code(learned, tmp_path):
    import tensorflow as tf

    from keras_seq.serving import export_saved_model

    run, options = Run.open(learned[0].path), {"method": "sampling", "seed": 5}
    with pytest.raises(keras_seq.InputError, match="cannot be compared with the run"):
        export_saved_model(run, tmp_path / "export", verify=3, **options)
    version = export_saved_model(run, tmp_path / "export", verify=0, **options)
    decode = tf.saved_model.load(str(version)).signatures["decode"]
    codes = np.random.default_rng(0).standard_normal((9, 6), np.float32)
    drawn = keras_seq.Autoencoder.load(run.path, **options).decode(codes)
    found = decode(latent=tf.constant(codes))["text"].numpy()
    assert [text.decode() for text in found] == [one[0].text for one in drawn]


@pytest.mark.slow
@pytest.mark.weekly
def test_resumed_autoencoder_training_ends_with_the_same_weights(text, tmp_path):
    """Covers noise, dropout, word dropout and a KL weight that changes with every update."""
    settings = small(
        text,
        model__dropout=0.2,
        training__checkpoint_every=2,
        training__validate_every=2,
        training__kl_annealing_steps=6,
        training__effective_batch_tokens=1000,
    )
    straight = tmp_path / "straight"
    train(settings, straight, notice=[].append)
    again = killed_after(2, straight, tmp_path / "again")
    train(settings, again, notice=[].append)
    assert_equal_tensors(tensors_of(straight, 4), tensors_of(again, 4))


def test_autoencoder_corpus_uses_each_line_as_source_and_target(text, tmp_path):
    settings = small(text, data__max_target_length=4)
    said = []
    run = prepare_run(settings, tmp_path / "run", notice=said.append)
    corpus = TokenCorpus.open(run.train_directory)
    for i in range(0, len(corpus), 50):
        np.testing.assert_array_equal(corpus.source(i), corpus.target(i))
    assert run.valid_lines()[0] == run.valid_lines()[1] == lines(40, 2)
    assert any(line.startswith("training: 400 of 400 lines kept") for line in said)
    shown = plan(run).splitlines()[-3:]
    texts = (text / "train").read_text().splitlines()
    assert all(line.removeprefix("  text             ") in texts for line in shown)


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"data.pairs": "x"}, "data.pairs: received 'x', which is for task 'translate'"),
        ({"data.max_source_length": 9}, "data.max_target_length limits the text"),
        ({"training.scheduled_sampling": "linear"}, "with task 'vae'"),
        ({"training.free_bits": -1}, "training.free_bits: received -1, expected"),
        ({"training.kl_annealing": "slow"}, "training.kl_annealing: received 'slow', expected"),
    ],
)
def test_autoencoder_settings_reject_unsuitable_values(overrides, words):
    with pytest.raises(SettingsError, match=words):
        load_settings(preset="vae", overrides={"data.text": "text", **overrides})


def test_free_bits_for_another_task_and_blank_text_raise_an_error(tmp_path):
    with pytest.raises(SettingsError, match="training.free_bits: .* which is for task 'vae'"):
        load_settings(overrides={"data.pairs": "x", "training.free_bits": 0.5})
    (tmp_path / "blank").write_text("\n \n")
    settings = load_settings(preset="vae", overrides={"data.text": str(tmp_path / "blank")})
    with pytest.raises(InputError, match=r"blank: no line has text \(2 lines\)"):
        prepare_run(settings, tmp_path / "run", notice=[].append)
