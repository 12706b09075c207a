"""A model of plain Keras layers, built without a run, is searched, exported and proved."""

import keras
import pytest
from stock_server import StockProcess, Tensor

from keras_seq import InputError, Translator
from keras_seq.models import RecurrentSeq2Seq, UncachedSeq2Seq
from keras_seq.serving import export_model
from keras_seq.settings import SearchSettings
from keras_seq.text import Tokenizer

pytestmark = pytest.mark.slow

TEXTS = ["a dog runs", "a cat", "dogs bark far away", "a bird sings", "cats sleep"]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(TEXTS * 4, size=300)


def plain_model(size):
    """An encoder-decoder model as in a tutorial, with random weights."""
    keras.utils.set_random_seed(1)
    source = keras.Input((None,), dtype="int32", name="source")
    target = keras.Input((None,), dtype="int32", name="target")
    embed = keras.layers.Embedding(size, 8, embeddings_initializer="normal")
    mask = keras.ops.not_equal(source, 0)
    summary = keras.layers.GRU(8)(embed(source), mask=mask)
    steps = keras.layers.GRU(8, return_sequences=True)(embed(target), initial_state=summary)
    return keras.Model({"source": source, "target": target}, keras.layers.Dense(size)(steps))


def test_plain_model_is_exported_and_a_stock_server_answers_alike(tokenizer, tmp_path):
    model = UncachedSeq2Seq(plain_model(tokenizer.vocabulary_size))
    options = {"beam_size": 3, "max_length": 9}
    notices = []
    version = export_model(
        model,
        tokenizer,
        tokenizer,
        tmp_path / "served",
        texts=TEXTS,
        notice=notices.append,
        **options,
    )
    assert version == tmp_path / "served" / "1"
    assert notices[0].startswith("5 texts come out as the model translates them; loaded in")
    expected = Translator(model, tokenizer, tokenizer, SearchSettings(**options))(TEXTS)
    assert len(set(expected)) > 1
    # In a process without Keras, through the C interface of TensorFlow.
    with StockProcess(version) as server:
        found = server.run("serving_default", {"text": Tensor.row(TEXTS)})["translation"].values
    assert [text.decode() for text in found] == expected


@pytest.mark.weekly
def test_model_of_keras_seq_is_exported_without_a_run(tokenizer, tmp_path):
    size = tokenizer.vocabulary_size
    sizes = {"embedding_units": 8, "encoder_units": 8, "decoder_units": 8, "attention_units": 8}
    model = RecurrentSeq2Seq(size, size, **sizes, seed=1)
    version = export_model(model, tokenizer, tokenizer, tmp_path, texts=TEXTS[:2], max_length=5)
    assert (version / "saved_model.pb").exists()


def test_what_cannot_be_exported_is_refused_first(tokenizer, tmp_path):
    size = tokenizer.vocabulary_size
    arguments = (tokenizer, tokenizer, tmp_path / "served")
    with pytest.raises(InputError, match="Functional lacks encoder, initial_state, decoder_step"):
        export_model(plain_model(size), *arguments, texts=TEXTS)
    with pytest.raises(InputError, match="texts: received no text"):
        export_model(UncachedSeq2Seq(plain_model(size)), *arguments, texts=["", " "])
    assert not (tmp_path / "served").exists()


def test_models_with_other_inputs_are_refused():
    inputs = keras.Input((None,), dtype="int32", name="source")
    outputs = keras.layers.Embedding(9, 4)(inputs)
    with pytest.raises(ValueError, match="must be a dict of `source` and `target`"):
        UncachedSeq2Seq(keras.Model({"source": inputs}, outputs))
    target = keras.Input((None,), dtype="int32", name="target")
    pooled = keras.ops.mean(outputs, axis=1) + keras.ops.cast(target[:, :1], "float32")
    with pytest.raises(ValueError, match="must be logits"):
        UncachedSeq2Seq(keras.Model({"source": inputs, "target": target}, pooled))
