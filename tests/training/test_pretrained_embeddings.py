"""Embeddings initialized from files of word vectors."""

import numpy as np
import pytest
from keras import ops
from training.toy import quiet_train, toy_settings

from keras_seq.models import RecurrentSeq2Seq, Transformer
from keras_seq.preparation import prepare_run, resolve_settings
from keras_seq.run import Run
from keras_seq.run.models import load_model, named_weights
from keras_seq.text import InputError, Tokenizer
from keras_seq.training import load_word_vectors
from keras_seq.training.loop import TrainingLoop
from keras_seq.training.stopping import SignalStop

generator = np.random.default_rng(1)


def write_vectors(path, words, width=16, scale=40.0):
    vectors = {word: generator.normal(size=width) * scale for word in words}
    path.write_text(
        "".join(f"{word} {' '.join(map(str, vector))}\n" for word, vector in vectors.items())
    )
    return vectors


def root_mean_square(array):
    return np.sqrt(np.mean(np.square(array)))


def table(model, name="embedding"):
    return ops.convert_to_numpy(model.get_layer(name).embeddings)


def begun(settings, directory):
    """Returns the model of a training before its first update, and the source tokenizer."""
    run = prepare_run(settings, directory)
    with SignalStop() as stop:
        model = TrainingLoop(run, lambda line: None, stop).model
    run.unlock()
    return model, run.source_tokenizer


def test_word_vectors_replace_only_the_rows_of_known_words(tmp_path):
    plain, _ = begun(toy_settings(tmp_path), tmp_path / "plain")
    vectors = write_vectors(tmp_path / "vectors", ["a", "b", "nowhere"])
    settings = toy_settings(tmp_path, training__source_embeddings=str(tmp_path / "vectors"))
    model, tokenizer = begun(settings, tmp_path / "run")
    texts = [piece.text.removeprefix("▁") for piece in tokenizer.pieces]
    found = [id for id, text in enumerate(texts) if text in ("a", "b")]
    assert len(found) >= 2
    given = np.stack([vectors[texts[id]] for id in found])
    # The vectors are scaled together to the root mean square of the previous rows.
    factor = root_mean_square(table(plain)) / root_mean_square(given)
    np.testing.assert_allclose(table(model)[found], factor * given, rtol=1e-5)
    others = np.setdiff1d(np.arange(len(texts)), found)
    np.testing.assert_array_equal(table(model)[others], table(plain)[others])


def test_shared_embedding_loads_both_files_and_prefers_source_vectors(tmp_path):
    """A word in both files gets the source vector."""
    source = write_vectors(tmp_path / "source", ["a", "b"])
    target = write_vectors(tmp_path / "target", ["b", "c"])
    settings = toy_settings(
        tmp_path,
        training__source_embeddings=str(tmp_path / "source"),
        training__target_embeddings=str(tmp_path / "target"),
    )
    model, tokenizer = begun(settings, tmp_path / "run")
    for id, piece in enumerate(tokenizer.pieces):
        word = piece.text.removeprefix("▁")
        if word in ("a", "b", "c"):
            vector = source.get(word, target.get(word))
            row = table(model)[id]
            cosine = row @ vector / np.linalg.norm(row) / np.linalg.norm(vector)
            assert cosine == pytest.approx(1, abs=1e-5)


def test_one_option_gives_a_classifier_the_width_and_the_words_of_a_file(tmp_path):
    text = tmp_path / "labeled.tsv"
    text.write_text("sun and warm\tgood\nrain and cold\tbad\n" * 20)
    vectors = write_vectors(tmp_path / "vectors", ["sun", "cold", "snow"], width=6)
    overrides = {
        "task": "classify",
        "data.labeled": str(text),
        "data.valid_labeled": str(text),
        "training.source_embeddings": str(tmp_path / "vectors"),
        "model.members": 2,
        "model.filters": 2,
        "model.character_filters": 2,
    }
    settings, _ = resolve_settings(overrides=overrides)
    assert settings.model.embedding_units == 6
    model, tokenizer = begun(settings, tmp_path / "run")
    # "snow" is not in the training text.
    rows = {word: tokenizer.encode([word])[0] for word in vectors}
    assert all(len(ids) == 1 for ids in rows.values())
    named = {name: weight for name, weight in named_weights(model).items()}
    for member in ("member_0", "member_1"):
        embeddings = ops.convert_to_numpy(named[f"{member}/embedding/embeddings"])
        for word, (id,) in rows.items():
            cosine = embeddings[id] @ vectors[word]
            cosine /= np.linalg.norm(embeddings[id]) * np.linalg.norm(vectors[word])
            assert cosine == pytest.approx(1, abs=1e-5)
    given, _ = resolve_settings(overrides={**overrides, "model.embedding_units": 8})
    assert given.model.embedding_units == 8
    # A resumed training does not read the file.
    (tmp_path / "vectors").unlink()
    again, _ = resolve_settings(overrides=overrides, earlier=Run.open(tmp_path / "run"))
    assert again.model.embedding_units == 6


@pytest.mark.slow
def test_frozen_word_vectors_stay_while_the_rest_is_trained(tmp_path):
    write_vectors(tmp_path / "vectors", "abcdefgh")
    settings = toy_settings(
        tmp_path,
        tokenizer__joint=False,
        training__target_embeddings=str(tmp_path / "vectors"),
        training__freeze="target_embedding",
        training__max_steps=2,
        training__ema=0.0,
    )
    begun_with, _ = begun(settings, tmp_path / "begun")
    _, said = quiet_train(settings, tmp_path / "run")
    assert "pieces of the target vocabulary" in said
    trained = load_model(Run.open(tmp_path / "run"), "latest")
    for name, same in {"target_embedding": True, "source_embedding": False}.items():
        assert np.array_equal(table(begun_with, name), table(trained, name)) == same


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(["dog cat dog cat Dog dogs"] * 9, size=285, kind="bpe")


def models(size):
    sizes = {"embedding_units": 4, "encoder_units": 4, "decoder_units": 4, "attention_units": 4}
    yield Transformer(size, size, 1, 1, units=4, feedforward_units=4, num_heads=1)
    yield RecurrentSeq2Seq(size, size, **sizes)
    yield RecurrentSeq2Seq(size, size, **sizes, share_embeddings=True)


def test_load_word_vectors_sets_and_scales_the_rows_of_known_words(tokenizer, tmp_path):
    vectors = write_vectors(tmp_path / "vectors", ["dog", "cat"], width=4)
    size = tokenizer.vocabulary_size
    words = [piece.text.removeprefix("▁") for piece in tokenizer.pieces]
    known = [id for id, word in enumerate(words) if word.lower() in vectors]
    for model in models(size):
        layers = {layer.name for layer in model.layers}
        name = "embedding" if "embedding" in layers else "target_embedding"
        before = table(model, name)
        count = load_word_vectors(model, tokenizer, tmp_path / "vectors", "target")
        assert count == len(known) >= 2
        after = table(model, name)
        changed = np.flatnonzero((before != after).any(axis=1))
        assert changed.tolist() == known
        given = np.stack([vectors[words[id].lower()] for id in known])
        factor = root_mean_square(before) / root_mean_square(given)
        np.testing.assert_allclose(after[known], factor * given, rtol=1e-5)


def test_load_word_vectors_rejects_a_wrong_width_tokenizer_or_side(tokenizer, tmp_path):
    write_vectors(tmp_path / "vectors", ["dog"], width=3)
    model = next(models(tokenizer.vocabulary_size))
    with pytest.raises(InputError, match="vectors have 3 numbers, the source embedding has 4"):
        load_word_vectors(model, tokenizer, tmp_path / "vectors")
    with pytest.raises(ValueError, match="the tokenizer .* pieces: give the one"):
        load_word_vectors(next(models(9)), tokenizer, tmp_path / "vectors")
    with pytest.raises(ValueError, match='`side` must be "source" or "target", received \'both\''):
        load_word_vectors(model, tokenizer, tmp_path / "vectors", "both")
