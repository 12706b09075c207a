"""The corpus of word vectors: its words, the words that it skips, and its memory use."""

import subprocess
import sys

import numpy as np
import pytest

from keras_seq.text import InputError
from keras_seq.vectors.corpus import END, LONGEST, Corpus
from keras_seq.vectors.subwords import character_ngrams, rows_of_words


def write(folder, content, name="text.txt"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def sentences(corpus):
    """Reconstructs the text of a corpus."""
    words = [corpus.words[place] if place != END else "\n" for b in corpus.blocks() for place in b]
    return " ".join(words).split("\n")[:-1]


def test_rare_words_are_left_out_and_frequent_ones_come_first(tmp_path):
    path = write(tmp_path, "b a c\n\na  a\tx b\n")
    corpus = Corpus(path, min_count=2)
    assert (corpus.words, corpus.counts.tolist()) == (["a", "b"], [3, 2])
    assert (corpus.words_read, corpus.different, corpus.total) == (7, 4, 5)
    assert [one.split() for one in sentences(corpus)] == [["b", "a"], ["a", "a", "b"]]


def test_corpus_unifies_unicode_forms_and_optionally_case(tmp_path):
    path = write(tmp_path, "Caf\u00e9 cafe\u0301 a\u00a0b\n")
    assert Corpus(path, min_count=1).words == ["Caf\u00e9", "caf\u00e9", "a", "b"]
    assert Corpus(path, min_count=1, lowercase=True).words == ["caf\u00e9", "a", "b"]


def test_long_line_is_split_into_several_sentences(tmp_path):
    """Splits a text that is a single line of megabytes at its spaces."""
    words = [f"w{number % 700}" for number in range(300_000)]
    corpus = Corpus(write(tmp_path, " ".join(words)), min_count=1)
    found = sentences(corpus)
    assert " ".join(found).split() == words
    assert max(len(one.split()) for one in found) == LONGEST
    assert max(map(len, corpus.blocks())) < 13_000


MEMORY = """
import sys, tracemalloc
from keras_seq.vectors import corpus
corpus._BUFFER = 1 << 13
for path in sys.argv[1:]:
    tracemalloc.start()
    numbers = corpus.Corpus(path)
    assert sum(int((block >= 0).sum()) for block in numbers.blocks()) == numbers.words_read
    print(tracemalloc.get_traced_memory()[1])
    tracemalloc.stop()
"""


def test_corpus_memory_does_not_grow_with_text_length(tmp_path):
    """Four times the text needs no more memory; its numbers alone would need 1.5 MB more."""
    line = " ".join(f"w{number}" for number in range(500)) + "\n"
    paths = [write(tmp_path, line * lines, f"{lines}.txt") for lines in (250, 1_000)]
    # A separate process, because threads of earlier tests also allocate memory.
    command = [sys.executable, "-c", MEMORY, *map(str, paths)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    short, long = map(int, done.stdout.split())
    assert long < short + 300_000


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "empty, there are no words to train on"),
        (b" \n\n", "empty, there are no words to train on"),
        (b"a b c d\n", "0 words come 5 times or more, expected 2 at least"),
        (b"a a a a a b\n", "1 words come 5 times or more, expected 2 at least"),
        (b"a\n\xff\n", ":2: invalid UTF-8"),
    ],
)
def test_corpus_rejects_too_few_words_and_invalid_utf_8(tmp_path, content, message):
    with pytest.raises(InputError, match=message):
        Corpus(write(tmp_path, content))


def test_character_ngrams_equal_the_example_of_the_paper():
    """Uses the example in section 3.2 of the fastText paper."""
    assert character_ngrams("where", 3, 3) == ["<wh", "whe", "her", "ere", "re>"]
    assert character_ngrams("ab", 3, 6) == ["<ab", "ab>"]
    assert "where" in character_ngrams("where") and "<where>" not in character_ngrams("where", 3, 9)


def test_words_share_the_rows_of_the_parts_they_share():
    words = ["where", "there", "a"]
    starts, rows, places = rows_of_words(words, 3, 4, 2**31 - 1)
    of = [rows[start:end].tolist() for start, end in zip(starts, starts[1:], strict=False)]
    parts = [set(character_ngrams(word, 3, 4)) for word in words]
    assert [row[0] for row in of] == [0, 1, 2]
    assert len(set(of[0][1:]) & set(of[1][1:])) == len(parts[0] & parts[1]) == 5
    assert len(places) == len(parts[0] | parts[1]) and of[2] == [2]
    assert (np.diff(places) > 0).all()
