"""Validation metrics compared with a slow NumPy Transformer."""

import math

import numpy as np
import pytest
import reference_transformer as reference

from keras_seq.models import Transformer
from keras_seq.training import make_evaluation

# One shape, so that JAX compiles once.
FIRST = {
    "source": np.array([[5, 9, 4, 3], [7, 3, 0, 0]], "int32"),
    "target_input": np.array([[2, 4, 0], [2, 11, 10]], "int32"),
    "target_output": np.array([[4, 3, 0], [11, 10, 3]], "int32"),
}
SECOND = {
    "source": np.array([[6, 3, 0, 0], [0, 0, 0, 0]], "int32"),
    "target_input": np.array([[2, 8, 0], [0, 0, 0]], "int32"),
    "target_output": np.array([[8, 3, 0], [0, 0, 0]], "int32"),
}


@pytest.fixture(scope="module")
def model():
    model = Transformer(12, 12, 1, 1, units=8, feedforward_units=10, num_heads=2, dropout=0.5)
    reference.randomize(model)
    return model


@pytest.fixture(scope="module")
def evaluate(model):
    return make_evaluation(model)


def expected_numbers(model, batches):
    losses, right = [], []
    for batch in batches:
        rows = batch["source"].any(axis=1)
        logits = reference.transformer(
            batch["source"][rows],
            batch["target_input"][rows],
            reference.named_arrays(model),
            2,
            "pre",
        )
        output = batch["target_output"][rows]
        for row, step in np.argwhere(output):
            token = output[row, step]
            losses.append(-reference.log_softmax(logits[row, step])[token])
            right.append(logits[row, step].argmax() == token)
    mean = float(np.mean(losses))
    return {"loss": mean, "perplexity": math.exp(mean), "accuracy": float(np.mean(right))}


def test_evaluation_is_the_mean_over_all_tokens_of_all_batches(model, evaluate):
    results = evaluate([FIRST, SECOND])
    assert results == pytest.approx(expected_numbers(model, [FIRST, SECOND]), rel=1e-4)
    # The batches have 5 and 2 tokens, which weight their means.
    means = [evaluate([batch])["loss"] for batch in (FIRST, SECOND)]
    assert results["loss"] == pytest.approx((5 * means[0] + 2 * means[1]) / 7, rel=1e-5)


def test_evaluation_uses_the_current_weights(model, evaluate):
    before = evaluate([FIRST])
    reference.randomize(model, 1)
    after = evaluate([FIRST])
    assert after == pytest.approx(expected_numbers(model, [FIRST]), rel=1e-4)
    reference.randomize(model, 0)
    assert evaluate([FIRST]) == before != after


def test_accuracy_counts_tokens_the_model_ranks_first(model, evaluate):
    logits = model.predict_on_batch({"source": FIRST["source"], "target": FIRST["target_input"]})
    best = logits.argmax(axis=-1).astype("int32")
    real = FIRST["target_output"] != 0
    # An id of 0 would read as padding.
    assert best[real].all()
    assert evaluate([FIRST | {"target_output": np.where(real, best, 0)}])["accuracy"] == 1
    worst = np.where(real, best % 11 + 1, 0).astype("int32")
    assert evaluate([FIRST | {"target_output": worst}])["accuracy"] == 0


def test_evaluation_ignores_predictions_on_padding(model, evaluate):
    table = model.get_layer("target_embedding").embeddings
    # Give id 0 ten times the top logit at the padded step of the first row.
    inputs = {"source": FIRST["source"], "target": FIRST["target_input"]}
    first = model.predict_on_batch(inputs)[0, 2].argmax()
    values = np.array(table)
    values[0] = 10 * values[first]
    table.assign(values)
    assert model.predict_on_batch(inputs)[0, 2].argmax() == 0
    results = evaluate([FIRST])
    expected = expected_numbers(model, [FIRST])
    reference.randomize(model, 0)
    assert results == pytest.approx(expected, rel=1e-4)


def test_evaluation_of_no_batches_gives_zero_loss_and_accuracy(evaluate):
    assert evaluate([]) == {"loss": 0.0, "perplexity": 1.0, "accuracy": 0.0}


def test_a_diverged_model_has_an_infinite_perplexity(model, evaluate):
    table = model.get_layer("target_embedding").embeddings
    table.assign(table * 1e4)
    results = evaluate([FIRST])
    reference.randomize(model, 0)
    assert results["loss"] > 700
    assert results["perplexity"] == math.inf
