"""Batches that do not fit into the memory are split; single rows that do not fit are refused."""

import keras
import numpy as np
import pytest

from keras_seq.inference.autoencoder import Autoencoder
from keras_seq.inference.classifier import Classifier
from keras_seq.inference.id_search import IdSearch
from keras_seq.inference.likelihood import LikelihoodScorer
from keras_seq.inference.row_memory import attention_heads, encoding_memory, search_memory
from keras_seq.inference.tagger import Tagger
from keras_seq.models import (
    Ensemble,
    EnsembleSeq2Seq,
    RecurrentSeq2Seq,
    SequenceVAE,
    TextClassifier,
    TextTagger,
    Transformer,
    TransformerLanguageModel,
    TransformerTextEncoder,
)
from keras_seq.process.memory import VARIABLE, free_memory
from keras_seq.search import SearchResult
from keras_seq.settings import SearchSettings
from keras_seq.text import InputError, Labels, Tokenizer

TOKENIZER = Tokenizer.train(["the cat sees the dog", "a small dog runs"], size=275)
SIZE = TOKENIZER.vocabulary_size
SHAPE = {"units": 8, "feedforward_units": 16, "num_heads": 4}
UNITS = {"embedding_units": 4, "encoder_units": 4, "decoder_units": 6}


@pytest.fixture(scope="module")
def transformer():
    keras.utils.set_random_seed(3)
    model = Transformer(SIZE, SIZE, 1, 2, **SHAPE)
    for weight in model.weights:
        # Logits that differ clearly.
        weight.assign(3 * weight)
    return model


@pytest.fixture
def batches(monkeypatch):
    """The shapes of batches, by a search that finds nothing."""
    shapes = []

    def compiled(function, variables, ranks):
        def search(sources, prefixes=None):
            shapes.append(sources.shape)
            rows = len(sources)
            return SearchResult(*(np.zeros(shape) for shape in [(rows, 1, 1)] + 3 * [(rows, 1)]))

        return search

    monkeypatch.setattr("keras_seq.inference.id_search.backend.compiled", compiled)
    monkeypatch.setattr("keras_seq.inference.id_search.num_search_threads", lambda: 1)
    return shapes


def searched(model, sources, **settings):
    return list(IdSearch(model, SearchSettings(**settings), TOKENIZER)(sources))


@pytest.mark.parametrize(("memory", "rows"), [("1T", 64), ("60G", 16), ("8G", 2), ("4G", 1)])
def test_the_attention_of_all_rows_of_a_batch_is_counted(
    transformer, batches, monkeypatch, memory, rows
):
    """Weights and scores of four heads over 10,000 tokens take 3.2e9 bytes for each row."""
    monkeypatch.setattr("keras_seq.run.memory.free_memory", lambda: _bytes(memory))
    searched(transformer, [[5] * 9999] * 64, batch_size=64)
    assert batches == [(rows, 10_000)] * (64 // rows)


def test_a_row_that_does_not_fit_is_refused(transformer, batches, monkeypatch):
    monkeypatch.setenv(VARIABLE, "1.4G")
    with pytest.raises(InputError) as error:
        searched(transformer, [[5, 6], [5] * 9999], batch_size=1)
    assert str(error.value) == (
        "a search with 5 hypotheses for 10,000 tokens needs more than 1.5 GB of memory, "
        "1.4 GB are free: lower the number of hypotheses, or use shorter lines"
    )
    assert not batches


def test_short_lines_stay_in_large_batches(transformer, batches, monkeypatch):
    monkeypatch.setattr("keras_seq.run.memory.free_memory", lambda: 4e9)
    searched(transformer, [[5] * 9999, *[[5] * 99] * 63], batch_size=64)
    assert batches == [(1, 10_000), (63, 100)]


@pytest.mark.parametrize(("memory", "threads"), [("30G", 4), ("8G", 2), ("3G", 1)])
def test_only_as_many_searches_run_at_once_as_fit(
    transformer, batches, monkeypatch, memory, threads
):
    """Each of 3.2e9 bytes, for a single row."""
    used = []

    def parallel_map(search, parts, count):
        used.append(count)
        return map(search, parts)

    monkeypatch.setattr("keras_seq.inference.id_search.num_search_threads", lambda: 4)
    monkeypatch.setattr("keras_seq.inference.id_search.parallel_map", parallel_map)
    monkeypatch.setattr("keras_seq.run.memory.free_memory", lambda: _bytes(memory))
    searched(transformer, [[5] * 9999] * 8, batch_size=1)
    assert used == [threads] and batches == [(1, 10_000)] * 8


def test_the_scores_of_a_search_are_counted(batches, monkeypatch):
    """Two sources with 1,000 hypotheses of SIZE logits, and as many logarithms."""
    model = RecurrentSeq2Seq(SIZE, SIZE, **UNITS)
    monkeypatch.setenv(VARIABLE, str(4 * 1000 * SIZE - 1))
    with pytest.raises(InputError, match="a search with 1,000 hypotheses for 3 tokens needs more"):
        searched(model, [[5, 6]] * 2, beam_size=1000)
    monkeypatch.setenv(VARIABLE, str(3 * 4 * 1000 * SIZE))
    searched(model, [[5, 6]] * 2, beam_size=1000)
    assert batches == [(1, 3)] * 2


def test_a_gpu_has_a_memory_of_its_own(transformer, batches, monkeypatch):
    monkeypatch.setenv(VARIABLE, "1M")
    monkeypatch.setattr("keras_seq.backend.device", lambda: ("gpu", 1))
    searched(transformer, [[5] * 9999] * 3, batch_size=2)
    assert batches == [(2, 10_000), (1, 10_000)]


def test_split_batches_find_the_same(transformer, monkeypatch):
    """Five sources at once, and one by one, each with a prefix or not."""
    sources = [[5, 6, 7, 8], [9, 8, 7], [6, 6], [8], [7]]
    prefixes = [[], [9], [5, 6], [], [7]]
    search = IdSearch(transformer, SearchSettings(max_length=6, n_best=2), TOKENIZER)
    cost = search_memory(transformer, 5, 5, SIZE, 6)
    for given in (None, prefixes):
        monkeypatch.setattr("keras_seq.run.memory.free_memory", lambda: 1e15)
        whole = list(search(sources, given))
        monkeypatch.setattr("keras_seq.run.memory.free_memory", lambda: cost.least)
        split = list(search(sources, given))
        assert [[one.tokens for one in row] for row in split] == [
            [one.tokens for one in row] for row in whole
        ]
        scores = [[one.score for one in row] for row in whole]
        np.testing.assert_allclose([[one.score for one in row] for row in split], scores, rtol=1e-5)


MODELS = {
    "transformer": lambda: Transformer(20, 20, 1, 2, **SHAPE),
    "copying": lambda: Transformer(20, 20, 1, 1, copy=True, **SHAPE),
    "rnn": lambda: RecurrentSeq2Seq(20, 20, **UNITS),
    "language model": lambda: TransformerLanguageModel(20, 3, **SHAPE),
    "ensemble": lambda: Ensemble([MODELS["transformer"](), MODELS["rnn"]()]),
    "members": lambda: EnsembleSeq2Seq([MODELS["transformer"](), MODELS["transformer"]()]),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("source", "beam", "steps"), [(7, 3, 5), (2, 4, 8)])
def test_the_bytes_of_a_row_are_those_of_its_tensors(name, source, beam, steps):
    """The encoded source, the state of `steps` steps and the logits, with nothing else added."""
    model = MODELS[name]()
    memory = model.encoder(np.full((1, source), 5, "int32"))
    state = model.initial_state(memory, beam, steps)
    tensors = keras.tree.flatten([memory, state])
    size = sum(keras.ops.convert_to_numpy(tensor).nbytes for tensor in tensors)
    size += 4 * beam * 20
    if name in ("ensemble", "members"):
        # The mask of the first member is there twice.
        size -= source
    members = getattr(model, "models", None) or getattr(model, "members", [model])
    with_caches = sum(not isinstance(member, RecurrentSeq2Seq) for member in members)
    size += with_caches * 4 * (1 + 4) * beam * steps * beam
    assert search_memory(model, source, beam, 20, steps).least == size


def test_heads_are_found_in_members_and_nested_models():
    wide = Transformer(20, 20, 1, 1, units=8, feedforward_units=8, num_heads=8)
    assert attention_heads(Ensemble([MODELS["rnn"](), wide, MODELS["transformer"]()])) == 8
    assert attention_heads(EnsembleSeq2Seq([MODELS["transformer"](), wide])) == 8
    inputs = keras.Input((None,), dtype="int32")
    assert attention_heads(keras.Model(inputs, wide.encoder(inputs)["mask"])) == 8
    assert attention_heads(MODELS["rnn"]()) == 0
    assert encoding_memory(wide, 3) == (4 * 8 * 9, 2 * 4 * 8 * 9)


@pytest.mark.parametrize("kind", [Classifier, Tagger])
def test_texts_are_labeled_in_batches_that_fit(monkeypatch, kind):
    """Texts of 25 and fewer tokens, of which each is a word."""
    shape = {"num_layers": 1, "units": 8, "feedforward_units": 8, "num_heads": 2}
    model = {Classifier: TextClassifier, Tagger: TextTagger}[kind](
        TransformerTextEncoder(SIZE, **shape), 2
    )
    labeler = kind(model, TOKENIZER, Labels(["B-X", "O"]), batch_size=8)
    texts = ["cat " * count for count in (5, 25, 1, 3, 2, 9)]
    ids = max(len(row) for row in TOKENIZER.encode(texts))
    row = 4 * 2 * (ids + 1) ** 2
    whole, sizes = labeler(texts), []
    predict = labeler._predict

    def spy(*arguments):
        sizes.append(len(arguments[-2]))
        assert arguments[-1] >= sizes[-1]
        return predict(*arguments)

    monkeypatch.setattr(labeler, "_predict", spy)
    monkeypatch.setattr("keras_seq.run.memory.free_memory", lambda: 2 * 2 * row)
    assert labeler(texts) == whole
    assert sizes == [2, 2, 2]
    monkeypatch.setenv(VARIABLE, str(row - 1))
    monkeypatch.setattr("keras_seq.run.memory.free_memory", free_memory)
    message = rf"the attention among the {ids + 1} tokens of a text needs more than .*: use shorter"
    with pytest.raises(InputError, match=message):
        labeler(texts)


def test_codes_are_decoded_in_batches_that_fit(monkeypatch):
    model = SequenceVAE(SIZE, latent_units=3, **UNITS)
    autoencoder = Autoencoder(model, TOKENIZER, SearchSettings(beam_size=20, max_length=4))
    codes = np.random.default_rng(1).normal(size=(5, 3))
    whole, sizes = autoencoder.decode(codes), []
    decode = autoencoder._decode
    monkeypatch.setattr(
        autoencoder, "_decode", lambda rows: sizes.append(len(rows)) or decode(rows)
    )
    # Twice the logits of two sources, and the decoder's states.
    monkeypatch.setattr("keras_seq.run.memory.free_memory", lambda: 2.5 * 2 * 4 * 20 * SIZE)
    split = autoencoder.decode(codes)
    assert sizes == [2, 2, 1]
    assert [row[0].tokens for row in split] == [row[0].tokens for row in whole]
    monkeypatch.setenv(VARIABLE, str(4 * 20 * SIZE - 1))
    with pytest.raises(
        InputError, match="a search with 20 hypotheses needs more .* number of hypotheses"
    ):
        autoencoder.decode(codes)


def test_translations_are_scored_in_batches_that_fit(transformer, monkeypatch):
    """Targets of up to 100 tokens and an end token; with a source of 200, its attention counts."""
    scorer = LikelihoodScorer(transformer, TOKENIZER, TOKENIZER)
    targets = [[5 + i] * length for i, length in enumerate([3, 100, 99, 90, 80])]
    whole, sizes = scorer.of_tokens([""] * 5, targets), []
    scores = scorer._scores
    monkeypatch.setattr(scorer, "_scores", lambda pairs: sizes.append(len(pairs)) or scores(pairs))
    # Weights and scores of four heads, logits and their exponentials.
    row = 2 * 4 * 4 * 101**2 + 2 * 4 * 101 * SIZE
    monkeypatch.setattr("keras_seq.run.memory.free_memory", lambda: 3 * row)
    split = scorer.of_tokens([""] * 5, targets)
    assert sizes == [3, 2]
    for some, same in zip(split, whole, strict=True):
        np.testing.assert_allclose(some.log_probabilities, same.log_probabilities, rtol=1e-4)
    monkeypatch.setattr("keras_seq.run.memory.free_memory", free_memory)
    monkeypatch.setenv(VARIABLE, str(4 * 4 * 201**2 - 1))
    message = "the score of a text of up to 2 tokens, with a source of up to 201, needs more .* use"
    with pytest.raises(InputError, match=message):
        scorer.of_tokens(["cat " * 300], [[5]])
    monkeypatch.setenv(VARIABLE, str(4 * 101 * SIZE - 1))
    with pytest.raises(InputError, match="the score of a text of up to 101 tokens needs"):
        scorer.of_tokens([""], [[5] * 100])


def _bytes(text):
    return float(text[:-1]) * {"G": 1e9, "T": 1e12}[text[-1]]
