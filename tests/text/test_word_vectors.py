"""Files of word vectors in the forms that are about."""

import gzip

import pytest

from keras_seq.text import InputError, read_word_vectors

GLOVE = "dog 1 0 0.5\ncat 0 1 -2e-1\n. . . 3 3 3\n"


def write(folder, text, name="vectors.txt"):
    path = folder / name
    opener = gzip.open if name.endswith(".gz") else open
    with opener(path, "wt", encoding="utf-8", newline="") as file:
        file.write(text)
    return path


@pytest.mark.parametrize("name", ["vectors.txt", "vectors.txt.gz"])
@pytest.mark.parametrize("header", ["", "3 3\n"])
def test_with_and_without_a_header(tmp_path, name, header):
    path = write(tmp_path, header + GLOVE, name)
    found, width = read_word_vectors(path, {"cat", "dog", "cow"})
    assert found == {"dog": [1, 0, 0.5], "cat": [0, 1, -0.2]} and width == 3


def test_a_word_with_a_space_a_space_at_the_end_and_a_word_twice(tmp_path):
    path = write(tmp_path, "dog 1 0 0.5 \n. . . 3 3 3\ndog 9 9 9\n")
    found, _ = read_word_vectors(path, {"dog", ". . ."})
    assert found == {"dog": [1, 0, 0.5], ". . .": [3, 3, 3]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty, it has no word with a vector"),
        ("dog 1 2\ncat 1\n", ":2: received 1 numbers behind a word, expected 2 as before"),
        ("dog\n", ":1: received 0 numbers behind a word, expected a word and its vector"),
        ("dog 1 x\n", ":1: could not convert string to float: 'x'"),
        ("dog 1 inf\n", ":1: a vector with a number that is not finite"),
    ],
)
def test_refuses(tmp_path, text, message):
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=message):
        read_word_vectors(path, {"dog", "cat"})
