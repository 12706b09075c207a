"""Language models compared with numpy, whole targets and single steps."""

import keras
import numpy as np
import pytest
import reference_recurrent
import reference_transformer as reference
from keras import ops

from keras_seq.models import RecurrentLanguageModel, TransformerLanguageModel
from keras_seq.search import beam_search, forced_scores

VOCABULARY = 12
SIZES = {"num_layers": 2, "units": 8, "feedforward_units": 10, "num_heads": 2}
# 2 starts a target.
TARGET = np.array([[2, 4, 4, 0, 0], [2, 11, 10, 9, 8], [2, 0, 0, 0, 0]], "int32")
SOURCE = np.array([[3], [3], [3]], "int32")


def transformer_logits(row, weights, norm):
    """Logits `(T, V)` of a row without padding."""
    table = weights["embedding/embeddings"]
    x = reference.embed(row, table)
    for i in range(SIZES["num_layers"]):
        x = reference.encoder_block(
            x, weights, SIZES["num_heads"], norm, causal=True, prefix=f"block_{i}/"
        )
    if norm == "pre":
        x = reference.normalize(x, weights, "norm")
    return x @ table.T


def recurrent_logits(row, weights, cell, num_layers, tied):
    """Logits `(T, V)` of a row without padding."""
    table = weights["embedding/embeddings"]
    compute, num_states = reference_recurrent.CELLS[cell]
    units = weights[f"{cell}_0/{cell}_cell/recurrent_kernel"].shape[0]
    states = [[np.zeros(units)] * num_states for _ in range(num_layers)]
    logits = []
    for token in row:
        x = np.sqrt(table.shape[1]) * table[token]
        for i in range(num_layers):
            outputs, states[i] = compute(x, states[i], weights, f"{cell}_{i}/{cell}_cell")
            x = x + outputs if i else outputs
        if not tied:
            logits.append(x @ weights["logits/kernel"] + weights["logits/bias"])
        else:
            logits.append(table @ (x @ weights["output_projection/kernel"]))
    return np.stack(logits)


def check(model, expected):
    found = ops.convert_to_numpy(model.predict_on_batch({"source": SOURCE, "target": TARGET}))
    for row, logits in zip(TARGET, found, strict=True):
        real = row[row != 0]
        np.testing.assert_allclose(logits[: len(real)], expected(real), atol=2e-5)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_transformer_language_model_equals_numpy(norm):
    model = TransformerLanguageModel(VOCABULARY, **SIZES, norm=norm)
    reference.randomize(model)
    weights = reference.named_arrays(model)
    check(model, lambda row: transformer_logits(row, weights, norm))


@pytest.mark.parametrize(("cell", "num_layers", "tied"), [("gru", 1, True), ("lstm", 2, False)])
def test_recurrent_language_model_equals_numpy(cell, num_layers, tied):
    model = RecurrentLanguageModel(
        VOCABULARY, cell=cell, num_layers=num_layers, embedding_units=4, units=6, tie_output=tied
    )
    reference.randomize(model)
    weights = reference.named_arrays(model)
    check(model, lambda row: recurrent_logits(row, weights, cell, num_layers, tied))


MODELS = {
    "transformer": lambda: TransformerLanguageModel(VOCABULARY, **SIZES),
    "recurrent": lambda: RecurrentLanguageModel(VOCABULARY, embedding_units=4, units=6),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    made = MODELS[request.param]()
    reference.randomize(made)
    return made


def test_language_model_ignores_the_source(model):
    others = np.array([[5, 6, 3], [3, 0, 0], [9, 9, 3]], "int32")
    inputs = [{"source": source, "target": TARGET} for source in (SOURCE, others)]
    first, second = (ops.convert_to_numpy(model.predict_on_batch(each)) for each in inputs)
    np.testing.assert_array_equal(first, second)


def test_beam_search_continues_a_prompt_and_scores_the_full_text(model):
    prompt = np.array([[4, 7], [9, 0], [0, 0]], "int32")
    found = beam_search(
        model,
        ops.convert_to_tensor(SOURCE),
        beam_size=3,
        max_length=6,
        max_length_extra=6,
        length_normalization="none",
        prefix=ops.convert_to_tensor(prompt),
    )
    tokens, lengths, scores = (
        ops.convert_to_numpy(part)[:, 0] for part in (found.tokens, found.lengths, found.scores)
    )
    for row, begin in enumerate(prompt):
        begin = begin[begin != 0]
        np.testing.assert_array_equal(tokens[row, : len(begin)], begin)
        output = tokens[row, : lengths[row]]
        given = np.concatenate([[2], output[:-1]])
        each = forced_scores(model, SOURCE[:1], given[None].astype("int32"), output[None])
        np.testing.assert_allclose(scores[row], ops.convert_to_numpy(each).sum(), atol=1e-4)


def test_a_model_is_rebuilt_from_its_config(model):
    other = type(model).from_config(model.get_config())
    assert [weight.path for weight in other.weights] == [weight.path for weight in model.weights]
    assert other.get_config() == model.get_config()


def test_coverage_penalty_of_a_language_model_raises_value_error(model):
    assert not hasattr(model, "decoder_step_with_attention")
    with pytest.raises(ValueError, match="needs attention to the source"):
        beam_search(model, np.array([[5, 3]], "int32"), beam_size=2, coverage_penalty=0.1)


def test_invalid_language_model_arguments_are_named_in_the_error():
    with pytest.raises(ValueError, match="`cell` must be one of 'gru', 'lstm', received 'rnn'"):
        RecurrentLanguageModel(VOCABULARY, cell="rnn")
    with pytest.raises(ValueError, match="`num_layers` must be a positive integer, received 0"):
        RecurrentLanguageModel(VOCABULARY, num_layers=0)
    with pytest.raises(ValueError, match="`num_layers` must be a positive integer, received 0"):
        TransformerLanguageModel(VOCABULARY, 0, 8, 16, 2)


def test_language_model_dropout_follows_the_seed():
    losses = []
    for seed in (1, 1, 2):
        model = RecurrentLanguageModel(VOCABULARY, embedding_units=4, units=4, seed=seed)
        for weight in model.weights:
            if "int" not in keras.backend.standardize_dtype(weight.dtype) and weight.trainable:
                weight.assign(np.full(weight.shape, 0.1))
        outputs = model({"source": SOURCE, "target": TARGET}, training=True)
        losses.append(ops.convert_to_numpy(outputs))
    np.testing.assert_array_equal(losses[0], losses[1])
    assert np.abs(losses[0] - losses[2]).max() > 0
