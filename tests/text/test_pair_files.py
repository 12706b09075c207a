"""A corpus in several files: their selection and order, and the weights and links of lines."""

import pytest

from keras_seq.text import Example, InputError, PairFiles, expand_names


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Three pairs of files, `part-N.en` and `part-N.de` with N lines, in the current folder."""
    monkeypatch.chdir(tmp_path)
    for number in (1, 2, 3):
        for side in ("en", "de"):
            lines = "".join(f"{side} {number}.{line}\n" for line in range(number))
            (tmp_path / f"part-{number}.{side}").write_text(lines)
    return tmp_path


ALL = [f"{number}.{line}" for number in (1, 2, 3) for line in range(number)]


def test_pattern_expands_to_matching_files_sorted_by_name(folder):
    (folder / "part-10.en").touch()
    assert expand_names("part-*.en") == ("part-1.en", "part-10.en", "part-2.en", "part-3.en")
    assert expand_names("part-[13].en") == ("part-1.en", "part-3.en")
    assert expand_names(["part-3.en", "part-?.de"]) == (
        "part-3.en",
        *(f"part-{number}.de" for number in (1, 2, 3)),
    )
    assert expand_names("absent.en") == ("absent.en",)
    with pytest.raises(InputError, match=r"absent\*\.en: no file has a name like this"):
        expand_names("absent*.en")


def test_a_file_whose_name_looks_like_a_pattern_is_that_file(folder):
    (folder / "part-[12].en").write_text("itself\n")
    assert expand_names("part-[12].en") == ("part-[12].en",)
    assert expand_names("part-[1-2].en") == ("part-1.en", "part-2.en")


@pytest.mark.parametrize(
    "names",
    [
        {"source": "part-*.en", "target": "part-*.de"},
        {"source": [f"part-{n}.en" for n in (1, 2, 3)], "target": "part-*.de"},
    ],
)
def test_many_pair_files_are_read_as_one_corpus(folder, names):
    files = PairFiles(**names)
    files.check()
    assert list(files.read()) == [Example(f"en {line}", f"de {line}") for line in ALL]
    assert (files.count, files.has_weights, files.has_alignments) == (3, False, False)
    assert str(files) == "part-1.en and 2 more, part-1.de and 2 more"


def test_tab_separated_files_are_read_with_file_weights(folder):
    for number in (1, 2):
        (folder / f"{number}.tsv").write_text(f"a{number}\tb{number}\n" * number)
    files = PairFiles(pairs="*.tsv", file_weights=[3, 0.5])
    expected = [Example("a1", "b1", 3.0), Example("a2", "b2", 0.5), Example("a2", "b2", 0.5)]
    assert list(files.read()) == expected


def test_columns_and_headers_are_in_step_with_weights_and_links(folder):
    (folder / "a.csv").write_text('de,en\n"ein\nHund",a dog\nja,yes\n')
    (folder / "a.w").write_text("0.5\n2\n")
    (folder / "a.links").write_text("0-0 1-1\n0-0\n")
    files = PairFiles(
        pairs="a.csv", columns="source=en,target=de", weights="a.w", alignments="a.links"
    )
    expected = [
        Example("a dog", "ein Hund", 0.5, ((0, 0), (1, 1))),
        Example("yes", "ja", 2.0, ((0, 0),)),
    ]
    assert list(files.read()) == list(files.read()) == expected
    labeled = PairFiles(labeled="a.csv", columns="text=de,label=en")
    assert list(labeled.read()) == [Example("ein Hund", "a dog"), Example("ja", "yes")]
    plain = list(PairFiles(pairs="a.csv").read())
    assert plain == [Example("ein Hund", "a dog"), Example("ja", "yes")]


def test_weights_of_lines_and_of_files_multiply(folder):
    for number in (1, 2, 3):
        (folder / f"part-{number}.w").write_text("".join(f"0.{n + 1}\n" for n in range(number)))
    names = {"source": "part-*.en", "target": "part-*.de", "weights": "part-*.w"}
    assert [example.weight for example in PairFiles(**names).read()] == [
        0.1, 0.1, 0.2, 0.1, 0.2, 0.3
    ]  # fmt: skip
    weighted = PairFiles(**names, file_weights=[10, 0, 1.0])
    found = [example.weight for example in weighted.read()]
    assert found == pytest.approx([1, 0, 0, 0.1, 0.2, 0.3])
    # Pairs of weight 0 are not usable, like pairs without text.
    assert len(list(weighted.read_usable())) == 4


def test_alignment_links_stay_with_their_lines_across_files(folder):
    for number in (1, 2, 3):
        (folder / f"part-{number}.links").write_text("1-0 0-1\n\n0-0\n"[: (8, 9, 13)[number - 1]])
    files = PairFiles(source="part-*.en", target="part-*.de", alignments="part-*.links")
    first, none, last = ((1, 0), (0, 1)), (), ((0, 0),)
    assert [example.links for example in files.read()] == [first, first, none, first, none, last]


@pytest.mark.parametrize(
    ("links", "words"),
    [
        ("0-0\n0-2\n", "l:2: 0-2 links target word 2, but the target line has 2 words"),
        ("0-0\n3-0\n", "l:2: 3-0 links source word 3, but the source line has 2 words"),
        ("0-0\n", "part-2.en has 2 lines but l has 1"),
        ("0-0\n\n\n", "part-2.en has 2 lines but l has 3"),
    ],
)
def test_alignment_links_that_do_not_fit_the_lines_raise_input_error(folder, links, words):
    (folder / "l").write_text(links)
    files = PairFiles(source="part-2.en", target="part-2.de", alignments="l")
    with pytest.raises(InputError, match=words):
        list(files.read())


def test_error_in_one_of_many_files_names_that_file(folder):
    (folder / "part-2.de").write_text("one line\n")
    with pytest.raises(InputError, match=r"part-2.en has 2 lines but part-2.de has 1"):
        list(PairFiles(source="part-*.en", target="part-*.de").read())
    (folder / "part-3.en").write_bytes(b"a\nb\n\xff\n")
    with pytest.raises(InputError, match=r"part-3.en:3: invalid UTF-8"):
        list(PairFiles(source="part-3.en", target="part-3.de").read())
    (folder / "part-3.w").write_text("1\n1\nx\n")
    with pytest.raises(InputError, match=r"part-3.w:3: received 'x'"):
        list(PairFiles(source="part-3.de", target="part-3.de", weights="part-3.w").read())


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (
            {"source": "part-*.en", "target": "part-1.de"},
            "--source names 3 files, but --target 1 file: file N of one must go with file N",
        ),
        (
            {"source": "part-*.en", "target": "part-*.de", "weights": "w"},
            "--source names 3 files, but --weights 1 file",
        ),
        (
            {"source": "part-*.en", "target": "part-*.de", "file_weights": [1, 2]},
            "data.file_weights has 2 numbers for 3 files: give one for each",
        ),
        ({"source": "part-*.fr", "target": "part-*.de"}, r"part-\*.fr: no file has a name like"),
        ({"source": "a"}, "--source without --target: both are needed"),
        ({"pairs": "a", "target": "b"}, "both --pairs and --source/--target given"),
        ({"pairs": "a", "columns": "text=1,label=2"}, "expected source=COLUMN,target=COLUMN"),
        ({"labeled": "a", "columns": "source=1,target=2"}, "expected text=COLUMN,label=COLUMN"),
    ],
)
def test_inconsistent_pair_file_arguments_raise_input_error(folder, names, words):
    with pytest.raises(InputError, match=words):
        PairFiles(**names)
