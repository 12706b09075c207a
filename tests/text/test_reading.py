"""Reading text files, including unusual and damaged ones."""

import gzip
import os
import subprocess
import sys
import tracemalloc
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keras_seq.text import (
    InputError,
    check_readable,
    count_lines,
    read_lines,
    read_pairs,
    read_table,
)
from keras_seq.text.reading import MAX_LINE_BYTES


@pytest.fixture
def make(tmp_path):
    def write(name: str, content: bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content)
        return path

    return write


def failure(action) -> str:
    with pytest.raises(InputError) as caught:
        action()
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize(
    "character",
    ["\r", "\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x00"],
    ids=["CR", "U+2028", "U+2029", "U+0085", "VT", "FF", "FS", "GS", "RS", "NUL"],
)
def test_only_a_newline_ends_a_line(make, character):
    lines = [f"one{character}still one", f"{character}two", f"three{character}!"]
    text = "\n".join(lines) + "\n"
    for path in (
        make("a.txt", text.encode()),
        make("a.txt.gz", gzip.compress(text.encode())),
    ):
        assert list(read_lines(path)) == lines
        assert count_lines(path) == 3


@given(st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]))))
def test_read_lines_returns_the_lines_that_were_written(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("lines") / "a.txt"
    # A CR at the end of a line and a BOM at the start of the file are not part of the text.
    kept = [line.rstrip("\r").lstrip("\ufeff") for line in lines]
    path.write_bytes("".join(line + "\n" for line in kept).encode())
    assert list(read_lines(path)) == kept


def test_the_last_line_needs_no_line_end(make):
    assert list(read_lines(make("a.txt", b"one\ntwo"))) == ["one", "two"]
    assert list(read_lines(make("b.txt", b"one\ntwo\n"))) == ["one", "two"]
    assert list(read_lines(make("c.txt", b"one\n\n"))) == ["one", ""]


def test_an_empty_file_has_no_lines(make):
    path = make("a.txt", b"")
    assert list(read_lines(path)) == []
    assert count_lines(path) == 0
    check_readable(path)


def test_crlf_is_stripped_with_one_notice(make):
    notices = []
    path = make("a.txt", b"zero\none\r\ntwo\r\n\r\nlone\rhere\r")
    assert list(read_lines(path, notice=notices.append)) == [
        "zero",
        "one",
        "two",
        "",
        "lone\rhere\r",
    ]
    assert len(notices) == 1
    assert notices[0].startswith(f"{path}:2: ") and "CRLF" in notices[0]


def test_a_byte_order_mark_is_stripped_with_one_notice(make):
    notices = []
    path = make("a.txt", "\ufeffone\n\ufefftwo\n".encode())
    assert list(read_lines(path, notice=notices.append)) == ["one", "\ufefftwo"]
    assert notices == [f"{path}: byte order mark stripped"]
    only = make("b.txt", "\ufeff".encode())
    assert list(read_lines(only)) == [""]


def test_invalid_utf8_is_refused_with_its_line(make):
    path = make("a.txt", b"fine\ncaf\xe9\nfine\n")
    message = failure(lambda: list(read_lines(path)))
    assert message == f"{path}:2: invalid UTF-8 (byte 0xe9 at position 4)"


def test_lines_before_the_invalid_one_are_handed_out(make):
    lines = read_lines(make("a.txt", b"fine\n\xff\n"))
    assert next(lines) == "fine"
    with pytest.raises(InputError, match=":2: invalid UTF-8"):
        next(lines)


def test_invalid_utf8_is_replaced_with_one_notice(make):
    notices = []
    path = make("a.txt", b"fine\n\xff\xfe\nfine\n\x80x\n")
    lines = list(read_lines(path, errors="replace", notice=notices.append))
    assert lines == ["fine", "\ufffd\ufffd", "fine", "\ufffdx"]
    assert len(notices) == 1 and notices[0].startswith(f"{path}:2: invalid UTF-8")


def test_encoded_surrogates_are_invalid(make):
    path = make("a.txt", b"\xed\xa0\x80\n")
    assert ":1: invalid UTF-8" in failure(lambda: list(read_lines(path)))


@pytest.mark.parametrize(
    "content, hint",
    [(gzip.compress(b"a\n"), ".gz"), ("a\n".encode("utf-16"), "UTF-16")],
    ids=["gzip", "UTF-16"],
)
def test_gzip_or_utf16_content_in_a_text_file_is_named_in_the_error(make, content, hint):
    path = make("a.txt", content)
    message = failure(lambda: list(read_lines(path)))
    assert message.startswith(f"{path}:1: invalid UTF-8") and hint in message


def test_read_lines_refuses_an_unknown_errors_value(make):
    with pytest.raises(ValueError, match="'ignore'"):
        read_lines(make("a.txt", b""), errors="ignore")


def test_gzip_members_are_read_one_after_the_other(make):
    content = gzip.compress(b"one\ntw") + gzip.compress(b"o\nthree\n") + gzip.compress(b"")
    assert list(read_lines(make("a.gz", content))) == ["one", "two", "three"]


def many_lines() -> bytes:
    return b"".join(b"line %d\n" % number for number in range(50_000))


@pytest.mark.parametrize("share", [0, 1, 50, 99])
def test_a_truncated_gzip_file_is_refused(make, share):
    whole = gzip.compress(many_lines())
    path = make("a.gz", whole[: len(whole) * share // 100])
    message = failure(lambda: list(read_lines(path)))
    assert message.startswith(f"{path}: ") and "truncated" in message
    assert "truncated" in failure(lambda: count_lines(path))


def test_a_gzip_file_without_its_trailer_is_refused(make):
    path = make("a.gz", gzip.compress(many_lines())[:-8])
    assert "truncated" in failure(lambda: list(read_lines(path)))


def test_a_gzip_file_with_a_wrong_checksum_is_refused(make):
    content = bytearray(gzip.compress(b"one\ntwo\n"))
    content[-6] ^= 1
    path = make("a.gz", bytes(content))
    assert "not a valid gzip file" in failure(lambda: list(read_lines(path)))


def test_a_gzip_file_with_damaged_data_is_refused(make):
    content = bytearray(gzip.compress(os.urandom(5000)))
    content[10] = 0xFF
    path = make("a.gz", bytes(content))
    assert "not a valid gzip file" in failure(lambda: list(read_lines(path, errors="replace")))


def test_a_plain_file_named_gz_is_refused(make):
    path = make("a.gz", b"one\ntwo\n")
    for action in (lambda: list(read_lines(path)), lambda: check_readable(path)):
        message = failure(action)
        assert message.startswith(f"{path}: ") and "not a valid gzip file" in message


@pytest.mark.parametrize(
    "action",
    [
        lambda path: list(read_lines(path)),
        lambda path: list(read_table(path)),
        lambda path: list(read_pairs(path, path)),
        count_lines,
        check_readable,
    ],
    ids=["lines", "tsv", "pairs", "count", "check"],
)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_missing_file_directory_and_link_loop_raise_input_error(tmp_path, action, suffix):
    missing = tmp_path / f"missing{suffix}"
    assert failure(lambda: action(missing)) == f"{missing}: no such file"
    folder = tmp_path / f"folder{suffix}"
    folder.mkdir()
    message = failure(lambda: action(folder))
    assert message == f"{folder}: is a directory, expected a text file"
    loop = tmp_path / f"loop{suffix}"
    loop.symlink_to(loop)
    assert failure(lambda: action(loop)).startswith(f"{loop}: cannot be read: ")
    assert "cannot be read" in failure(lambda: action("a\0b" + suffix))


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions of POSIX")
def test_unreadable_file_is_reported_as_permission_denied(make):
    path = make("a.txt", b"one\n")
    path.chmod(0)
    is_root = os.geteuid() == 0
    # Root can read every file, so switch to the user nobody for this check.
    if is_root:
        os.seteuid(65534)
    try:
        for action in (lambda: list(read_lines(path)), lambda: check_readable(path)):
            assert failure(action) == f"{path}: permission denied"
    finally:
        if is_root:
            os.seteuid(0)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="a file that fails when read")
def test_device_read_error_raises_input_error_in_one_line():
    assert failure(lambda: list(read_lines("/proc/self/mem"))).startswith("/proc/self/mem: ")
    assert failure(lambda: check_readable("/proc/self/mem")).startswith("/proc/self/mem: ")


def test_check_readable_consumes_nothing_from_a_pipe():
    reader, writer = os.pipe()
    os.write(writer, b"one\ntwo\n")
    os.close(writer)
    path = f"/dev/fd/{reader}"
    if not os.path.exists(path):
        pytest.skip("no names for open files here")
    check_readable(path)
    assert list(read_lines(path)) == ["one", "two"]
    os.close(reader)


PRINT_LINES = """
import sys
from keras_seq.text import check_readable, read_lines
check_readable("-")
for line in read_lines("-", errors="replace", notice=lambda text: print(text, file=sys.stderr)):
    print(ascii(line))
"""


def test_dash_reads_standard_input():
    found = subprocess.run(
        [sys.executable, "-c", PRINT_LINES],
        input=b"one\r\n\ncaf\xff\xe9!\nlast",
        capture_output=True,
        check=True,
    )
    assert found.stdout.decode().split() == ["'one'", "''", "'caf\\ufffd\\ufffd!'", "'last'"]
    assert [line.split(": ")[0] for line in found.stderr.decode().splitlines()] == [
        "standard input:1",
        "standard input:3",
    ]


def test_one_megabyte_line_is_read_as_one_line(make):
    line = "wort " * 200_000
    path = make("a.gz", gzip.compress(f"{line}\nshort\n".encode()))
    assert [len(text) for text in read_lines(path)] == [1_000_000, 5]


@pytest.mark.slow
@pytest.mark.parametrize("action", [lambda path: list(read_lines(path)), count_lines])
def test_a_line_without_an_end_is_refused_before_it_fills_the_memory(make, action):
    """A gzip file of 250 kB, whose second line has 256 MB."""
    compressor = zlib.compressobj(wbits=31)
    content = compressor.compress(b"a dog\n")
    content += b"".join(compressor.compress(bytes(1 << 20)) for _ in range(256))
    path = make("bomb.gz", content + compressor.flush())
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"bomb.gz:2: more than 16,777,216 bytes without a li"):
            action(path)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_a_line_of_the_largest_size_is_read(make):
    path = make("a", b"b" * MAX_LINE_BYTES + b"\n")
    with pytest.raises(InputError, match="a:1: more than"):
        next(read_lines(path))
    path = make("a", b"b" * (MAX_LINE_BYTES - 1) + b"\nc")
    assert [len(line) for line in read_lines(path)] == [MAX_LINE_BYTES - 1, 1]


@pytest.mark.slow
@pytest.mark.weekly
def test_memory_does_not_grow_with_the_file(tmp_path):
    path = tmp_path / "a.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(400):
            file.write(b"a line of text that is read and forgotten\n" * 2000)
    tracemalloc.start()
    assert sum(1 for _ in read_lines(path)) == 800_000
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The text has 34 MB; the buffers of the reader and gzip need a few MB.
    assert peak < 8_000_000


def test_read_pairs_pairs_files_line_by_line(make):
    source, target = make("a.en", b"a\n\nb\n"), make("a.de.gz", gzip.compress(b"A\nX\n\n"))
    assert list(read_pairs(source, target)) == [("a", "A"), ("", "X"), ("b", "")]


@pytest.mark.parametrize("source_count, target_count", [(3, 5), (5, 3), (0, 2), (2, 0), (3, 4)])
def test_unequal_files_are_refused_with_both_counts(make, source_count, target_count):
    source = make("a.en", b"x\n" * source_count)
    target = make("a.de", b"y\n" * target_count)
    pairs = read_pairs(source, target)
    for _ in range(min(source_count, target_count)):
        assert next(pairs) == ("x", "y")
    message = failure(lambda: next(pairs))
    assert f"{source} has {source_count} lines" in message
    assert f"{target} has {target_count}" in message


def test_read_pairs_gives_one_notice_per_file(make):
    notices = []
    source, target = make("a.en", b"x\r\n" * 3), make("a.de", b"y\r\n" * 3)
    list(read_pairs(source, target, notice=notices.append))
    assert [notice.split(":")[0] for notice in notices] == [str(source), str(target)]


def test_read_pairs_refuses_standard_input_for_both_sides():
    assert "standard input" in failure(lambda: read_pairs("-", "-"))


def test_read_tsv_splits_each_line_at_its_tab(make):
    path = make("a.tsv", b'a "quoted\tA"\n\tempty source\nempty target\t\r\n')
    assert list(read_table(path)) == [
        ('a "quoted', 'A"'),
        ("", "empty source"),
        ("empty target", ""),
    ]


@pytest.mark.parametrize("tabs, found", [(0, "no tab"), (2, "2 tabs"), (3, "3 tabs")])
def test_tsv_line_with_wrong_number_of_tabs_is_refused_with_its_number(make, tabs, found):
    path = make("a.tsv", b"a\tb\n" + b"\t".join([b"x"] * (tabs + 1)) + b"\n")
    message = failure(lambda: list(read_table(path)))
    assert message.startswith(f"{path}:2: {found}, expected one")


def test_files_are_closed_when_a_reader_is_dropped(make):
    # A file that stays open causes a ResourceWarning, which fails the test.
    path = make("a.gz", gzip.compress(b"a\nb\n"))
    lines = read_lines(path)
    next(lines)
    del lines
    pairs = read_pairs(path, path)
    next(pairs)
    del pairs
