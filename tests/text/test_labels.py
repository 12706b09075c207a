"""Labels, labeled lines, and the tokens of words."""

import gzip

import pytest

from keras_seq.text import (
    UNK_ID,
    InputError,
    Labels,
    Tokenizer,
    read_labeled,
    word_tokens,
    words_of,
)

NO_BREAK, ZERO_WIDTH = "\u00a0", "\u200b"


def test_label_ids_start_after_the_special_token_ids():
    labels = Labels(["no", "yes", "per haps"])
    assert labels.ids(["yes", "no", "per haps", "unheard-of", ""]) == [5, 4, 6, UNK_ID, UNK_ID]
    assert [labels.name(id_) for id_ in (4, 5, 6)] == ["no", "yes", "per haps"]
    assert [labels.name(id_) for id_ in (-1, 0, 1, 3, 7)] == [""] * 5
    assert labels.vocabulary_size == 7


def test_labels_survive_a_round_trip_through_bytes():
    labels = Labels(["größer", "a b", "x", f"a{NO_BREAK}b"])
    assert Labels.from_bytes(labels.to_bytes()).names == labels.names


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "truncated"),
        (b"a\nb", "truncated"),
        (b"a\n\n", "received '' as a label"),
        (b"\n", "received '' as a label"),
        (b"a\nb\na\n", "two labels are the same"),
        (b"a\xff\n", "not UTF-8"),
        (b" a\n", "no white space around it"),
        (b"a\r\n", "no white space around it"),
        (b"x" * 1001 + b"\n", "up to 1,000 characters"),
        (b"".join(b"%d\n" % number for number in range(65_537)), "65,537 labels, expected from 1"),
    ],
    ids=lambda value: None if isinstance(value, bytes) else value,
)
def test_invalid_label_list_raises_input_error(content, said):
    with pytest.raises(InputError, match=said):
        Labels.from_bytes(content)


def written(folder, content):
    path = folder / "labeled.tsv"
    path.write_bytes(content)
    return path


def test_read_labeled_yields_text_and_label_pairs(tmp_path):
    path = written(tmp_path, b"a dog\t good \r\n\tbad\nno label\t\ntab in\ta label\n")
    assert list(read_labeled(path)) == [
        ("a dog", "good"),
        ("", "bad"),
        ("no label", ""),
        ("tab in", "a label"),
    ]


def test_read_labeled_reads_gzip_files(tmp_path):
    path = tmp_path / "labeled.tsv.gz"
    path.write_bytes(gzip.compress(b"a dog\tgood\n"))
    assert list(read_labeled(path)) == [("a dog", "good")]


def test_read_labeled_yields_text_and_normalized_tags(tmp_path):
    content = f"a{NO_BREAK}b  c\tX   Y\n {ZERO_WIDTH} d\tZ Z\n\t\n"
    path = written(tmp_path, content.encode())
    assert list(read_labeled(path, tagged=True)) == [
        (f"a{NO_BREAK}b  c", "X Y"),
        (f" {ZERO_WIDTH} d", "Z Z"),
        ("", ""),
    ]


@pytest.mark.parametrize(
    ("content", "tagged", "said"),
    [
        (b"a b\tX Y\na b c\tX Y\n", True, r"labeled\.tsv:2: 3 words and 2 tags, expected one tag"),
        (b"a b\tX Y\nabc\t\n", True, r"labeled\.tsv:2: 1 words and 0 tags"),
        (b"a b\tX Y\n\tX\n", True, r"labeled\.tsv:2: 0 words and 1 tags"),
        (b"a dog\tgood\na cat\n", False, r"labeled\.tsv:2:"),
        (b"a\tb\nc\td\te\n", False, r"labeled\.tsv:2:"),
        (b"a\tb\n\xff\xfe\tc\n", False, r"labeled\.tsv:2:"),
    ],
    ids=["tag missing", "no tags", "no words", "one column", "three columns", "bytes"],
)
def test_malformed_labeled_line_is_named_in_the_error(tmp_path, content, tagged, said):
    with pytest.raises(InputError, match=said):
        list(read_labeled(written(tmp_path, content), tagged=tagged))


def test_words_are_split_only_at_ascii_white_space():
    assert words_of(" a\tb\v c\f\rd\n") == ["a", "b", "c", "d"]
    assert words_of("") == words_of(" \t ") == []
    for space in (NO_BREAK, "\u2003", "\u3000", "\u2028", ZERO_WIDTH, "\x85", "\x1c"):
        assert words_of(f"a{space}b c") == [f"a{space}b", "c"]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(["a dog runs", "a cat sleeps"] * 20, size=280)


def test_each_word_has_its_own_tokens(tokenizer):
    line = "a unheardofword dog"
    (found,) = word_tokens(tokenizer, [line])
    ends = [*found.begins, len(found.ids)][1:]
    for word, begin, end in zip(words_of(line), found.begins, ends, strict=True):
        assert found.ids[begin:end] == tokenizer.encode([word])[0]
    # The unseen word has several tokens.
    assert found.begins[2] - found.begins[1] > 1


def test_word_tokens_do_not_depend_on_batch_or_spacing(tokenizer):
    lines = ["", "dog", f"runs{NO_BREAK}dog a", "a  dog"]
    found = word_tokens(tokenizer, lines)
    assert [len(one.begins) for one in found] == [0, 1, 2, 2]
    assert found == [word_tokens(tokenizer, [line])[0] for line in lines]
    assert found[3] == word_tokens(tokenizer, ["a dog"])[0]


def test_line_without_a_tab_is_named_in_the_error(tmp_path):
    path = written(tmp_path, b"a dog\tgood\nno label\n")
    with pytest.raises(InputError, match=":2: no tab, expected one between text and label"):
        list(read_labeled(path))
