"""Metrics in `fit` and `evaluate`, with batches of changing shapes, and in `.keras` files."""

import keras
import numpy as np
import pytest
from metrics.cases import CASES, ON_HOST, TAGS, make_batch, make_tags

from keras_seq import backend, models

pytestmark = pytest.mark.jax

COMPILED = [name for name in CASES if name != "entity_f1" and name not in ON_HOST]


class Batches(keras.utils.PyDataset):
    """Batches of different widths and numbers of rows."""

    def __init__(self, batches):
        super().__init__()
        self.batches = batches

    def __len__(self):
        return len(self.batches)

    def __getitem__(self, index):
        return self.batches[index]


def writer():
    """An untrained model, and batches that it partly predicts."""
    keras.utils.set_random_seed(1)
    model = models.RecurrentSeq2Seq(
        8, 8, embedding_units=4, encoder_units=4, decoder_units=8, attention_units=4, dropout=0.0
    )
    # The bias prevents predictions of padding, so that whole rows can be correct.
    model.get_layer("logits").bias.assign([-20.0] + [0.0] * 7)
    batches = []
    for rows, width in ((8, 9), (5, 6)):
        true, _ = make_batch()
        true = true[-rows:, :width]
        inputs = {"source": true, "target": np.roll(true, 1, axis=1)}
        # Each target row begins with a token and has the same mask as the labels.
        inputs["target"] = np.where(true != 0, np.where(inputs["target"] == 0, 2, 5), 0)
        likeliest = model.predict_on_batch(inputs).argmax(-1)
        agreeing = (np.arange(width) % 3 < 2) | (np.arange(rows)[:, None] % 2 == 0)
        true = np.where((true != 0) & agreeing, likeliest, true)
        batches.append((inputs, true.astype("int32")))
    return model, batches


def expected_of(names, model, batches):
    """Metric values from the logits, batch by batch, outside a compiled model."""
    found = {}
    for name in names:
        metric = CASES[name][0](name=name)
        for inputs, true in batches:
            metric.update_state(true, model.predict_on_batch(inputs))
        found[name] = float(metric.result())
    return found


def compile_with(model, names, **options):
    model.compile(
        keras.optimizers.SGD(0.0),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[CASES[name][0](name=name) for name in names],
        **options,
    )


@pytest.mark.slow
@pytest.mark.weekly
def test_metrics_of_a_compiled_model_equal_those_called_by_hand():
    model, batches = writer()
    expected = expected_of(COMPILED, model, batches)
    assert all(0 < value for value in expected.values())
    compile_with(model, COMPILED)
    evaluated = model.evaluate(Batches(batches), verbose=0, return_dict=True)
    for name, value in expected.items():
        np.testing.assert_allclose(evaluated[name], value, rtol=1e-4)


@pytest.mark.slow
def test_metrics_count_in_fit_and_come_back_from_a_file(tmp_path):
    model, batches = writer()
    expected = expected_of(COMPILED, model, batches)
    compile_with(model, COMPILED)
    history = model.fit(Batches(batches), verbose=0, shuffle=False).history
    for name, value in expected.items():
        # On JAX, the logits have no mask here; metrics recognize padding by its id.
        np.testing.assert_allclose(history[name][0], value, rtol=1e-4)

    evaluated = model.evaluate(Batches(batches), verbose=0, return_dict=True)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    again = loaded.evaluate(Batches(batches), verbose=0, return_dict=True)
    assert again.keys() == evaluated.keys()
    for name, value in evaluated.items():
        np.testing.assert_allclose(again[name], value, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("eagerly", [False, True], ids=["compiled", "eager"])
def test_texts_are_compared_on_the_host(eagerly):
    if eagerly and backend.name() == "jax":
        pytest.skip("takes long")
    model, batches = writer()
    expected = expected_of(ON_HOST, model, batches)
    assert all(0 < value for value in expected.values())
    # On TensorFlow, XLA (the default on a GPU) cannot call the host.
    options = {"jit_compile": False} if backend.name() == "tensorflow" else {}
    compile_with(model, ON_HOST, **({"run_eagerly": True} if eagerly else options))
    evaluated = model.evaluate(Batches(batches), verbose=0, return_dict=True)
    history = model.fit(Batches(batches), verbose=0, shuffle=False).history
    for name, value in expected.items():
        np.testing.assert_allclose(evaluated[name], value, rtol=1e-4)
        np.testing.assert_allclose(history[name][0], value, rtol=1e-4)


def test_entities_of_a_tagger_are_counted_in_a_compiled_model():
    keras.utils.set_random_seed(1)
    encoder = models.RecurrentTextEncoder(8, embedding_units=4, units=4)
    model = models.TextTagger(encoder, len(TAGS))
    make, truth, _, _ = CASES["entity_f1"]
    true, _ = make_tags()
    random = np.random.default_rng(0)
    inputs = {"source": random.integers(4, 8, true.shape).astype("int32"), "begins": true != -1}
    found = model.predict_on_batch(inputs)
    # Make part of the predictions correct.
    agreeing = (np.arange(true.shape[1]) < 5) & (true != -1)
    true = np.where(agreeing, found["tags"], true)
    expected = truth(true, found["tags"], None)
    assert 0 < expected < 1
    model.compile(
        loss={"logits": keras.losses.SparseCategoricalCrossentropy(from_logits=True)},
        metrics={"logits": make(name="of_logits", pad_id=None), "tags": make(name="of_tags")},
    )
    # The mask of the logits marks where words begin, so padding may have any tag.
    given = {"logits": np.maximum(true, 0), "tags": true}
    evaluated = model.evaluate(inputs, given, verbose=0, return_dict=True)
    np.testing.assert_allclose(evaluated["logits_of_logits"], expected, rtol=1e-6)
    np.testing.assert_allclose(evaluated["tags_of_tags"], expected, rtol=1e-6)
