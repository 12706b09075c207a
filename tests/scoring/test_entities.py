"""Entity scores, compared with a Python version of conlleval and with counts by hand."""

import random

import pytest

from keras_seq.scoring import are_entity_tags, entities, entity_scores


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("O O", []),
        ("B-p", [(0, 1, "p")]),
        ("B-p I-p I-p O", [(0, 3, "p")]),
        # Two adjacent entities of the same type.
        ("B-p B-p I-p", [(0, 1, "p"), (1, 3, "p")]),
        # An I- tag begins an entity at the start of a line, after O and after another type.
        ("I-p I-p", [(0, 2, "p")]),
        ("O I-p O", [(1, 2, "p")]),
        ("B-p I-q", [(0, 1, "p"), (1, 2, "q")]),
        ("I-p B-p", [(0, 1, "p"), (1, 2, "p")]),
        # The BIOES scheme.
        ("S-p S-p O B-q I-q E-q", [(0, 1, "p"), (1, 2, "p"), (3, 6, "q")]),
        ("B-q E-q E-q", [(0, 2, "q"), (2, 3, "q")]),
        ("S-p I-p E-p", [(0, 1, "p"), (1, 3, "p")]),
        ("E-p I-p", [(0, 1, "p"), (1, 2, "p")]),
        ("B-p S-p", [(0, 1, "p"), (1, 2, "p")]),
        # A type may contain a dash.
        ("B-a-b I-a-b I-a", [(0, 2, "a-b"), (2, 3, "a")]),
    ],
    ids=str,
)
def test_entities_are_extracted_from_the_tags_of_a_sentence(tags, expected):
    assert sorted(entities(tags.split())) == expected


def split(tag):
    """Splits a tag at the first dash, as conlleval does."""
    place, _, kind = tag.partition("-")
    return place, kind


def ends(before, after):
    """conlleval's endOfChunk for two adjacent tags, with E- and S- as in its later versions."""
    (place, kind), (next_place, next_kind) = split(before), split(after)
    return place != "O" and (place in "ES" or next_place in "BSO" or kind != next_kind)


def begins(before, after):
    """conlleval's startOfChunk for two adjacent tags."""
    (place, kind), (next_place, next_kind) = split(before), split(after)
    first = next_place in "BS" or (next_place in "IE" and place in "OES")
    return next_place != "O" and (first or kind != next_kind)


def conlleval(references, predictions):
    """Counts correct, found and expected chunks in one pass over the words, like conlleval."""
    correct = found = expected = 0
    for truth, given in zip(references, predictions, strict=True):
        both = False
        last_truth = last_given = "O"
        # conlleval reads the empty line after a sentence as O.
        for word_truth, word_given in zip([*truth, "O"], [*given, "O"], strict=True):
            if both:
                truth_ends, given_ends = ends(last_truth, word_truth), ends(last_given, word_given)
                if truth_ends and given_ends:
                    correct, both = correct + 1, False
                elif truth_ends != given_ends or split(word_truth)[1] != split(word_given)[1]:
                    both = False
            truth_begins = begins(last_truth, word_truth)
            given_begins = begins(last_given, word_given)
            if truth_begins and given_begins and split(word_truth)[1] == split(word_given)[1]:
                both = True
            expected, found = expected + truth_begins, found + given_begins
            last_truth, last_given = word_truth, word_given
    return correct, found, expected


@pytest.mark.parametrize("places", ["BI", "BIES"])
def test_entity_counts_equal_conlleval_for_any_tags(places):
    generator = random.Random(5)
    choices = ["O", "O", *(f"{place}-{kind}" for place in places for kind in "pq")]
    truth = [generator.choices(choices, k=generator.randint(0, 9)) for _ in range(3000)]
    given = [
        [tag if generator.random() < 0.7 else generator.choice(choices) for tag in tags]
        for tags in truth
    ]
    found = entity_scores(truth, given)
    counts = conlleval(truth, given)
    assert (found.correct, found.found, found.expected) == counts
    assert 0.2 < found.f1 < 0.8
    for name in ("correct", "found", "expected"):
        assert sum(getattr(one, name) for one in found.by_type.values()) == getattr(found, name)


def test_entity_counts_as_correct_only_when_it_matches_completely():
    truth = ["B-p I-p O B-q O O S-p".split()]
    given = ["B-p O O B-p O B-q S-p".split()]
    found = entity_scores(truth, given)
    # Only the last of 4 found entities is correct; 3 are expected.
    assert (found.precision, found.recall, found.f1) == pytest.approx((1 / 4, 1 / 3, 2 / 7))
    assert {
        kind: (one.correct, one.found, one.expected) for kind, one in found.by_type.items()
    } == {
        "p": (1, 3, 2),
        "q": (0, 1, 1),
    }


def test_entities_do_not_cross_sentence_boundaries():
    assert entity_scores([["B-p"], ["I-p"]], [["B-p"], ["B-p"]]).correct == 2


def test_entity_scores_without_entities_are_zero():
    found = entity_scores([["O", "O"]], [["O", "O"]])
    assert (found.precision, found.recall, found.f1, found.by_type) == (0, 0, 0, {})
    assert entity_scores([], []).expected == 0


def test_are_entity_tags_recognizes_only_entity_tags():
    assert are_entity_tags(["B-p", "I-p", "O"]) and are_entity_tags({"S-a-b"})
    for other in (["O"], [], ["NOUN", "O"], ["B-", "O"], ["B"], ["X-p", "B-p"]):
        assert not are_entity_tags(other)


@pytest.mark.parametrize(
    ("sides", "error", "said"),
    [
        (([["NOUN"]], [["O"]]), ValueError, "'NOUN' is not an entity tag: expected 'O', or 'B-'"),
        (([["B-"]], [["O"]]), ValueError, "'B-' is not an entity tag"),
        (([["O"]], [["O"], ["O"]]), ValueError, "of 1 sentences and predictions of 2"),
        (([["O"]], [["O", "O"]]), ValueError, "sentence 1 has 1 tags in the references and 2"),
        ((["O"], [["O"]]), TypeError, "sentence 1 must be a list of tags"),
    ],
    ids=str,
)
def test_invalid_tags_raise_an_error_that_names_the_cause(sides, error, said):
    with pytest.raises(error, match=said):
        entity_scores(*sides)
