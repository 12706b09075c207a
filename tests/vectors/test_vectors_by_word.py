"""Saved and loaded vectors, compatibility with gensim, neighbors and analogies."""

import numpy as np
import pytest

from keras_seq.text import InputError, Tokenizer, piece_vectors
from keras_seq.vectors import WordVectors, cosine
from keras_seq.vectors.subwords import Subwords, hashed_parts


def vectors(count=50, width=7, **options):
    chance = np.random.default_rng(1)
    words = [f"word{number}" for number in range(count - 2)] + ["caf\u00e9", "\u72d7"]
    return WordVectors(words, chance.normal(size=(count, width)), **options)


def with_parts():
    parts = sorted({part for word in ("dog", "dogs") for part in hashed_parts(word, 3, 4, 1000)})
    table = np.arange(7.0 * len(parts), dtype=np.float32).reshape(-1, 7)
    return vectors(subwords=Subwords(3, 4, 1000, np.array(parts, np.int32), table))


@pytest.mark.parametrize("name", ["vectors.txt", "vectors.txt.gz"])
def test_saved_vectors_are_bitwise_equal_and_readable_by_gensim(tmp_path, name):
    from gensim.models import KeyedVectors

    path = tmp_path / name
    ours = vectors()
    ours.save(path)
    again = WordVectors.load(path)
    assert again.words == ours.words and (again.matrix == ours.matrix).all()
    theirs = KeyedVectors.load_word2vec_format(str(path))
    assert theirs.index_to_key == ours.words and (theirs.vectors == ours.matrix).all()
    assert [path] == list(tmp_path.iterdir())


@pytest.mark.parametrize("header", [True, False])
def test_files_of_gensim_are_read_with_and_without_a_header(tmp_path, header):
    from gensim.models import KeyedVectors

    ours = vectors()
    theirs = KeyedVectors(7)
    theirs.add_vectors(ours.words, ours.matrix)
    path = tmp_path / "theirs.txt"
    theirs.save_word2vec_format(str(path), write_header=header)
    again = WordVectors.load(path)
    assert again.words == ours.words and (again.matrix == ours.matrix).all()


def test_neighbors_and_analogies_equal_gensim():
    from gensim.models import KeyedVectors

    ours = vectors()
    theirs = KeyedVectors(7)
    theirs.add_vectors(ours.words, ours.matrix)
    for word in ours.words[:10]:
        found, expected = ours.nearest(word, 6), theirs.most_similar(word, topn=6)
        assert [one for one, _ in found] == [one for one, _ in expected]
        np.testing.assert_allclose([c for _, c in found], [c for _, c in expected], rtol=1e-4)
    for a, b, c in (("word1", "word2", "word3"), ("word9", "caf\u00e9", "\u72d7")):
        found = ours.analogy(a, b, c, 5)
        expected = theirs.most_similar(positive=[b, c], negative=[a], topn=5)
        assert [one for one, _ in found] == [one for one, _ in expected]
    assert ours.cosine("word1", "word2") == pytest.approx(
        float(theirs.similarity("word1", "word2")), abs=1e-6
    )


def test_nearest_handles_vectors_ties_zeros_and_large_counts():
    ours = WordVectors(["a", "b", "c", "zero"], [[2, 0], [1, 0], [1, 1], [0, 0]])
    assert ours.nearest(np.array([5.0, 0.0]), 2) == [("a", 1), ("b", 1)]
    assert [word for word, _ in ours.nearest("a", 99)] == ["b", "c", "zero"]
    assert ours.nearest("a", 1, without=["b"])[0][0] == "c"
    assert ours.nearest("zero", 1) == [("a", 0.0)]
    assert cosine(np.zeros(2), np.ones(2)) == 0
    # The squares of these numbers overflow or underflow in float32.
    huge = WordVectors(["a", "b"], [[3e30, 4e30], [3e-30, 4e-30]])
    assert huge.cosine("a", "b") == pytest.approx(1)
    assert huge.nearest("a")[0][1] == pytest.approx(1, abs=1e-6)


def test_ngram_vectors_are_saved_beside_the_vectors(tmp_path):
    path = tmp_path / "vectors.txt"
    ours = with_parts()
    ours.save(path)
    again = WordVectors.load(path)
    assert {one.name for one in tmp_path.iterdir()} == {"vectors.txt", "vectors.txt.ngrams"}
    rows = ours.subwords.places.tolist()
    expected = np.mean(
        [ours.subwords.vectors[rows.index(one)] for one in hashed_parts("dog", 3, 4, 1000)], axis=0
    )
    for one in (ours, again):
        np.testing.assert_allclose(one["dog"], expected, rtol=1e-6)
        assert "dog" in one and "qqq" not in one
    # Saving vectors without n-grams replaces both files.
    vectors().save(path)
    assert list(tmp_path.iterdir()) == [path]
    assert "dog" not in WordVectors.load(path)


@pytest.mark.parametrize(
    "spoil", [lambda data: data[:-1], lambda data: b"", lambda data: b"\xff" * 99, "width"]
)
def test_mismatched_ngram_file_is_rejected(tmp_path, spoil):
    path, parts = tmp_path / "vectors.txt", tmp_path / "vectors.txt.ngrams"
    with_parts().save(path)
    if spoil == "width":
        path.write_text("dog 1 2\n")
    else:
        parts.write_bytes(spoil(parts.read_bytes()))
    with pytest.raises(InputError, match="vectors.txt.ngrams: not the n-gram vectors of"):
        WordVectors.load(path)


def test_missing_word_error_suggests_the_closest_word():
    ours = WordVectors(["dog", "dogs", "Berlin"], np.eye(3), name="v.txt")
    with pytest.raises(InputError, match="v.txt: no vector for 'dgo' - did you mean dog"):
        ours["dgo"]
    with pytest.raises(InputError, match="no vector for 'berlin' - did you mean Berlin"):
        ours.nearest("berlin")
    with pytest.raises(InputError, match="no vector for 'qqq'$"):
        ours.analogy("dog", "dogs", "qqq")


def test_embedding_matrix_has_a_row_for_each_known_word(tmp_path):
    ours = with_parts()
    matrix, found = ours.embedding_matrix(["word3", "qqq", "dog", "caf\u00e9"])
    assert found.tolist() == [True, False, True, True]
    assert (matrix[0] == ours["word3"]).all() and not matrix[1].any()
    assert (matrix[2] == ours["dog"]).all() and matrix.dtype == np.float32


def test_piece_vectors_finds_rows_for_tokenizer_pieces(tmp_path):
    tokenizer = Tokenizer.train(["dog cat dog cat dogs"] * 9, size=280)
    WordVectors(["dog", "cow"], [[1, 0], [0, 1]]).save(tmp_path / "v.txt")
    ids, rows = piece_vectors(tokenizer, tmp_path / "v.txt")
    assert [tokenizer.pieces[id].text for id in ids] == ["\u2581dog"] and rows.tolist() == [[1, 0]]


def test_saving_vectors_is_atomic(tmp_path, monkeypatch):
    path = tmp_path / "v.txt"
    vectors().save(path)
    before = path.read_bytes()

    def full(self, file):
        file.write(b"50 7\n")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(WordVectors, "_write", full)
    with pytest.raises(OSError, match="No space left"):
        vectors(60).save(path)
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]
    with pytest.raises(InputError, match="cannot be written: no such file or directory"):
        vectors().save(tmp_path / "nowhere" / "v.txt")


def test_failed_save_keeps_the_old_words_and_the_old_subwords(tmp_path, monkeypatch):
    path = tmp_path / "v.txt"
    with_parts().save(path)
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert len(before) == 2

    def full(self, file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(WordVectors, "_write", full)
    for other in (with_parts(), vectors(60)):
        with pytest.raises(OSError, match="No space left"):
            other.save(path)
        assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_word_vectors_reject_mismatched_rows_and_duplicate_words():
    with pytest.raises(ValueError, match=r"received shape \(3, 3\), expected a row for each of 2"):
        WordVectors(["a", "b"], np.eye(3))
    with pytest.raises(ValueError, match="received a word twice"):
        WordVectors(["a", "a", "b"], np.eye(3))
