"""The converted weights give the same log-probabilities in CTranslate2 and Keras."""

import keras
import numpy as np
import pytest
import reference_transformer as reference
from small_transformers import padded, random_run

from keras_seq.run import Run
from keras_seq.run.models import named_weights
from keras_seq.search import forced_scores
from keras_seq.serving.ctranslate2_spec import (
    layout,
    make_spec,
    open_spec,
    sinusoids,
    vocabularies,
)
from keras_seq.settings import load_settings
from keras_seq.text import InputError

pytest.importorskip("ctranslate2", reason="the extra ctranslate2 is not installed")

KINDS = [
    ("pre", "relu", True),
    ("pre", "gelu", False),
    ("post", "relu", False),
    ("post", "gelu", True),
]


def kind_of_run(path, norm, activation, joint):
    return random_run(path, joint=joint, **{"model.norm": norm, "model.activation": activation})


@pytest.mark.parametrize(("norm", "activation", "joint"), KINDS)
def test_ctranslate2_token_log_probabilities_equal_forced_scores(tmp_path, norm, activation, joint):
    run, model = kind_of_run(tmp_path / "run", norm, activation, joint)
    generator = np.random.default_rng(1)
    sizes = run.source_tokenizer.vocabulary_size, run.target_tokenizer.vocabulary_size
    # All ids except the special ones, in rows of different lengths.
    sources, targets = (
        [generator.integers(4, size, length).tolist() for length in (1, 40, 7, 3, 19)]
        for size in sizes
    )
    expected = forced_scores(
        model,
        padded([[*row, 3] for row in sources]),
        padded([[2, *row] for row in targets]),
        padded([[*row, 3] for row in targets]),
    )
    expected = keras.ops.convert_to_numpy(expected)
    translator = open_spec(make_spec(run, positions=41), "float32")
    source_pieces, target_pieces = vocabularies(run.source_tokenizer, run.target_tokenizer)
    results = translator.score_batch(
        [[source_pieces[i] for i in row] for row in sources],
        [[target_pieces[i] for i in row] for row in targets],
    )
    for row, result in zip(expected, results, strict=True):
        assert len(result.log_probs) == np.count_nonzero(row)
        np.testing.assert_allclose(result.log_probs, row[: len(result.log_probs)], atol=2e-5)
    # The log-probabilities vary widely; near-uniform ones could hide an error.
    assert np.std(expected[expected < 0]) > 1


@pytest.mark.parametrize(("norm", "activation", "joint"), KINDS)
def test_layout_maps_every_model_weight_to_a_unique_variable(tmp_path, norm, activation, joint):
    run, model = kind_of_run(tmp_path / "run", norm, activation, joint)
    sizes = run.source_tokenizer.vocabulary_size, run.target_tokenizer.vocabulary_size
    slots = list(layout(run.settings.model, *sizes, joint))
    assert {slot.weight: slot.shape for slot in slots} == {
        name: tuple(weight.shape) for name, weight in named_weights(model).items()
    }
    assert len({slot.variable for slot in slots}) == len(slots)


@pytest.mark.parametrize("units", [1, 5, 64])
def test_position_sinusoids_equal_the_reference(units):
    expected = [reference.sinusoid(position, units) for position in range(300)]
    # In float32, an angle of 300 has a rounding error of up to 2e-5.
    np.testing.assert_allclose(sinusoids(300, units), expected, atol=5e-5)


def test_make_spec_rejects_an_rnn_run(tmp_path):
    run = Run.create(tmp_path / "rnn", load_settings(preset="rnn-small"))
    with pytest.raises(
        InputError, match="model.family: received 'rnn'; CTranslate2 supports only 'transformer'"
    ):
        make_spec(run, positions=10)


@pytest.mark.parametrize(
    ("key", "value"), [("activation", "swiglu"), ("normalization", "rms"), ("position", "rotary")]
)
def test_make_spec_rejects_a_transformer_that_ctranslate2_computes_differently(
    tmp_path, key, value
):
    run = Run.create(tmp_path / "run", load_settings(overrides={f"model.{key}": value}))
    with pytest.raises(InputError, match=f"model.{key}: received '{value}'; an export to CTrans"):
        make_spec(run, positions=10)
