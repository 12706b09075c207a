"""Attention to the source: known by construction, from the softmax formula, from the cell."""

import io

import numpy as np
import pytest
import sentencepiece
from keras import ops

from keras_seq.analysis.alignment import Aligner
from keras_seq.analysis.attention import AttentionExtractor
from keras_seq.analysis.attention_layer import alignment_layer, attention_shape
from keras_seq.inference.hypothesis import Hypothesis
from keras_seq.inference.translator import Translator
from keras_seq.models import Ensemble, RecurrentSeq2Seq, Transformer
from keras_seq.settings import load_settings
from keras_seq.text import Tokenizer

LINES = ["two dogs run", "", "a dog sees a cat", "cat"]


def foreign_tokenizer():
    """A tokenizer without byte pieces, so that unseen letters are unknown tokens."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.Train(
        sentence_iterator=iter(["a dog sees a cat", "two dogs run far"] * 9),
        model_writer=model,
        vocab_size=60,
        hard_vocab_limit=False,
        byte_fallback=False,
        pad_id=0, unk_id=1, bos_id=2, eos_id=3,
        normalization_rule_name="nmt_nfkc",
        minloglevel=3,
    )  # fmt: skip
    return Tokenizer.from_bytes(model.getvalue())


@pytest.fixture(scope="module")
def tokenizer():
    return foreign_tokenizer()


def diagonal_model(vocabulary_size):
    """A Transformer that attends by position only, from target step t to source step t.

    Embeddings and the outputs of self-attention and feed-forward layers are 0, so each state is a
    sinusoidal position encoding. Queries are 60 times the keys, and the product of two encodings
    is largest for equal positions.
    """
    model = Transformer(
        vocabulary_size, vocabulary_size, 1, 2,
        units=32, feedforward_units=4, num_heads=1, dropout=0.0,
    )  # fmt: skip
    for weight in model.weights:
        if weight.path.split("/")[-1] not in ("gamma", "scale"):
            weight.assign(ops.zeros(weight.shape))
    one = np.eye(32, dtype="float32")
    for i in range(2):
        attention = model.get_layer(f"decoder_block_{i}").cross_attention
        weights = {weight.path.split("/")[-1]: weight for weight in attention.weights}
        weights["query_kernel"].assign(60 * one)
        weights["key_value_kernel"].assign(np.concatenate([one, 0 * one], axis=1))
    return model


def recurrent_model(vocabulary_size):
    return RecurrentSeq2Seq(
        vocabulary_size, vocabulary_size, embedding_units=8, encoder_units=8, decoder_units=8,
        attention_units=8, seed=3,
    )  # fmt: skip


def given(tokenizer, texts):
    """Hypotheses with the given texts, as a search returns them."""
    return [
        [Hypothesis(text, 0.0, False, tuple(tokenizer.encode([text])[0]))] if text else []
        for text in texts
    ]


def test_diagonal_attention_links_word_n_with_word_n(tokenizer):
    model = diagonal_model(tokenizer.vocabulary_size)
    attending = AttentionExtractor(model, tokenizer)
    aligner = Aligner(tokenizer, tokenizer)
    found = given(tokenizer, LINES)
    every = attending(LINES, found)
    assert [len(one) for one in every] == [1, 0, 1, 1]
    for line, hypotheses, of_line in zip(LINES, found, every, strict=True):
        for one, attention in zip(hypotheses, of_line, strict=True):
            assert attention.source == attention.target == (*one.tokens, 3)
            np.testing.assert_allclose(attention.weights.sum(axis=1), 1, atol=1e-5)
            assert (attention.weights.argmax(axis=1) == np.arange(len(attention.target))).all()
            assert np.diag(attention.weights).min() > 0.9
            words = range(len(line.split()))
            assert aligner.links(line, one, attention) == [(word, word) for word in words]


def test_attention_is_independent_of_the_batch_for_every_head(tokenizer):
    model = Transformer(
        tokenizer.vocabulary_size, tokenizer.vocabulary_size, 1, 2,
        units=16, feedforward_units=8, num_heads=2, seed=1,
    )  # fmt: skip
    found = given(tokenizer, ["run far", "", "two dogs see a cat", "a"])
    of_head, of_layer = (
        AttentionExtractor(model, tokenizer, layer=0, head=1),
        AttentionExtractor(model, tokenizer),
    )
    together, means = of_head(LINES, found), of_layer(LINES, found)
    every = of_layer(LINES, found, all_layers=True)
    for i in (0, 2, 3):
        (one,), (mean,), (of_all,) = together[i], means[i], every[i]
        [[alone]] = of_head([LINES[i]], [found[i]])
        np.testing.assert_allclose(one.weights, alone.weights, atol=1e-6)
        rows, columns = len(one.target), len(one.source)
        assert of_all.weights.shape == (2, 2, rows, columns)
        np.testing.assert_allclose(of_all.weights.sum(axis=-1), 1, atol=1e-5)
        np.testing.assert_allclose(of_all.weights[0, 1], one.weights, atol=1e-6)
        np.testing.assert_allclose(of_all.weights[1].mean(axis=0), mean.weights, atol=1e-6)


def test_attention_of_a_recurrent_model_equals_that_of_its_cell(tokenizer):
    """The cell takes the same steps as the search that wrote the translation."""
    model = recurrent_model(tokenizer.vocabulary_size)
    [[found]] = given(tokenizer, ["two dogs run"])
    [[attention]] = AttentionExtractor(model, tokenizer)(["a dog sees"], [[found]])
    source = np.array([[*tokenizer.encode(["a dog sees"])[0], 3]], "int32")
    memory = model.encoder(source)
    state = model.initial_state(memory, 1, len(attention.target))
    for position, token in enumerate([2, *found.tokens]):
        out = model.decoder_step_with_attention(
            {
                "token": ops.array([[token]], "int32"),
                "position": ops.array(position, "int32"),
                "state": state,
                "memory": memory,
            }
        )
        state = out["state"]
        looked = ops.convert_to_numpy(out["attention"])[0, 0]
        np.testing.assert_allclose(attention.weights[position], looked, atol=1e-5)


def test_truncated_translation_has_no_attention_row_for_an_end_token(tokenizer):
    model = recurrent_model(tokenizer.vocabulary_size)
    search = load_settings(overrides={"search.max_length": 3, "search.beam_size": 1}).search
    translator = Translator(model, tokenizer, tokenizer, search)
    found = translator.translate(["two dogs run far"])
    [[attention]] = AttentionExtractor(translator.model, tokenizer)(["two dogs run far"], found)
    assert attention.weights.shape[0] == len(attention.target) <= 3
    assert found[0][0].ended == (attention.target[-1] == 3)
    if not found[0][0].ended:
        assert attention.target == found[0][0].tokens


def test_word_alignment_sums_weights_over_source_pieces(tokenizer):
    """Computed by hand: `dogs` has several pieces on both sides."""
    line = "dogs run"
    [[one]] = given(tokenizer, ["run dogs"])
    source, target = tokenizer.encode([line])[0], one.tokens
    text = tokenizer.surfaces([target])[0]
    starts = [tokenizer.pieces[token].text.startswith("\u2581") for token in source]
    second = [i for i, start in enumerate(starts) if start][1]
    assert second > 1, "the first word should have several pieces"
    weights = np.zeros((len(target) + 1, len(source) + 1), np.float32)
    # The end has half of a row, the first word the larger sum, the second the largest piece.
    weights[:, -1] = 0.5
    weights[:, :second] = 0.3 / second
    weights[:, second] = 0.2
    assert weights[0, :second].max() < 0.2
    attention = AttentionExtractor(recurrent_model(tokenizer.vocabulary_size), tokenizer)(
        [line], [[one]]
    )[0]
    aligner = Aligner(tokenizer, tokenizer)
    assert "".join(text) == "run dogs"
    assert aligner.links(line, one, attention[0]._replace(weights=weights)) == [(0, 0), (0, 1)]


UNKNOWN = [
    # Source, target with ? for an unknown token, and expected text.
    ("a \u03a9\u03a8 run", "a ? run", "a \u03a9\u03a8 run"),
    ("\u03a9 dog", "? dog", "\u03a9 dog"),
    ("see\u03a9 a", "see? a", "see\u03a9 a"),
]


@pytest.mark.parametrize(("line", "target", "expected"), UNKNOWN)
def test_an_unknown_token_becomes_what_it_stands_for_in_the_source(
    tokenizer, line, target, expected
):
    """The model attends diagonally, so an unknown token copies the source at the same position."""
    model = diagonal_model(tokenizer.vocabulary_size)
    (ids,) = tokenizer.encode([target.replace("?", "\u4e00")])
    assert 1 in ids
    found = Hypothesis("", -1.0, False, tuple(ids))
    [[attention]] = AttentionExtractor(model, tokenizer)([line], [[found]])
    assert attention.source == attention.target
    aligner = Aligner(tokenizer, tokenizer)
    replaced = aligner.without_unknown(line, found, attention)
    assert replaced == found._replace(text=expected)
    words = len(line.split())
    assert aligner.links(line, replaced, attention) == [(word, word) for word in range(words)]


def test_an_unknown_token_that_looks_at_a_known_word_becomes_that_word(tokenizer):
    model = recurrent_model(tokenizer.vocabulary_size)
    (ids,) = tokenizer.encode(["two \u4e00 run"])
    found = Hypothesis("", -1.0, False, tuple(ids))
    line = "a dog\trun"
    [[attention]] = AttentionExtractor(model, tokenizer)([line], [[found]])
    weights = np.zeros_like(attention.weights)
    pieces = [tokenizer.pieces[token].text for token in attention.source]
    words = np.cumsum([piece.startswith("\u2581") for piece in pieces])
    weights[:, np.flatnonzero(words == 2)[0]] = 1
    replaced = Aligner(tokenizer, tokenizer).without_unknown(
        line, found, attention._replace(weights=weights)
    )
    assert replaced.text == "two dog run"
    known = found._replace(tokens=tuple(tokenizer.encode(["two run"])[0]))
    assert Aligner(tokenizer, tokenizer).without_unknown(line, known, attention) is known


@pytest.mark.slow
@pytest.mark.parametrize("unknown", [False, True])
def test_search_generates_the_unknown_token_only_when_enabled(tokenizer, unknown):
    model = recurrent_model(tokenizer.vocabulary_size)
    (bias,) = (w for w in model.weights if w.shape == (tokenizer.vocabulary_size,))
    bias.assign(100.0 * np.eye(tokenizer.vocabulary_size, dtype="float32")[1])
    search = load_settings(overrides={"search.max_length": 4, "search.beam_size": 1}).search
    found = Translator(model, tokenizer, tokenizer, search, unknown=unknown).translate(["a dog"])
    assert (1 in found[0][0].tokens) == unknown


def test_token_surfaces_join_to_the_decoded_text(tokenizer):
    own = Tokenizer.train(["a dog sees a cat"] * 9, size=290)
    for text in ("a dog", "cat \U0001f600 dog", "\u00e4", "a  b\tc", "dog\u2028cat"):
        (ids,) = own.encode([text])
        (parts,) = own.surfaces([[2, *ids, 3, 0]])
        assert len(parts) == len(ids) + 3 and (parts[0], parts[-2:]) == ("", ["", ""])
        assert "".join(parts) == own.decode([ids])[0]
    newline = [i for i, piece in enumerate(own.pieces) if piece.text == "<0x0A>"]
    assert own.surfaces([newline]) == [[" "]]
    assert own.surfaces([]) == [] and own.surfaces([[]]) == [[]]
    with pytest.raises(ValueError, match="ids\\[0\\] has -1, expected"):
        own.surfaces([[-1]])


def test_attending_rejects_an_ensemble_and_a_missing_head(tokenizer):
    model = recurrent_model(tokenizer.vocabulary_size)
    with pytest.raises(ValueError, match="must be one model.*received Ensemble"):
        AttentionExtractor(Ensemble([model, model]), tokenizer)
    with pytest.raises(ValueError, match="`head` must be from 0 to 0"):
        AttentionExtractor(model, tokenizer, head=1)


def test_alignment_layer_follows_depth_and_guided_alignment():
    def layer(**model):
        overrides = {f"model.{key}": value for key, value in model.items()}
        return alignment_layer(load_settings(overrides=overrides))

    assert [layer(num_decoder_layers=n) for n in (1, 2, 3, 4, 6)] == [0, 1, 1, 2, 4]
    taught = {"training.guided_alignment": 0.1, "training.guided_alignment_layer": -2}
    pair = {"data.pairs": "a", "data.alignments": "b"}
    settings = load_settings(overrides={"model.num_decoder_layers": 6, **taught, **pair})
    assert alignment_layer(settings) == 4
    settings = load_settings(preset="rnn-small")
    assert (alignment_layer(settings), attention_shape(settings)) == (0, (1, 1))
    # A pretrained encoder is combined with a Transformer decoder.
    hub = {"tokenizer.joint": False, "model.family": "transformer-hub"}
    settings = load_settings(overrides={**hub, "model.num_decoder_layers": 6, **taught, **pair})
    assert (alignment_layer(settings), attention_shape(settings)) == (4, (6, 4))
