"""Letter trigrams of words, and the ids of the trigrams."""

import subprocess
import sys
import zlib

import numpy as np
import pytest

from keras_seq.text import letter_trigrams, trigram_ids


def test_letter_trigrams_match_the_example_in_the_paper():
    assert letter_trigrams("good") == ["#go", "goo", "ood", "od#"]


@pytest.mark.parametrize("word", ["a", "in", "Hund", "läuft", "河川"])
def test_a_word_has_as_many_trigrams_as_letters_and_is_made_of_them(word):
    trigrams = letter_trigrams(word)
    assert len(trigrams) == len(word)
    assert "".join(trigram[1] for trigram in trigrams) == word
    assert trigrams[0][0] == "#" == trigrams[-1][-1]


def test_trigram_ids_equal_crc32_hashes():
    ids = trigram_ids([["good", "a"], ["goods"], []], 30_000)
    assert ids.dtype == np.int32 and ids.shape == (3, 2, 5)
    expected = [1 + zlib.crc32(part) % 29_999 for part in (b"#go", b"goo", b"ood", b"od#")]
    assert ids[0, 0].tolist() == [*expected, 0]
    assert (ids[0, 1, 1:] == 0).all() and (ids[2] == 0).all() and (ids[1, 1] == 0).all()
    # The published check value of CRC-32.
    assert zlib.crc32(b"123456789") == 0xCBF43926


def test_trigram_ids_cover_exactly_the_vocabulary():
    words = [[f"word{number}" for number in range(300)]]
    ids = trigram_ids(words, 7)
    assert set(ids[ids > 0]) == set(range(1, 7))


def test_trigram_ids_are_the_same_in_another_process():
    program = (
        "from keras_seq.text import trigram_ids; print(trigram_ids([['läuft']], 999).tolist())"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert printed == {f"{trigram_ids([['läuft']], 999).tolist()}\n"}


def test_trigram_ids_of_empty_input_are_empty():
    assert trigram_ids([], 10).shape == (0, 0, 0)
    assert trigram_ids([[]], 10).shape == (1, 0, 0)


def test_trigram_ids_reject_empty_words_and_a_too_small_vocabulary():
    with pytest.raises(ValueError, match="at least one letter, received ''"):
        trigram_ids([["good", ""]], 10)
    with pytest.raises(ValueError, match="at least 2, received 1"):
        trigram_ids([["good"]], 1)
