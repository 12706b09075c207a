"""Generation in one call, against the searches that it compiles."""

import numpy as np
import pytest
from weekly import weekly_on_jax

import keras_seq
from keras_seq.models import (
    ConditionedGenerator,
    RecurrentLanguageModel,
    RecurrentSeq2Seq,
    Transformer,
)
from keras_seq.search import beam_search, sample

SOURCES = [[5, 6, 7, 3], [8, 3], [4, 4, 3], [9, 5, 6, 7, 8, 3], [6, 3]]
LIMITS = {"max_length": 6, "max_length_extra": 6}
MODELS = {
    "transformer": lambda: Transformer(
        12, 12, 1, 1, units=8, feedforward_units=8, num_heads=2, seed=1
    ),
    "recurrent": lambda: RecurrentSeq2Seq(
        12, 12, embedding_units=8, encoder_units=8, decoder_units=8, attention_units=8, seed=1
    ),
}


def best(result):
    """The ids of the best hypothesis of each row, without end tokens."""
    tokens, lengths = np.asarray(result.tokens), np.asarray(result.lengths)
    rows = [row[0, : length[0]].tolist() for row, length in zip(tokens, lengths, strict=True)]
    return [row[:-1] if row and row[-1] == 3 else row for row in rows]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.jax if name == "recurrent" else ()) for name in MODELS],
)
def test_ids_are_those_of_beam_search(name):
    model = MODELS[name]()
    found = keras_seq.generate(model, SOURCES, beam_size=3, batch_size=2, **LIMITS)
    for source, target in zip(SOURCES, found, strict=True):
        assert [target] == best(beam_search(model, np.array([source]), beam_size=3, **LIMITS))
    padded = np.zeros((len(SOURCES), 6), "int32")
    for row, source in zip(padded, SOURCES, strict=True):
        row[: len(source)] = source
    assert keras_seq.generate(model, padded, beam_size=3, batch_size=4, **LIMITS) == found


@weekly_on_jax
@pytest.mark.jax
def test_current_weights_are_used():
    model = MODELS["transformer"]()
    before = keras_seq.generate(model, SOURCES, beam_size=1, **LIMITS)
    generator = np.random.default_rng(2)
    for weight in model.weights:
        weight.assign(generator.normal(size=weight.shape))
    after = keras_seq.generate(model, SOURCES, beam_size=1, **LIMITS)
    assert after != before
    assert after[0] == best(beam_search(model, np.array(SOURCES[:1]), beam_size=1, **LIMITS))[0]


@weekly_on_jax
@pytest.mark.jax
def test_samples_are_those_of_sample():
    model = MODELS["transformer"]()
    options = {"seed": 4, "temperature": 1.5, **LIMITS}
    found = keras_seq.generate(model, SOURCES[:2], method="sampling", **options)
    for source, target in zip(SOURCES, found, strict=False):
        assert [target] == best(sample(model, np.array([source]), **options))


@pytest.mark.jax
def test_a_language_model_continues_prefixes():
    model = RecurrentLanguageModel(12, embedding_units=8, units=8, seed=3)
    prefixes = [[5, 6], [], [7]]
    found = keras_seq.generate(model, prefix=prefixes, beam_size=2, max_length=5)
    assert len(found) == 3
    for prefix, target in zip(prefixes, found, strict=True):
        assert target[: len(prefix)] == prefix
    expected = beam_search(
        model, np.array([[3]]), prefix=np.array([[5, 6]]), beam_size=2, max_length=5
    )
    assert found[0] == best(expected)[0]


@weekly_on_jax
@pytest.mark.jax
def test_vectors_are_sources_too():
    import keras

    model = ConditionedGenerator(
        keras.layers.Dense(8), 12, source_shape=(5,), embedding_units=8, decoder_units=8, seed=1
    )
    vectors = np.random.default_rng(1).normal(size=(5, 5)).astype("float32")
    found = keras_seq.generate(model, vectors, beam_size=2, batch_size=2, max_length=5)
    for vector, target in zip(vectors, found, strict=True):
        assert [target] == best(beam_search(model, vector[None], beam_size=2, max_length=5))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"source": SOURCES, "method": "greedy"}, "must be 'beam' or 'sampling'"),
        ({}, "neither `source` nor `prefix`"),
        ({"source": SOURCES, "prefix": [[4]]}, "5 rows of `source` and 1 of `prefix`"),
        ({"source": SOURCES, "beam_size": 0}, "beam_size"),
        ({"source": SOURCES, "n_best": 2}, "`n_best` must be 1"),
    ],
)
def test_wrong_arguments_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        keras_seq.generate(MODELS["recurrent"](), **arguments)


@pytest.mark.jax
def test_a_model_without_a_decoder_step_is_refused():
    import keras

    with pytest.raises(TypeError, match="received Sequential"):
        keras_seq.generate(keras.Sequential(), SOURCES)
