"""Where a training starts: another run's weights, word vectors."""

import numpy as np
import pytest
import safetensors.numpy
from training.toy import quiet_train, toy_settings

from keras_seq.modelling import weight_arrays
from keras_seq.run import Run
from keras_seq.text import InputError
from keras_seq.training import loop


def saved(run, step):
    path = run / "checkpoints" / f"step-{step:08}" / "weights.safetensors"
    return safetensors.numpy.load_file(path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """With a run `base` of three updates, on letters."""
    folder = tmp_path_factory.mktemp("start")
    quiet_train(toy_settings(folder, training__max_steps=3), folder / "base")
    return folder


@pytest.fixture
def starts(monkeypatch):
    """The weights of a training before its first update, by what was asked first."""
    found = {}
    train = loop.TrainingLoop._train

    def note(self):
        found.update(weight_arrays(self.model))
        train(self)

    monkeypatch.setattr(loop.TrainingLoop, "_train", note)
    return found


def test_starts_from_the_weights_and_the_vocabulary_of_another_run(folder, starts):
    base = folder / "base"
    settings = {"training__from_run": str(base), "training__max_steps": 2, "model__dropout": 0.2}
    (folder / "other.tsv").write_text("z y\ty z\nx w v\tv w x\n" * 20)
    settings["data__pairs"] = str(folder / "other.tsv")
    _, said = quiet_train(toy_settings(folder, **settings), folder / "kept")
    assert f"starts from the weights of {base}" in said
    for name, array in saved(base, 3).items():
        np.testing.assert_array_equal(starts[name], array, err_msg=name)
    kept = Run.open(folder / "kept")
    assert kept.source_tokenizer.to_bytes() == Run.open(base).source_tokenizer.to_bytes()
    assert f"from the weights of `{base}`" in (folder / "kept" / "README.md").read_text()
    # What goes on does not start again, and needs the other run no more.
    base.rename(folder / "away")
    try:
        settings["training__max_steps"] = 3
        _, said = quiet_train(toy_settings(folder, **settings), folder / "kept")
    finally:
        (folder / "away").rename(base)
    assert "going on after step 2" in said and "starts from" not in said


def test_a_changed_vocabulary_takes_rows_over(folder, starts):
    base = folder / "base"
    (folder / "words.tsv").write_text("Ω abc b\tb abc Ω\n" * 40)
    settings = {
        "training__from_run": str(base),
        "training__from_run_vocabulary": "new",
        "training__max_steps": 1,
        "data__pairs": str(folder / "words.tsv"),
    }
    _, said = quiet_train(toy_settings(folder, **settings), folder / "new")
    assert "rows are those of one old token" in said
    old, new = Run.open(base).source_tokenizer, Run.open(folder / "new").source_tokenizer
    assert old.vocabulary_size != new.vocabulary_size
    before = saved(base, 3)
    for name, array in before.items():
        if not name.startswith("embedding/"):
            np.testing.assert_array_equal(starts[name], array, err_msg=name)
    tables = before["embedding/embeddings"], starts["embedding/embeddings"]
    places = {piece.text: id for id, piece in enumerate(old.pieces)}
    common = averaged = 0
    for id, piece in enumerate(new.pieces):
        if piece.text in places:
            common += 1
            np.testing.assert_array_equal(tables[1][id], tables[0][places[piece.text]])
        elif piece.text == "Ω":
            # Of the two bytes that spell it in the old vocabulary.
            averaged += 1
            spelled = [places["<0xCE>"], places["<0xA9>"]]
            np.testing.assert_allclose(tables[1][id], tables[0][spelled].mean(0), rtol=1e-6)
    assert common > 256 and averaged == 1


def test_another_model_is_refused_with_the_difference(folder):
    settings = {"training__from_run": str(folder / "base"), "model__units": 32}
    with pytest.raises(InputError, match="another model.*model.units 16 -> 32"):
        quiet_train(toy_settings(folder, **settings), folder / "refused")
    assert not (folder / "refused" / "settings.toml").exists()
    settings = {"training__from_run": str(folder / "nowhere")}
    with pytest.raises(InputError, match="nowhere: no such run directory"):
        quiet_train(toy_settings(folder, **settings), folder / "refused")


def test_embeddings_start_from_word_vectors(folder, starts):
    generator = np.random.default_rng(1)
    vectors = {word: generator.normal(size=16) * 40 for word in ("a", "b", "nowhere")}
    (folder / "vectors").write_text(
        "".join(f"{word} {' '.join(map(str, vector))}\n" for word, vector in vectors.items())
    )
    settings = toy_settings(
        folder, training__max_steps=1, training__source_embeddings=str(folder / "vectors")
    )
    _, said = quiet_train(settings, folder / "vectored")
    assert "vectors for 2 of " in said
    pieces = Run.open(folder / "vectored").source_tokenizer.pieces
    places = {piece.text: id for id, piece in enumerate(pieces)}
    rows = starts["embedding/embeddings"][[places["▁a"], places["▁b"]]]
    given = np.stack([vectors["a"], vectors["b"]])
    # The same directions and proportions, as large as the rows beside them.
    factor = rows[0, 0] / given[0, 0]
    np.testing.assert_allclose(rows, factor * given, rtol=1e-5)
    others = np.delete(starts["embedding/embeddings"], [places["▁a"], places["▁b"]], axis=0)
    assert np.sqrt((rows**2).mean()) == pytest.approx(np.sqrt((others**2).mean()), rel=0.1)


def test_vectors_of_another_width_are_refused(folder):
    (folder / "wide").write_text("a 1 2 3\n")
    settings = toy_settings(folder, training__target_embeddings=str(folder / "wide"))
    with pytest.raises(InputError, match="vectors have 3 numbers, the embedding has 16"):
        quiet_train(settings, folder / "wide-run")
