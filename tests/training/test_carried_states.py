"""Recurrent language models whose states continue from piece to piece."""

import json

import numpy as np
import pytest
from keras import ops
from serving.test_saved_model import Served
from training.toy import assert_equal_tensors, killed_after, tensors_of

import keras_seq
from keras_seq.data import TokenCorpus, contiguous_batches
from keras_seq.inference.likelihood import LikelihoodScorer, perplexity_of
from keras_seq.models import RecurrentLanguageModel
from keras_seq.run import Run
from keras_seq.run.models import load_model
from keras_seq.serving import export_saved_model
from keras_seq.settings import SettingsError, load_settings
from keras_seq.training.carried_states import CarriedStates, make_carried_evaluation
from keras_seq.training.evaluation import make_evaluation
from keras_seq.training.feed import fit_batch, training_stream


def made(**options):
    sizes = {"embedding_units": 6, "units": 8, "num_layers": 2, "seed": 1}
    return RecurrentLanguageModel(20, **sizes, **options)


def numpy_of(tensor):
    return np.asarray(ops.convert_to_numpy(tensor))


@pytest.mark.jax
@pytest.mark.parametrize("cell", ["lstm", "gru"])
def test_pieces_with_states_give_the_logits_of_the_whole(cell):
    model = made(cell=cell, dropout=0.0)
    ids = np.random.default_rng(1).integers(4, 20, (3, 12)).astype("int32")
    whole = numpy_of(model({"source": ids[:, :1], "target": ids}))
    state = {name: ops.zeros((3, 8)) for name in model.with_states.input["state"]}
    assert len(state) == (4 if cell == "lstm" else 2)
    parts = []
    for piece in np.split(ids, 3, axis=1):
        outputs = model.with_states({"target": ops.convert_to_tensor(piece), "state": state})
        parts.append(numpy_of(outputs["logits"]))
        state = outputs["state"]
    np.testing.assert_allclose(np.concatenate(parts, axis=1), whole, atol=1e-5)


@pytest.mark.jax
def test_states_continue_in_fit_and_begin_anew_where_a_batch_says_so():
    model = made(dropout=0.0)
    train_model = CarriedStates(model, 2)
    train_model.compile("sgd", "sparse_categorical_crossentropy")
    train_model.optimizer.learning_rate = 0.0
    generator = np.random.default_rng(2)
    pieces = generator.integers(4, 20, (3, 2, 5)).astype("int32")
    carried = np.array([[0, 0], [1, 1], [1, 0]], "float32")
    inputs = {"target": np.concatenate(pieces), "carried": np.concatenate(carried)}
    targets = np.zeros((6, 5), "int32")
    train_model.fit(inputs, targets, batch_size=2, shuffle=False, epochs=1, verbose=0)
    # Row 0 has read all pieces, row 1 only the last one.
    state = {name: np.zeros((1, 8), "float32") for name in model.with_states.input["state"]}
    long = np.concatenate(pieces[:, :1], axis=1)
    for row, text in ((0, long), (1, pieces[2, 1:])):
        expected = model.with_states({"target": text, "state": state})["state"]
        for name, variable in train_model.states.items():
            np.testing.assert_allclose(
                numpy_of(variable)[row], numpy_of(expected[name])[0], atol=1e-5
            )


def settings_of(tmp_path, **overrides):
    text = tmp_path / "text.txt"
    if not text.exists():
        generator = np.random.default_rng(3)
        lines = ["".join(generator.choice(list("abcd"), 30)) for _ in range(60)]
        text.write_text("\n".join(lines) + "\n")
    values = {
        "task": "language-model",
        "data.text": str(text),
        "data.packed": True,
        "data.max_target_length": 16,
        "tokenizer.kind": "char",
        "model.units": 8,
        "model.embedding_units": 8,
        "model.dropout": 0.1,
        "training.carry_state": True,
        "training.batch_tokens": 64,
        "training.sample_count": 0,
        "training.max_steps": 6,
        "training.validate_every": 3,
        "training.checkpoint_every": 1,
        **{key.replace("__", "."): value for key, value in overrides.items()},
    }
    return load_settings(preset="lm-lstm", overrides=values)


@pytest.mark.slow
@pytest.mark.weekly
def test_resumed_training_ends_with_the_same_weights_and_states(tmp_path, keras_seq_command):
    settings = settings_of(tmp_path, training__max_steps=6)
    keras_seq.train(settings, tmp_path / "whole")
    parts = killed_after(2, tmp_path / "whole", tmp_path / "parts")
    keras_seq.train(settings, parts)
    for part in ("weights", "training"):
        assert_equal_tensors(tensors_of(parts, 6, part), tensors_of(tmp_path / "whole", 6, part))
    run = Run.open(tmp_path / "whole")
    model = load_model(run)
    # In one row, all of the text is one sequence.
    corpus = TokenCorpus.open(run.valid_directory)
    carried = make_carried_evaluation(model)(contiguous_batches(corpus, 1, 16))
    ids = np.concatenate([corpus.target(i) for i in range(len(corpus))])[None]
    given = np.concatenate([[[2]], ids[:, :-1]], axis=1)
    one = {"source": given[:, :1], "target_input": given, "target_output": ids}
    expected = make_evaluation(model)([one])
    assert carried["loss"] == pytest.approx(expected["loss"], abs=1e-5)
    # Both commands read a line after the lines before it.
    text = tmp_path / "text.txt"
    scored = keras_seq_command("likelihood", run.path, text, "--each", "corpus")
    options = ["--text", text, "-m", "perplexity", "--json"]
    evaluated = keras_seq_command("evaluate", run.path, *options)
    value = json.loads(evaluated.out)["metrics"]["perplexity"]["value"]
    assert json.loads(scored.out)["perplexity"] == pytest.approx(value, rel=1e-4)
    alone = LikelihoodScorer.load(run.path)
    lines = text.read_text().splitlines()
    likelihoods = alone([""] * len(lines), lines)
    tokens = sum(len(one.tokens) for one in likelihoods)
    assert perplexity_of(sum(one.total for one in likelihoods), tokens) != pytest.approx(
        value, rel=1e-3
    )
    assert carried["accuracy"] == expected["accuracy"]
    result = keras_seq.evaluate(
        tmp_path / "whole", [""] * 3, ["abcd", "", "dcba"], confidence=False
    )
    assert result.metrics["bits_per_character"].value > 1
    prompts = ["abcd", "", "dcbaabcd"]
    search = {"max_length": 20, "seed": 5}
    version = export_saved_model(run, tmp_path / "served", verify=0, **search)
    served = [text.decode() for text in Served(version).text(prompts)["text"]]
    generator = keras_seq.Generator.load(run.path, **search)
    assert served == generator(prompts) and len(set(served)) == 3


def test_batches_have_the_rows_of_the_states(tmp_path):
    run = keras_seq.preparation.prepare_run(settings_of(tmp_path), tmp_path / "run")
    run.unlock()
    stream = training_stream(run)
    inputs, targets, _ = fit_batch(stream, 1)
    assert inputs["target"].shape == targets.shape == (4, 16)
    assert set(inputs) == {"target", "carried"} and inputs["carried"].tolist() != [0] * 4


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        ({"data.packed": False}, "expected data.packed"),
        ({"model.family": "lm-transformer"}, "expected 'lm-rnn', whose layers have states"),
        ({"training.effective_batch_tokens": 128}, "effective_batch_tokens: received 128"),
    ],
)
def test_states_need_recurrent_layers_and_a_next_piece(overrides, words):
    values = {
        "task": "language-model",
        "data.packed": True,
        "model.family": "lm-rnn",
        "training.carry_state": True,
        **overrides,
    }
    with pytest.raises(SettingsError, match=words):
        load_settings(overrides=values)
    with pytest.raises(SettingsError, match="which is for task 'language-model'"):
        load_settings(overrides={"training.carry_state": True})
