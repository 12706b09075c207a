"""Reading files of word vectors in the common formats."""

import gzip

import numpy as np
import pytest

from keras_seq.text import (
    InputError,
    Tokenizer,
    piece_vectors,
    read_word_vectors,
    vector_width,
)

GLOVE = "dog 1 0 0.5\ncat 0 1 -2e-1\n. . . 3 3 3\n"


def write(folder, text, name="vectors.txt"):
    path = folder / name
    opener = gzip.open if name.endswith(".gz") else open
    with opener(path, "wb") as file:
        file.write(text if isinstance(text, bytes) else text.encode())
    return path


def as_lists(found):
    return {word: vector.tolist() for word, vector in found.items()}


@pytest.mark.parametrize("name", ["vectors.txt", "vectors.txt.gz"])
@pytest.mark.parametrize("header", ["", "3 3\n"])
def test_word_vectors_are_read_with_and_without_a_header(tmp_path, name, header):
    path = write(tmp_path, header + GLOVE, name)
    found, width = read_word_vectors(path, {"cat", "dog", "cow"})
    assert as_lists(found) == {"dog": [1, 0, 0.5], "cat": [0, 1, np.float32(-0.2)]}
    assert width == vector_width(path) == 3
    assert found["dog"].dtype == np.float32
    everything, _ = read_word_vectors(path)
    assert list(everything) == ["dog", "cat", ". . ."]


def test_word_vectors_reader_accepts_spaces_in_words_tabs_and_duplicates(tmp_path):
    path = write(tmp_path, "dog 1 0 0.5 \n. . . 3 3 3\ncat\t1\t2\t3\r\n\ndog 9 9 9\n")
    found, _ = read_word_vectors(path, {"dog", ". . .", "cat"})
    assert as_lists(found) == {"dog": [1, 0, 0.5], ". . .": [3, 3, 3], "cat": [1, 2, 3]}


def test_word_vectors_are_normalized_and_invalid_utf8_is_tolerated(tmp_path):
    """The words have a decomposed accent, an invalid byte and a no-break space."""
    path = write(tmp_path, "cafe\u0301 1 2\n".encode() + b"\xc3( 3 4\n" + "a\u00a0b 5 6\n".encode())
    found, _ = read_word_vectors(path, {"caf\u00e9", "a b"})
    assert as_lists(found) == {"caf\u00e9": [1, 2], "a b": [5, 6]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty, it has no word with a vector"),
        ("dog 1 2\ncat 1\n", ":2: received 1 numbers after a word, expected 2 as before"),
        # Vectors of words that are not requested are checked, too.
        ("dog 1 2\ncow 1\n", ":2: received 1 numbers after a word, expected 2 as before"),
        ("dog\n", ":1: received 0 numbers after a word, expected a word and its vector"),
        ("a dog runs\n", ":1: could not convert string to float: 'dog'"),
        ("dog 1 2\ncat 1 x\n", ":2: could not convert string to float: 'x'"),
        ("dog 1 inf\n", ":1: a vector with a number that is not finite"),
        ("dog 1 1e39\n", ":1: a vector with a number that is not finite"),
        ("3 2\ndog 1 2\ncat 1 2\n", "2 vectors, its first line says 3: it is cut off"),
        ("3 0\ndog\n", ":1: received 0 numbers after a word"),
        ("3 999999999\ndog 1\n", ":1: received 999,999,999 numbers after a word"),
    ],
)
def test_malformed_word_vector_file_raises_input_error(tmp_path, text, message):
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=message) as error:
        read_word_vectors(path, {"dog", "cat"})
    assert str(error.value).startswith(str(path))


def test_word_vector_file_is_read_as_a_stream(tmp_path):
    """Reads 50 MB of uncompressed text with less than 10 MiB of memory."""
    import tracemalloc

    path = tmp_path / "large.txt.gz"
    with gzip.open(path, "wt", compresslevel=1) as file:
        line = " 0.25" * 1000
        file.writelines(f"w{number}{line}\n" for number in range(10_000))
    tracemalloc.start()
    found, width = read_word_vectors(path, {"w7", "w9999"})
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (list(found), width) == (["w7", "w9999"], 1000)
    assert peak < 10 * 2**20


def test_piece_vectors_assign_word_vectors_to_matching_pieces(tmp_path):
    """Pieces match with or without the space mark, or in lower case as a last resort."""
    tokenizer = Tokenizer.train(["dog Dog Cat 狗 , dogs"] * 20, size=290, kind="bpe")
    places = {piece.text: id for id, piece in enumerate(tokenizer.pieces)}
    path = write(tmp_path, "dog 1 0\ncat 0 1\n狗 1 1\n, 2 2\nDog 3 3\n<0x41> 9 9\n</s> 9 9\n")
    ids, vectors = piece_vectors(tokenizer, path)
    assert (np.diff(ids) > 0).all() and vectors.dtype == np.float32
    found = {
        tokenizer.pieces[id].text: vector.tolist() for id, vector in zip(ids, vectors, strict=True)
    }
    expected = {"\u2581dog": [1, 0], "\u2581Dog": [3, 3], "狗": [1, 1], ",": [2, 2]}
    expected["\u2581Cat"] = [0, 1]
    assert {text: found.get(text) for text in expected if text in places} == {
        text: vector for text, vector in expected.items() if text in places
    }
    assert len(expected.keys() & places.keys()) >= 4
    # Pieces that are not text get no vector.
    assert all(tokenizer.pieces[id].is_text for id in ids)
    assert piece_vectors(tokenizer, write(tmp_path, "nothing 1 2\n"))[1].shape == (0, 2)


def test_first_line_with_a_number_of_5000_digits_is_a_word(tmp_path):
    """Python refuses to convert such a number, and no file has that many words."""
    path = write(tmp_path, "9" * 5000 + " 3\ndog 1\n")
    vectors, width = read_word_vectors(path)
    assert width == 1
    assert {word[:3]: vector.tolist() for word, vector in vectors.items()} == {
        "999": [3.0],
        "dog": [1.0],
    }
