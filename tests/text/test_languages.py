"""Tags of target languages: columns of pair files, lines, and symbols of vocabularies."""

import pytest

from keras_seq.text import (
    InputError,
    PairFiles,
    Tokenizer,
    add_language,
    language_tag,
    read_table,
    split_language,
    with_languages,
)

COLUMNS = "source=1,target=2,target_language=3"
LANGUAGES = ("de", "fr")


def test_the_column_becomes_a_tag_before_the_source(tmp_path):
    path = tmp_path / "many.tsv"
    path.write_text("A dog\tun chien\t fr \nA dog\tein Hund\tde\n \tx\tde\n")
    expected = [("<2fr> A dog", "un chien"), ("<2de> A dog", "ein Hund"), (" ", "x")]
    assert list(read_table(path, columns=COLUMNS)) == expected
    files = PairFiles(pairs=str(path), columns=COLUMNS)
    assert files.has_languages and not files.has_features
    # A source of a tag alone would not be blank.
    assert [example.usable for example in files.read()] == [True, True, False]


def test_the_column_is_found_by_its_name_in_a_csv_header(tmp_path):
    path = tmp_path / "many.csv"
    path.write_text('to,en,text\nfr,"A dog, a cat","un chien, un chat"\n')
    columns = "target=text,source=en,target_language=to"
    assert list(read_table(path, columns=columns)) == [("<2fr> A dog, a cat", "un chien, un chat")]


@pytest.mark.parametrize("name", ["", "zh hant", "<fr>", "f" * 41])
def test_a_wrong_name_is_refused_with_its_line(tmp_path, name):
    path = tmp_path / "many.tsv"
    path.write_text(f"A dog\tun chien\tfr\nA cat\tun chat\t{name}\n")
    with pytest.raises(InputError, match=r"many.tsv:2: target language: received .*, expected"):
        list(read_table(path, columns=COLUMNS))


def test_features_and_languages_together_are_refused(tmp_path):
    path = tmp_path / "many.tsv"
    path.write_text("a\tb\tc\td\n")
    with pytest.raises(InputError, match="a column of either features or target_language"):
        list(read_table(path, columns=f"{COLUMNS},features=4"))


def test_lines_get_the_tag_or_keep_their_own():
    lines = ["A dog", "", "<2de> A cat", "  <2de>  A cow"]
    expected = ["<2fr> A dog", "", "<2de> A cat", "<2de>  A cow"]
    assert with_languages(lines, LANGUAGES, "fr") == expected
    # The name of the vocabulary is used, which may be lowercase.
    assert with_languages(["x"], ["zh-hant"], "zh-Hant") == ["<2zh-hant> x"]
    # A model without languages reads all lines as they are.
    assert with_languages(["<2de> A cat"], ()) == ["<2de> A cat"]
    assert split_language("<2de>A cat") == (None, "<2de>A cat")


@pytest.mark.parametrize(
    ("languages", "line", "to", "message"),
    [
        ((), "a", "fr", "received 'fr', expected none: the model has no languages"),
        (LANGUAGES, "a", None, "no target language for 'a', expected one of de, fr: give it with"),
        (LANGUAGES, "a", "it", "received 'it', expected one of de, fr"),
        (LANGUAGES, "<2it> a", "fr", "received 'it', expected one of de, fr"),
        ([f"l{i:02}" for i in range(30)], "a", None, "l18, l19 and 10 more"),
    ],
)
def test_a_wrong_or_missing_language_is_refused(languages, line, to, message):
    with pytest.raises(InputError) as error:
        with_languages([line], languages, to)
    assert message in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize("kind", ["unigram", "bpe", "char", "word", "byte"])
@pytest.mark.parametrize("lowercase", [False, True])
def test_a_tag_is_one_token_and_does_not_change_the_others(kind, lowercase):
    lines = ["a dog runs in the park", "the cat sleeps"]
    tags = [language_tag("fr"), language_tag("zh-Hant")]
    tokenizer = Tokenizer.train(
        lines * 9, size=300, kind=kind, symbols=[*tags, "<sep>"], lowercase=lowercase
    )
    # Only a run whose text names target languages reads the symbols as tags.
    assert tokenizer.languages == {}
    tokenizer = tokenizer.with_languages()
    names = ["fr", "zh-hant" if lowercase else "zh-Hant"]
    assert list(tokenizer.languages) == names
    plain, tagged = tokenizer.encode([lines[0], add_language(lines[0], "zh-Hant")])
    assert tokenizer.languages[names[1]] in tagged[:2]
    # One more token is the space, before or after the tag.
    assert tagged[2:] == plain
