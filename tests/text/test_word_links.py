"""The tokens of each word, and links between tokens made from links between words."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from keras_seq.text import Tokenizer, link_tokens, tokens_of_words
from keras_seq.text.word_links import tokens_by_offsets

TEXT = [
    "the small dog runs to the river and the cat sleeps under a tree",
    "ein kleiner Hund läuft zum Fluß, und die Katze schläft unter einem Baum",
    "dogs are running quickly, slowly, happily; trees are growing higher",
] * 5
# Seen and unseen words, multibyte characters, and words whose length normalization changes.
WORDS = st.sampled_from(
    "dog dogs river, läuft lɑ̈uft schlaufen Fluß ½ ½½ ﬁne ①x 😀 😀😀漢 漢x ａｂ ｶﾞ e\u0301te x.y;z "
    "a\u00adb \u00adab Baumfluß".split()
) | st.text(st.sampled_from("abcdeghilnrstuß½ﬁ漢"), min_size=1, max_size=6)
SPACES = st.sampled_from([" ", "  "])


@pytest.fixture(scope="module", params=["unigram", "bpe"])
def tokenizer(request):
    return Tokenizer.train(TEXT, size=340, kind=request.param)


@settings(max_examples=300)
@given(
    words=st.lists(st.tuples(SPACES, WORDS), max_size=8),
    end=st.sampled_from(["", " "]),
)
def test_word_in_a_line_has_the_same_tokens_as_alone(tokenizer, words, end):
    line = "".join(space + word for space, word in words) + end
    [ids], [found] = tokenizer.encode([line]), list(tokens_of_words(tokenizer, [line]))
    assert len(tokenizer.offsets([line])[0]) == len(ids)
    alone = tokenizer.encode([word for _, word in words])
    assert [len(tokens) for tokens in found] == [len(tokens) for tokens in alone]
    # Each token belongs to exactly one word, in order.
    assert list(itertools.chain.from_iterable(found)) == list(range(len(ids)))
    assert [[ids[token] for token in tokens] for tokens in found] == alone
    # The method by offsets, for lines that tokenize differently from single words, agrees.
    offsets = tokenizer.offsets([line])[0]
    assert tokens_by_offsets(line, offsets, [bool(tokens) for tokens in alone]) == found


def test_tokens_by_offsets_assigns_tokens_to_overlapping_words():
    """This method is needed if equally likely segmentations make a line differ from its words."""
    line, offsets = "ab  cd e", [(0, 1), (1, 2), (2, 6), (6, 6), (6, 8)]
    assert tokens_by_offsets(line, offsets, [True, True, True]) == [[0, 1], [2], [3, 4]]
    # A token that spans two words belongs to both, unless one of the words has no tokens.
    assert tokens_by_offsets(line, [(0, 6), (6, 8)], [True, True, True]) == [[0], [0], [1]]
    assert tokens_by_offsets(line, [(0, 2), (2, 8)], [True, False, True]) == [[0], [], [1]]


def test_blank_lines_have_no_words(tokenizer):
    assert list(tokens_of_words(tokenizer, ["", " \t"])) == [[], []]


def test_all_tokens_of_linked_words_are_linked():
    source, target = [[0, 1], [2], []], [[0], [1, 2]]
    assert link_tokens([(0, 1), (1, 0), (0, 1)], source, target) == (
        [(0, 1), (0, 2), (1, 1), (1, 2), (2, 0)],
        0,
    )
    assert link_tokens([(2, 0), (1, 1)], source, target) == ([(2, 1), (2, 2)], 1)
    assert link_tokens([], source, target) == ([], 0)
