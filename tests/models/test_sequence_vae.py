"""The variational autoencoder compared with numpy, and decoding of latent codes."""

import keras
import numpy as np
import pytest
import reference_recurrent as reference
from keras import ops

from keras_seq.models import SequenceVAE
from keras_seq.search import beam_search, sample

pytestmark = pytest.mark.jax

VOCABULARY = 12
SOURCE = np.array([[5, 6, 3], [7, 3, 0], [4, 9, 3]], "int32")
# 2 starts a target.
TARGET = np.array([[2, 5, 6], [2, 7, 0], [2, 4, 9]], "int32")
INPUTS = {"source": SOURCE, "target": TARGET}
SIZES = {"latent_units": 3, "embedding_units": 4, "encoder_units": 3, "decoder_units": 5}
DEEP = {
    "cell": "lstm",
    "num_encoder_layers": 2,
    "num_decoder_layers": 2,
    "tie_output": False,
}


def made(**options):
    model = SequenceVAE(VOCABULARY, **{**SIZES, **options}, seed=1)
    reference.randomize(model)
    return model


def posterior(source, weights, cell="gru", num_encoder_layers=1, **_):
    """Mean and log variance `(Z,)` of a row without padding."""
    table = weights["embedding/embeddings"]
    x = np.sqrt(table.shape[1]) * table[source]
    _, last = reference.bidirectional(x, cell, weights, num_encoder_layers)
    return [
        last[-1][0] @ weights[f"{part}/kernel"] + weights[f"{part}/bias"]
        for part in ("mean", "log_variance")
    ]


def decoded(z, target, weights, cell="gru", num_decoder_layers=1, tie_output=True, **_):
    """Logits `(T, V)` of a row without padding."""
    table = weights["embedding/embeddings"]
    x = np.sqrt(table.shape[1]) * table[target]
    x = np.concatenate([x, np.tile(z, (len(x), 1))], axis=1)
    for i in range(num_decoder_layers):
        first = [
            np.tanh(
                z @ weights[f"first_state_{i}_{j}/kernel"] + weights[f"first_state_{i}_{j}/bias"]
            )
            for j in range(reference.CELLS[cell][1])
        ]
        outputs, _ = reference.unroll(x, first, cell, weights, f"{cell}_{i}/{cell}_cell")
        x = x + outputs if i else outputs
    if not tie_output:
        return x @ weights["logits/kernel"] + weights["logits/bias"]
    return x @ weights["output_projection/kernel"] @ table.T


@pytest.mark.parametrize("options", [{}, DEEP], ids=["gru", "lstm"])
def test_sequence_vae_equals_numpy(options):
    model = made(**options)
    weights = reference.named_arrays(model)
    logits = ops.convert_to_numpy(model.predict_on_batch(INPUTS))
    found = {name: ops.convert_to_numpy(part) for name, part in model.posterior(SOURCE).items()}
    for row, (source, target) in enumerate(zip(SOURCE, TARGET, strict=True)):
        source, target = source[source != 0], target[target != 0]
        mean, log_variance = posterior(source, weights, **options)
        np.testing.assert_allclose(found["mean"][row], mean, atol=1e-5)
        np.testing.assert_allclose(found["log_variance"][row], log_variance, atol=1e-5)
        expected = decoded(mean, target, weights, **options)
        np.testing.assert_allclose(logits[row, : len(target)], expected, atol=3e-5)


def test_decoder_of_any_latent_code_equals_numpy():
    model = made()
    z = np.array([[0.3, -2.0, 1.0], [0.0, 0.0, 0.0], [5.0, 1.0, -1.0]], "float32")
    logits = ops.convert_to_numpy(model.decoder({"latent": z, "target": TARGET}))
    weights = reference.named_arrays(model)
    for row in (0, 2):
        expected = decoded(z[row], TARGET[row], weights)
        np.testing.assert_allclose(logits[row], expected, atol=3e-5)


def test_decoder_of_one_row_with_as_many_steps_as_units_equals_numpy():
    """With these sizes Keras could take a latent code for a bias of the steps."""
    model = made()
    z = np.array([[0.3, -2.0, 1.0]], "float32")
    target = TARGET[:1, : z.shape[1]]
    logits = ops.convert_to_numpy(model.decoder({"latent": z, "target": target}))
    expected = decoded(z[0], target[0], reference.named_arrays(model))
    np.testing.assert_allclose(logits[0], expected, atol=3e-5)


def test_training_samples_codes_with_the_posterior_mean_and_variance():
    # One row repeated many times, and a decoder that depends on z only.
    model = made(dropout=0.0)
    rows = 4000
    inputs = {name: np.repeat(ids[:1, :2], rows, axis=0) for name, ids in INPUTS.items()}
    drawn = keras.Model(model.inputs, model.get_layer("sampling").output)
    z = ops.convert_to_numpy(drawn(inputs, training=True))
    mean, log_variance = posterior(SOURCE[0, :2], reference.named_arrays(model))
    deviation = np.exp(log_variance / 2)
    np.testing.assert_allclose(z.mean(0), mean, atol=5 * deviation.max() / np.sqrt(rows))
    np.testing.assert_allclose(z.std(0), deviation, rtol=0.06)
    again = ops.convert_to_numpy(drawn(inputs, training=True))
    assert np.abs(again - z).max() > 0.1


def test_search_from_the_posterior_mean_equals_search_from_the_text():
    model = made()
    options = {"beam_size": 2, "max_length": 6, "max_length_ratio": 9.0}
    of_text = beam_search(model, ops.convert_to_tensor(SOURCE), **options)
    mean = model.posterior(SOURCE)["mean"]
    of_code = beam_search(model.from_latent, mean, **options)
    for one, other in zip(of_text, of_code, strict=True):
        np.testing.assert_allclose(
            ops.convert_to_numpy(one), ops.convert_to_numpy(other), atol=1e-5
        )


def test_different_latent_codes_give_different_samples():
    model = made()
    z = np.zeros((6, 3), "float32")
    z[3:, 0] = 1e-4
    found = sample(model.from_latent, ops.convert_to_tensor(z), seed=1, max_length=8)
    tokens = ops.convert_to_numpy(found.tokens)
    np.testing.assert_array_equal(tokens[:1], tokens[1:2])
    assert (tokens[0] != tokens[3]).any()


def test_config_rebuilds_the_sequence_vae():
    model = made(**DEEP)
    other = SequenceVAE.from_config(model.get_config())
    assert [weight.path for weight in other.weights] == [weight.path for weight in model.weights]
    assert other.get_config() == model.get_config()


def test_missing_attention_and_invalid_vae_sizes_raise_value_error():
    with pytest.raises(ValueError, match="needs attention to the source"):
        beam_search(made(), np.array([[5, 3]], "int32"), beam_size=2, coverage_penalty=0.1)
    with pytest.raises(ValueError, match="`latent_units` must be a positive integer, received 0"):
        made(latent_units=0)
    with pytest.raises(ValueError, match="`cell` must be one of 'gru', 'lstm', received 'rnn'"):
        made(cell="rnn")
