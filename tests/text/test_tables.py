"""Reading tables: CSV compared with Python's csv module, tabs with `str.split`."""

import csv
import gzip
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_seq.text import LABELED, TAGGED, InputError, parse_columns, read_labeled, read_table

# With column numbers, every line is a pair and none is a header.
NUMBERS = "source=1,target=2"
TEXT = st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=12)
PLAIN = st.text(st.characters(exclude_characters='\n\t"\r\ufeff', exclude_categories=["Cs"]))
# Characters that need quotes or could be mistaken for a delimiter.
AWKWARD = st.text(st.sampled_from('"\t,;ab \r'), max_size=6)
ROWS = st.lists(st.tuples(TEXT | AWKWARD, TEXT | AWKWARD), min_size=1, max_size=6)


@pytest.fixture
def make(tmp_path):
    def write(content: bytes | str, name: str = "pairs.tsv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def read(path, **options):
    """Returns the pairs of a file and the notices without the file name."""
    notices: list[str] = []
    pairs = list(read_table(path, notice=notices.append, **options))
    return pairs, [notice.removeprefix(str(path)) for notice in notices]


def refusal(path, **options) -> str:
    """Returns the error message for a file, without the folder."""
    with pytest.raises(InputError) as caught:
        list(read_table(path, **options))
    message = str(caught.value)
    assert "\n" not in message
    return message.removeprefix(f"{path.parent}/")


def written(rows, **dialect) -> str:
    stream = io.StringIO(newline="")
    csv.writer(stream, **dialect).writerows(rows)
    return stream.getvalue()


def without_mark(rows):
    """Removes byte order marks at the start of the first row."""
    (first, second), *others = rows
    return [(first.lstrip("\ufeff"), second), *others]


@given(ROWS, st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
def test_csv_reads_back_what_a_csv_writer_wrote(tmp_path_factory, rows, quoting):
    rows = without_mark(rows)
    path = tmp_path_factory.mktemp("csv") / "pairs.csv.gz"
    path.write_bytes(gzip.compress(written(rows, quoting=quoting).encode()))
    assert list(read_table(path, columns=NUMBERS)) == rows


@given(ROWS, st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
def test_quoted_tab_separated_text_reads_back_what_a_csv_writer_wrote(
    tmp_path_factory, rows, quoting
):
    rows = without_mark(rows)
    path = tmp_path_factory.mktemp("tsv") / "pairs.tsv"
    path.write_bytes(written(rows, quoting=quoting, delimiter="\t").encode())
    assert list(read_table(path, columns=NUMBERS)) == rows


@given(st.lists(st.tuples(PLAIN, PLAIN), min_size=1))
def test_plain_tab_separated_text_reads_as_split_at_its_tabs(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("plain") / "pairs.tsv"
    path.write_bytes("".join(f"{first}\t{second}\n" for first, second in rows).encode())
    assert list(read_table(path, columns=NUMBERS)) == rows


@pytest.mark.parametrize("name", ["a.csv", "A.CSV", "a.csv.gz"])
@pytest.mark.parametrize(
    ("delimiter", "words"), [(",", "commas"), (";", "semicolons"), ("\t", "tabs")]
)
def test_delimiter_of_csv_is_the_one_that_all_lines_share(make, name, delimiter, words):
    rows = [("Hello, you; there", "Hallo, du"), ("a", "b; c"), ('the "x"', "d")]
    content = written(rows, delimiter=delimiter).encode()
    path = make(gzip.compress(content) if name.endswith(".gz") else content, name)
    pairs, notices = read(path)
    assert pairs == rows
    assert f": read as CSV, with {words} between columns" in notices


@pytest.mark.parametrize(
    "lines",
    [
        ['"Go.\tGeh.', 'Stop."\tHalt."', "a\tb"],
        ['"Go."\t"Geh."', "a\tb"],
        ['"Go."\t"Geh."', '"Stop\tHalt', *["a\tb"] * 1200],
        ['5" disk\tDiskette', '"a"\t"b"'],
        ['"Who?" "Me."\t"Wer?" "Ich."'],
        ['"h@"l@U\t"a"', '""\t"b"'],
        ['say ""x""\t"y"'],
    ],
    ids=["over lines", "some", "never closed", "inch", "two quotes", "phones", "doubled inside"],
)
def test_quotes_of_plain_tab_separated_text_are_text(make, lines):
    path = make("".join(f"{line}\n" for line in lines))
    assert read(path)[0] == [tuple(line.split("\t")) for line in lines]


def test_notice_tells_what_was_decided_about_quotes(make):
    kept = make('"Go."\t"Geh."\na\tb\n')
    assert read(kept)[1] == [": some fields are in quotes, which are kept as text"]
    removed = make('"Go ""on""."\tGeh.\na\tb\n')
    assert read(removed) == (
        [('Go "on".', "Geh."), ("a", "b")],
        [": fields are quoted as in CSV, and read without their quotes"],
    )
    assert read(make("a\tb\nit's\tx\n")) == ([("a", "b"), ("it's", "x")], [])


@pytest.mark.parametrize("name", ["pairs.csv", "pairs.tsv"])
def test_line_breaks_within_fields_become_spaces_and_are_counted(make, name):
    rows = [("one\ntwo\r\nthree", "x"), ("four", "y\n")]
    path = make(written(rows, delimiter="," if name == "pairs.csv" else "\t"), name)
    pairs, notices = read(path)
    assert pairs == [("one two three", "x"), ("four", "y ")]
    assert notices[-1] == ": line breaks within fields are replaced by spaces (3)"


def test_columns_are_chosen_by_number_or_by_header(make):
    content = "id\tEnglish  text\tgerman\n1\ta\tb\n2\tc\td\textra\n"
    path = make(content.replace("\textra", ""))
    assert read(path, columns="source=2,target=3")[0] == [
        ("English  text", "german"),
        ("a", "b"),
        ("c", "d"),
    ]
    for columns in ("source=English text,target=german", "target=german, source = English text"):
        assert read(path, columns=columns)[0] == [("a", "b"), ("c", "d")]
    assert read(path, columns="source=german,target=1")[0] == [("b", "1"), ("d", "2")]
    assert refusal(make(content), columns="source=german,target=1") == (
        "pairs.tsv:3: 4 columns (1 '2', 2 'c', 3 'd', 4 'extra'), expected at most 3, as in line 1"
    )


def test_header_name_with_commas_and_equals_signs_can_be_chosen(make):
    path = make('"a,b=c",x,"d,e"\n1,2,3\n', "pairs.csv")
    assert read(path, columns="source=a,b=c,target=d,e")[0] == [("1", "3")]


@pytest.mark.parametrize(
    ("name", "content", "columns", "message"),
    [
        ("a.tsv", "a\tb\n", "source=1,target=3", "a.tsv:1: 2 columns (1 'a', 2 'b'), expected at "
         "least 3 for --columns 'source=1,target=3'"),
        ("a.tsv", "a\tb\tc\nd\te\n", "source=1,target=3", "a.tsv:2: 2 columns (1 'd', 2 'e'), exp"),
        ("a.tsv", "a\tb\tc\n\n", "source=1,target=3", "a.tsv:2: a blank line, expected 3 columns"),
        (
            "a.tsv",
            "x\ty\n",
            "source=x,target=y,feature=3",
            "a.tsv:1: no column 'y,feature=3' in the header (1 'x', 2 'y'): the roles of pairs are "
            "source, target, features, target_language, not feature",
        ),
        ("a.tsv", "x\ty\n", "source=x,target=z", "a.tsv:1: no column 'z' in the header (1 'x', 2 "
         "'y'): give another name or a number in --columns"),
        ("a.tsv", "x\ty\tx\n", "source=x,target=y", "a.tsv:1: 2 columns 'x' in the header"),
        ("a.tsv", "x\ty\n", "source=x,target=1", "names column 1 twice, expected different"),
        ("a.tsv", "a\tb\tc\n", None, "a.tsv:1: 3 columns (1 'a', 2 'b', 3 'c'), expected 2: "
         "choose two, as in --columns source=1,target=2"),
        ("a.tsv", "a b\n", None, "a.tsv:1: no tab, expected one between source and target"),
        ("a.tsv", '"a ""b""\tc"\td\n"e\tf\n', None, "a.tsv:1: 3 columns"),
        ("a.tsv", '"a ""b"""\tc\n' + "d\te\n" * 1000 + '"f\tg\n', None,
         "a.tsv:1002: a field begins with a quote that is never closed"),
        ("a.csv", "a\n", None, "a.csv:1: 1 column (1 'a'), expected 2 with commas between them"),
        ("a.csv", "a,b\nc,d,e\n", None, "a.csv:2: 3 columns (1 'c', 2 'd', 3 'e'), expected 2: "
         "put quotes around a field that contains ','"),
        ("a.csv", "a,b,c\nd,e\n", "source=1,target=2", "a.csv:2: 2 columns"),
        ("a.csv", '"a\nb",c\n\nd,e\n', None, "a.csv:3: a blank line, expected 2 columns"),
        ("a.csv", 'a,b\n"c,d\ne,f\n', None, "a.csv:2: a field begins with a quote that is never"),
        ("a.csv", 'a,b\n"c"d,e\n', None, "a.csv:2: not CSV"),
        ("a.csv", "a,b\n" + "c" * 200_000 + ",d\n", None, "a.csv:2: a field has more than 131,072"),
    ],
)  # fmt: skip
def test_line_without_the_columns_is_refused_with_its_number(make, name, content, columns, message):
    assert message in refusal(make(content, name), columns=columns)


def test_many_and_long_columns_are_shortened_in_messages(make):
    message = refusal(make("\t".join(["x" * 100] * 1000)))
    assert "1000 columns" in message.replace(",", "") and len(message) < 600


@pytest.mark.parametrize(
    "columns",
    ["", "source", "source=1", "source=1,target=", "source=0,target=1", "source=1,target=1",
     "source=a,target= a ", "text=1,label=2", "1,2", "source=1;target=2", "source=1\n,tgt=2"],
)  # fmt: skip
def test_malformed_choice_of_columns_is_refused(make, columns):
    assert refusal(make("a\tb\n"), columns=columns).startswith("data.columns: received ")


@pytest.mark.parametrize(
    ("name", "content", "columns"),
    [
        ("a.tsv", "walk\twalks\tV;3\n", "source=1,target=2,features=3"),
        ("a.tsv", "V;3\twalk\twalks\n", "features=1,target=3,source=2"),
        ("a.csv", "form,what,lemma\nwalks,V;3,walk\n", "source=lemma,target=form,features=what"),
    ],
)
def test_features_follow_the_source_after_a_tab(make, name, content, columns):
    assert read(make(content, name), columns=columns)[0] == [("walk\tV;3", "walks")]


def test_tab_within_a_source_with_features_becomes_a_space(make):
    path = make('"a\tb",c,V\n', "a.csv")
    assert read(path, columns="source=1,target=2,features=3")[0] == [("a b\tV", "c")]


def test_roles_of_labeled_lines_are_text_and_label_or_tags():
    assert parse_columns("label=1,text=words", LABELED).columns == ("words", 0)
    assert parse_columns("text=2,tags=1", TAGGED).columns == (1, 0)
    with pytest.raises(InputError, match="expected text=COLUMN,tags=COLUMN"):
        parse_columns("text=2,label=1", TAGGED)


def test_labeled_lines_are_read_from_chosen_columns(make):
    path = make('label,id,text\n good ,1,"a dog, a cat"\n,2,b\n', "data.csv")
    notices = []
    pairs = list(read_labeled(path, columns="text=text,label=label", notice=notices.append))
    assert pairs == [("a dog, a cat", "good"), ("b", "")]
    tagged = make('x,tags\n"a\nb",X Y\n"c d",X\n', "tags.csv")
    with pytest.raises(InputError, match=r"tags\.csv:4: 2 words and 1 tags"):
        list(read_labeled(tagged, tagged=True, columns="text=x,tags=tags"))


LICENSE = "CC-BY 2.0 (France) Attribution: tatoeba.org #1 (CM)"


def test_license_column_of_anki_decks_is_ignored(make):
    path = make(f'Go.\tGeh.\t{LICENSE}\n"Hi!"\tHallo!\t{LICENSE}\n', "deu.txt")
    pairs, notices = read(path)
    assert pairs == [("Go.", "Geh."), ('"Hi!"', "Hallo!")]
    assert notices[-1] == ":1: the third column is a license, and ignored"
    assert read(path, columns="source=2,target=1")[0] == [("Geh.", "Go."), ("Hallo!", '"Hi!"')]
    # One line with a license does not make a file an Anki deck.
    other = make(f"Go.\tGeh.\t{LICENSE}\na\tb\tc\n")
    assert "3 columns (1 'Go.', 2 'Geh.', 3 'CC-BY 2.0" in refusal(other)
    assert "expected at most 3, as in line 1" in refusal(
        make(f"Go.\tGeh.\t{LICENSE}\n" * 1000 + "a\tb\tc\td\n")
    )
    assert "choose two, as in --columns text=1,label=2" in refusal(path, roles=LABELED)


def test_numbered_sentences_of_tatoeba_are_read(make):
    path = make("\ufeff1276\tLet's go.\t77\tGehen wir.\r\n1277\t42\t78\t42\r\n")
    pairs, notices = read(path)
    assert pairs == [("Let's go.", "Gehen wir."), ("42", "42")]
    assert notices[-1] == ":1: columns 1 and 3 are numbers; columns 2 and 4 are read"
    for content in ("1\t2\t3\t4\n", "1\teng\tx\ty\n", "1\ta\t2\tb\n3\tc\td\te\n"):
        assert "4 columns" in refusal(make(content))


@pytest.mark.parametrize(
    "header",
    ["source\ttarget", "English\tGerman", "TEXT\tLabel", "word\tpronunciation", "src\ttgt",
     "input\toutput", "en\tde", "eng\tdeu", "source_text\ttarget_text", "# grapheme\tphoneme"],
)  # fmt: skip
def test_usual_header_is_skipped_with_a_notice(make, header):
    path = make(f"{header}\na\tb\n")
    first, second = header.split("\t")
    assert read(path) == (
        [("a", "b")],
        [
            f":1: {first!r} and {second!r} are read as a header, and skipped; if this is a pair, "
            "give --columns source=1,target=2"
        ],
    )
    pairs, (notice,) = read(path, columns=NUMBERS)
    assert pairs == [(first, second), ("a", "b")]
    assert "are read as a pair; if this is a header, name its columns in --columns" in notice


@pytest.mark.parametrize(
    "pair", ["source\tQuelle", "a\tb", "source\tsource", "word\tWort", "\t", "the\tder", "no\tis"]
)
def test_other_first_lines_are_pairs(make, pair):
    path = make(f"{pair}\nsource\ttarget\n")
    assert read(path) == ([tuple(pair.split("\t")), ("source", "target")], [])


def test_line_numbers_count_the_header(make):
    path = make("source\ttarget\na\tb\nc\n")
    assert refusal(path) == "pairs.tsv:3: no tab, expected one between source and target"


@pytest.mark.parametrize(
    ("header", "roles", "advice"),
    [
        ("Target\tSource", ("source", "target"), "source=Source,target=Target"),
        ("label\ttext", LABELED, "text=text,label=label"),
        ("tags\twords", TAGGED, "text=words,tags=tags"),
    ],
)
def test_header_in_the_other_order_is_refused(make, header, roles, advice):
    path = make(f"{header}\na\tb\n")
    message = refusal(path, roles=roles)
    assert message.endswith(f"in the other order: give --columns {advice}")
    assert read(path, roles=roles, columns=advice)[0] == [("b", "a")]


def test_empty_file_has_no_pairs(make):
    for name in ("a.csv", "a.tsv"):
        for columns in (None, NUMBERS, "source=x,target=y"):
            assert list(read_table(make("", name), columns=columns)) == []


def test_long_file_is_read_to_its_end(make):
    rows = [(f"a, {number}", f'b "{number}"') for number in range(2500)]
    assert read(make(written(rows), "a.csv"))[0] == rows
    assert read(make(written(rows, delimiter="\t")))[0] == rows
    plain = [(f"a {number}", f"b {number}") for number in range(2500)]
    assert read(make("".join(f"{a}\t{b}\n" for a, b in plain)))[0] == plain


def test_files_are_closed_when_a_reader_is_dropped(make):
    # A file that stays open causes a ResourceWarning, which fails the test.
    for name in ("a.csv", "a.tsv"):
        pairs = read_table(make("a,b\n" * 2000 if name == "a.csv" else "a\tb\n" * 2000, name))
        assert next(pairs) == ("a", "b")
        del pairs


def test_record_of_many_lines_is_bounded(make):
    """Each line closes a quoted field and opens the next, so the record never ends."""
    path = make("a,b\nc,d\n" * 300 + 'x,"\n' + f'{"y" * 500}","\n' * 40_000, "pairs.csv")
    assert refusal(path).startswith("pairs.csv:601: a record of more than 16 MiB")
