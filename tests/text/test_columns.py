"""Files of weights and alignments, which have one line per line of a text."""

import gzip

import pytest

from keras_seq.text import InputError
from keras_seq.text.columns import read_alignments, read_weights
from keras_seq.text.reading import zip_lines


@pytest.fixture
def written(tmp_path):
    def write(content: str | bytes, name: str = "column.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_read_weights_parses_one_number_per_line(written):
    text = "1\n0.25\n 3e-2 \n0\n1000000000\n+2\n"
    expected = [1.0, 0.25, 0.03, 0.0, 1e9, 2.0]
    assert list(read_weights(written(text))) == expected
    assert list(read_weights(written(gzip.compress(text.encode()), "w.gz"))) == expected


@pytest.mark.parametrize(
    "line", ["", "x", "-0.5", "nan", "inf", "-inf", "1e999", "1e10", "1 2", "1_0", "0,5", "1\t2"]
)
def test_invalid_weight_is_refused_with_its_line_number(written, line):
    with pytest.raises(InputError, match=r"column.txt:2: received .*, expected one number from 0"):
        list(read_weights(written(f"1\n{line}\n1\n")))


def test_read_alignments_parses_the_pharaoh_format(written):
    text = "0-0 1-2 1-3\n\n  12-0\t0-1 \n"
    expected = [((0, 0), (1, 2), (1, 3)), (), ((12, 0), (0, 1))]
    assert list(read_alignments(written(text))) == expected


@pytest.mark.parametrize(
    "word", ["0", "0-", "-1-0", "0-0-0", "0p0", "a-b", "0–1", "²-1", "1-9999999"]
)
def test_invalid_alignment_link_is_refused_with_its_line_number(written, word):
    with pytest.raises(InputError, match=r"column.txt:3: received .*, expected links as in '0-0 1"):
        list(read_alignments(written(f"0-0\n\n0-0 {word} 1-1\n")))


def test_in_step_reports_both_line_counts_when_lengths_differ():
    names = ["a", "b", "c"]

    def together(*lengths):
        return list(zip_lines(names, [iter(range(length)) for length in lengths]))

    assert together(2, 2, 2) == [(0, 0, 0), (1, 1, 1)]
    assert together(0, 0, 0) == []
    for lengths, words in (
        ((3, 3, 1), "a has 3 lines but c has 1"),
        ((3, 2, 3), "a has 3 lines but b has 2"),
        ((2, 2, 5), "a has 2 lines but c has 5"),
        ((0, 1, 0), "a has 0 lines but b has 1"),
    ):
        with pytest.raises(InputError, match=words):
            together(*lengths)
