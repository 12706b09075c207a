"""Error rates, compared with a simple Levenshtein implementation and with counts by hand."""

import random

import pytest

from keras_seq.scoring import Errors, character_errors, compare, score, word_errors


def fewest_errors(reference, hypothesis):
    """Returns (errors, substitutions) of the best alignment by the Levenshtein recursion."""
    table = {(0, 0): (0, 0)}
    for i in range(len(reference) + 1):
        for j in range(len(hypothesis) + 1):
            options = []
            if i:
                errors, replaced = table[i - 1, j]
                options.append((errors + 1, replaced))
            if j:
                errors, replaced = table[i, j - 1]
                options.append((errors + 1, replaced))
            if i and j:
                errors, replaced = table[i - 1, j - 1]
                wrong = reference[i - 1] != hypothesis[j - 1]
                options.append((errors + wrong, replaced + wrong))
            if options:
                table[i, j] = min(options)
    return table[len(reference), len(hypothesis)]


def test_word_and_character_errors_match_counts_by_hand():
    # "sit" replaces "sat", "on" is deleted, and "now" is inserted.
    found = word_errors(["the cat sit the mat now"], ["the cat sat on the mat"])
    assert found == Errors(substitutions=1, insertions=1, deletions=1, length=6)
    assert found.rate == 0.5
    # The standard example of the Levenshtein distance: kitten, sitting.
    assert character_errors(["sitting"], ["kitten"]) == Errors(2, 1, 0, 6)


def test_word_errors_are_minimal_for_each_of_many_lines():
    draw = random.Random(1)

    def line(longest):
        return " ".join(draw.choices("abcd", k=draw.randint(0, longest)))

    pairs = [(line(longest), line(longest)) for longest in (2, 9, 9, 30) for _ in range(60)]
    for reference, hypothesis in pairs:
        errors, replaced = fewest_errors(reference.split(), hypothesis.split())
        found = word_errors([hypothesis], [reference])
        assert found.substitutions == replaced
        assert found.insertions + found.deletions == errors - replaced
        assert found.deletions - found.insertions == len(reference.split()) - len(
            hypothesis.split()
        )
    # The errors of all lines together are the sums of the errors of each line.
    hypotheses, references = [h for _, h in pairs], [r for r, _ in pairs]
    alone = [word_errors([h], [r]) for r, h in pairs]
    for count in ("substitutions", "insertions", "deletions", "length"):
        together = getattr(word_errors(hypotheses, references), count)
        assert together == sum(getattr(one, count) for one in alone)


def test_word_errors_handle_long_and_short_lines_together():
    long = "one two three four five " * 400
    found = word_errors(["one", long, "", "two"], ["one", long + " six", "three", ""])
    assert found == Errors(0, 1, 2, 2003)


def test_error_rates_handle_spaces_and_empty_lines():
    assert word_errors([], []).rate == word_errors([""], [" "]).rate == 0
    assert word_errors(["a"], [""]).rate == float("inf")
    assert character_errors([" a  b\t"], ["a b"]) == Errors(0, 0, 0, 3)
    assert character_errors(["ab"], ["a b"]) == Errors(0, 0, 1, 3)
    assert word_errors(["A b"], ["a b"]).rate == 0.5


def test_score_reports_wer_and_cer_as_metrics():
    found = score(["One too", "x"], [["one two", "x"]], metrics=["wer", "cer"])
    assert [one.name for one in found] == ["WER", "CER"] and found.bleu is None
    assert found.wer.value == pytest.approx(200 / 3)
    assert found.cer.value == 100 * 2 / 8
    assert found.wer.details == "2 substitutions, 0 insertions, 0 deletions in 3 words"
    assert found.wer.text == "WER = 66.67 nrefs:1|case:mixed|unit:word|edits:levenshtein"
    without_case = score(["One too"], [["one two"]], metrics=["wer"], lowercase=True).wer
    assert without_case.value == 50 and "case:lc" in without_case.signature


def test_invalid_error_rate_arguments_raise_value_error():
    with pytest.raises(ValueError, match="received 1 hypotheses and 2 references"):
        word_errors(["a"], ["a", "b"])
    with pytest.raises(ValueError, match="'wer' takes one set of references, received 2"):
        score(["a"], [["a"], ["b"]], metrics=["wer"])
    with pytest.raises(ValueError, match="unknown metric 'per', expected one of .*cer, wer"):
        score(["a"], [["a"]], metrics=["per"])
    with pytest.raises(ValueError, match="no paired test of 'cer'"):
        compare({"a": ["a"], "b": ["b"]}, [["a"]], metrics=["cer"])
