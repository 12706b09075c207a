"""Taggers compared with numpy, and what a conditional random field adds."""

import itertools

import keras
import numpy as np
import pytest
import reference_recurrent
import reference_transformer as reference
from keras import ops

from keras_seq.models import RecurrentTextEncoder, TextTagger, TransformerTextEncoder
from keras_seq.models.call_method import CallMethod

VOCABULARY, TAGS = 12, 3
SOURCE = np.array([[4, 5, 11, 4, 9], [7, 6, 3, 0, 0], [8, 0, 0, 0, 0]], "int32")
# Words of one token and of two; the last begins in padding, which counts for nothing.
BEGINS = np.array([[1, 0, 1, 1, 0], [1, 1, 0, 0, 0], [1, 0, 1, 0, 0]], "bool")
REAL = BEGINS & (SOURCE != 0)


def recurrent_vectors(row, weights):
    table = weights["embedding/embeddings"]
    x = np.sqrt(table.shape[1]) * table[row]
    return reference_recurrent.bidirectional(x, "lstm", weights, 2)[0]


def transformer_vectors(row, weights):
    x = reference.embed(row, weights["embedding/embeddings"])
    x = reference.encoder_block(x, weights, 2, "pre", prefix="encoder_block_0/")
    return reference.normalize(x, weights, "encoder_norm")


ENCODERS = {
    "recurrent": (
        lambda: RecurrentTextEncoder(VOCABULARY, "lstm", 2, embedding_units=4, units=3),
        recurrent_vectors,
    ),
    "transformer": (
        lambda: TransformerTextEncoder(VOCABULARY, 1, units=8, feedforward_units=10, num_heads=2),
        transformer_vectors,
    ),
}


def likeliest(potentials, weights):
    """The best sequence of tags, found by exhaustive search."""

    def score(tags):
        return (
            weights["field/start"][tags[0]]
            + sum(potential[tag] for potential, tag in zip(potentials, tags, strict=True))
            + sum(weights["field/transitions"][pair] for pair in itertools.pairwise(tags))
            + weights["field/end"][tags[-1]]
        )

    return max(itertools.product(range(TAGS), repeat=len(potentials)), key=score)


@pytest.mark.parametrize("crf", [True, False], ids=["field", "plain"])
@pytest.mark.parametrize("name", ENCODERS)
def test_tagger_logits_and_tags_equal_numpy(name, crf):
    make_encoder, vectors_of = ENCODERS[name]
    model = TextTagger(make_encoder(), TAGS, crf)
    assert (model.field is not None) == crf
    reference.randomize(model)
    weights = reference.named_arrays(model)
    found = model.predict_on_batch({"source": SOURCE, "begins": BEGINS})
    assert (found["logits"].dtype, found["tags"].dtype) == (np.float32, np.int32)
    for row, real, logits, tags in zip(SOURCE, REAL, found["logits"], found["tags"], strict=True):
        tokens = row[row != 0]
        expected = vectors_of(tokens, weights) @ weights["logits/kernel"] + weights["logits/bias"]
        np.testing.assert_allclose(logits[: len(tokens)], expected, atol=2e-5)
        potentials = expected[real[: len(tokens)]]
        best = likeliest(potentials, weights) if crf else potentials.argmax(axis=1)
        np.testing.assert_array_equal(tags[real], best)
        assert not tags[~real].any()


def trained(crf):
    """The words carry no information. Their tags occur in these shares:

        4 / 10: 0, 0      3 / 10: 1, 2      3 / 10: 2, 2

    The most likely tag of the first word is 0, of the second 2, and these never occur together. A
    tagger without a field predicts them. Its minimal loss, -log P, is the sum of the entropies of
    both tags; with a field it is the entropy of these three pairs.
    """
    keras.utils.set_random_seed(1)
    encoder = RecurrentTextEncoder(VOCABULARY, embedding_units=4, units=4, dropout=0.0)
    model = TextTagger(encoder, TAGS, crf, dropout=0.0)
    # Words of two tokens, and padding.
    source = np.tile(np.array([5, 6, 5, 6, 0], "int32"), (10, 1))
    begins = np.tile(np.array([1, 0, 1, 0, 0], "bool"), (10, 1))
    tags = np.zeros((10, 5), "int32")
    tags[:, [0, 2]] = [[0, 0]] * 4 + [[1, 2]] * 3 + [[2, 2]] * 3
    inputs = model.input
    given = keras.Input((None,), dtype="int32", name="tags")
    logits = model(inputs)["logits"]
    if crf:
        cost = -CallMethod(model.field, "log_likelihood")(
            {"inputs": logits, "tags": given, "mask": inputs["begins"]}
        )
    else:
        each = keras.losses.sparse_categorical_crossentropy(given, logits, from_logits=True)
        cost = ops.sum(ops.where(inputs["begins"], each, 0.0), axis=1)
    fitted = keras.Model({**inputs, "tags": given}, cost)
    fitted.compile(
        keras.optimizers.Adam(0.1),
        lambda _, cost: ops.mean(cost),
        jit_compile=keras.backend.backend() == "jax",
    )
    data = {"source": source, "begins": begins, "tags": tags}
    for _ in range(40):
        cost = fitted.train_on_batch(data, np.zeros(10))
    found = ops.convert_to_numpy(model({"source": source, "begins": begins})["tags"])
    whole = (found == tags).all(axis=1).mean()
    return float(cost), whole


def entropy(*shares):
    return -sum(share * np.log(share) for share in shares)


@pytest.mark.slow
def test_tagger_with_a_crf_learns_dependencies_between_tags():
    cost, whole = trained(crf=True)
    assert entropy(0.4, 0.3, 0.3) - 1e-3 < cost < entropy(0.4, 0.3, 0.3) + 0.1
    assert whole == 0.4


@pytest.mark.slow
@pytest.mark.weekly
def test_tagger_without_a_crf_cannot_learn_dependencies_between_tags():
    cost, whole = trained(crf=False)
    least = entropy(0.4, 0.3, 0.3) + entropy(0.4, 0.6)
    assert least - 1e-3 < cost < least + 0.1
    assert whole == 0


ENCODER = RecurrentTextEncoder(20, embedding_units=4, units=4)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: RecurrentTextEncoder(20, units=0), "`units` must be a positive integer"),
        (lambda: TextTagger(ENCODER, 0), "`num_tags` must be a positive integer, received 0"),
        (lambda: TextTagger(ENCODER, -1), "`num_tags` must be a positive integer, received -1"),
    ],
)
def test_invalid_tagger_arguments_are_named_in_the_error(made, said):
    with pytest.raises(ValueError, match=said):
        made()
