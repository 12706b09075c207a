"""`with_attention`: the same logits, and the attention weights."""

import keras
import numpy as np
import pytest
from differentiation import quick
from keras import ops

from keras_seq.models import RecurrentSeq2Seq, Transformer

SOURCE = np.array([[5, 6, 3], [7, 3, 0]], np.int32)
TARGET = np.array([[2, 6, 4, 7], [2, 6, 0, 0]], np.int32)
INPUTS = {"source": SOURCE, "target": TARGET}


def transformer(**arguments):
    sizes = {"units": 8, "feedforward_units": 16, "num_heads": 2}
    return Transformer(20, 20, 2, 2, **sizes, dropout=0.3, seed=1, **arguments)


def recurrent(**arguments):
    sizes = {"embedding_units": 4, "encoder_units": 4, "decoder_units": 8, "attention_units": 8}
    return RecurrentSeq2Seq(20, 20, **sizes, num_decoder_layers=2, seed=1, **arguments)


def arrays(variables):
    return [np.array(ops.convert_to_numpy(variable.value)) for variable in variables]


MODELS = {
    "transformer": transformer,
    "post": lambda: transformer(norm="post"),
    "recurrent": recurrent,
    "luong": lambda: recurrent(attention="luong", input_feeding=False),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_with_attention_keeps_logits_and_attends_to_real_tokens_only(make):
    model = make()
    before = arrays(model.variables)
    attending = model.with_attention()
    assert model.with_attention() is attending
    # It shares weights and seeds, adds none, and draws no random numbers.
    assert [weight.path for weight in attending.weights] == [w.path for w in model.weights]
    assert {id(v) for v in attending.variables} == {id(v) for v in model.variables}
    for old, new in zip(before, arrays(model.variables), strict=True):
        np.testing.assert_array_equal(old, new)
    results = {k: ops.convert_to_numpy(v) for k, v in quick(attending)(INPUTS).items()}
    logits = ops.convert_to_numpy(quick(model)(INPUTS))
    np.testing.assert_allclose(results["logits"], logits, atol=1e-5)
    attention = results["attention"]
    assert attention.shape == (2, 4, 3) and attention.dtype == np.float32
    np.testing.assert_allclose(attention.sum(-1), 1, atol=1e-5)
    assert (attention[1, :, 2] == 0).all() and (attention[0] > 0).all()


def test_attention_is_the_mean_over_heads_of_the_chosen_layer():
    """The expected value is the formula in numpy on the weights of the block."""
    model = transformer()
    encoder_output = model.get_layer("encoder_norm").output
    hidden = model.get_layer("decoder_block_0").output
    inner = keras.Model(model.input, [encoder_output, hidden])
    memory, x = (ops.convert_to_numpy(part) for part in quick(inner)(INPUTS))
    block = model.get_layer("decoder_block_1")
    # The second block up to its cross-attention, by layers that are tested elsewhere.
    x = block.self_attention_residual.around(block.self_attention, ops.convert_to_tensor(x))
    x = ops.convert_to_numpy(block.cross_attention_residual.normalization(x))
    weights = {
        weight.path.rsplit("/", 1)[-1]: ops.convert_to_numpy(weight)
        for weight in block.cross_attention.weights
    }
    query = x @ weights["query_kernel"] + weights["query_bias"]
    key = (memory @ weights["key_value_kernel"] + weights["key_value_bias"])[..., :8]
    by_head = []
    for head in (slice(0, 4), slice(4, 8)):
        scores = query[..., head] @ key[..., head].transpose(0, 2, 1) / 2
        scores = np.where(SOURCE[:, None] != 0, scores, -np.inf)
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        by_head.append(powers / powers.sum(-1, keepdims=True))
    expected = sum(by_head) / 2
    real = TARGET != 0
    for layer in (-1, 1):
        attention = ops.convert_to_numpy(quick(model.with_attention(layer))(INPUTS)["attention"])
        # The model has no query where the target is padding; this formula has one.
        np.testing.assert_allclose(attention[real], expected[real], atol=1e-5)
    first = ops.convert_to_numpy(quick(model.with_attention(0))(INPUTS)["attention"])
    assert np.abs(first - expected)[real].max() > 1e-4
    every = ops.convert_to_numpy(quick(model.with_attention(None))(INPUTS)["attention"])
    assert every.shape == (2, 2, 2, 4, 3)
    np.testing.assert_allclose(every[:, 0].mean(1), first, atol=1e-6)
    for head in (0, 1):
        one = ops.convert_to_numpy(quick(model.with_attention(-1, head))(INPUTS)["attention"])
        np.testing.assert_allclose(one[real], by_head[head][real], atol=1e-5)
        np.testing.assert_array_equal(one, every[:, 1, head])


@pytest.mark.slow
@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_attention_equals_that_of_single_search_steps(make):
    model = make()
    target = np.array([[2, 6, 4, 7], [2, 9, 5, 8]], np.int32)
    memory = quick(model.encoder)(SOURCE)
    state = model.initial_state(memory, 1, 4)
    steps, decoder_step = [], quick(model.decoder_step_with_attention)
    for position in range(4):
        out = decoder_step(
            {
                "token": ops.convert_to_tensor(target[:, position, None]),
                "position": ops.convert_to_tensor(position, "int32"),
                "state": state,
                "memory": memory,
            }
        )
        state = out["state"]
        steps.append(ops.convert_to_numpy(out["attention"])[:, 0])
    inputs = {"source": SOURCE, "target": target}
    whole = quick(model.with_attention())(inputs)["attention"]
    np.testing.assert_allclose(ops.convert_to_numpy(whole), np.stack(steps, 1), atol=1e-5)
    every = quick(model.with_attention(None))(inputs)["attention"]
    last = ops.convert_to_numpy(every)[:, -1].mean(axis=1)
    np.testing.assert_allclose(last, np.stack(steps, 1), atol=1e-5)


def test_missing_attention_layer_or_head_raises_value_error():
    with pytest.raises(ValueError, match="`layer` must be from -2 to 1.*received 2"):
        transformer().with_attention(2)
    with pytest.raises(ValueError, match="`layer` must be from -1 to 0"):
        recurrent().with_attention(1)
    with pytest.raises(ValueError, match="`head` must be from 0 to 1.*received 2"):
        transformer().with_attention(0, 2)
    with pytest.raises(ValueError, match="`head` must be from 0 to 0.*received -1"):
        recurrent().with_attention(0, -1)
    with pytest.raises(
        ValueError, match="None for the mean over heads, as .* layer=None; received 1"
    ):
        transformer().with_attention(None, 1)
