"""`keras-seq translate --prefixes`: a forced prefix for each line's translation."""

import pytest

SOURCE = b"2 January 2026\n\n5 maart 1999\n"


@pytest.mark.slow
def test_each_translation_begins_with_the_prefix_of_its_line(tiny_run, tmp_path, keras_seq_command):
    prefixes = tmp_path / "prefixes"
    prefixes.write_text("2026-\nno matter\n\n", encoding="utf-8")
    free = keras_seq_command("translate", tiny_run, "-", stdin=SOURCE)
    begun = keras_seq_command("translate", tiny_run, "-", "--prefixes", prefixes, stdin=SOURCE)
    assert begun.code == 0, begun.err
    assert begun.lines[0].startswith("2026-")
    # A blank line stays blank; a line with a blank prefix is translated as without prefixes.
    assert begun.lines[1:] == free.lines[1:]
    fixed = keras_seq_command("translate", tiny_run, "2 January 2026", "--prefix", "2026-")
    assert fixed.lines == begun.lines[:1]


@pytest.mark.parametrize(
    ("written", "said"),
    [("a\n", "has fewer lines than the input"), ("a\n" * 4, "has more lines than the input (3)")],
)
def test_number_of_prefixes_must_equal_number_of_lines(
    tiny_run, tmp_path, keras_seq_command, written, said
):
    prefixes = tmp_path / "prefixes"
    prefixes.write_text(written, encoding="utf-8")
    refused = keras_seq_command("translate", tiny_run, "-", "--prefixes", prefixes, stdin=SOURCE)
    assert (refused.code, refused.error) == (2, f"{prefixes}: {said}")


def test_translate_rejects_incompatible_prefix_options(tiny_run, tmp_path, keras_seq_command):
    prefixes = tmp_path / "prefixes"
    prefixes.write_text("a\n", encoding="utf-8")
    for more, said in (
        (["--engine", "ctranslate2"], "not with --engine ctranslate2"),
        (["--input", prefixes, "--output-dir", tmp_path], "not with --input"),
        (["x", "--prefix", "a"], "not with --prefixes"),
    ):
        refused = keras_seq_command("translate", tiny_run, *more, "--prefixes", prefixes)
        assert refused.code == 2 and refused.error.endswith(said)
    none = keras_seq_command("translate", tiny_run, "x", "--prefixes", tmp_path / "none")
    assert none.code == 2 and str(tmp_path / "none") in none.error
    long = keras_seq_command("translate", tiny_run, "x", "--prefix", "0 " * 40)
    assert long.code == 2 and "expected fewer than search.max_length (12)" in long.error
