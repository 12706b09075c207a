"""`keras-seq translate` on pipes and large files: the order of reads and writes, and progress."""

import io
import os
import pty
import subprocess
import sys
import threading

import pytest

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes and terminals of POSIX")


class Pipe:
    """A pipe that replaces a standard stream of the command, with both of its ends."""

    def __init__(self):
        read, write = os.pipe()
        self.reader = os.fdopen(read, "rb")
        self.writer = os.fdopen(write, "wb")


def line_of(stream, seconds=60):
    """Returns the next line, which must arrive before more input is written."""
    found = []
    thread = threading.Thread(target=lambda: found.append(stream.readline()), daemon=True)
    thread.start()
    thread.join(seconds)
    assert found, "no answer before the next line"
    return found[0]


@pytest.mark.process
@pytest.mark.parametrize("options", [[], ["--format", "tsv"]])
def test_stream_translates_a_pipe_line_by_line(tiny_run, monkeypatch, keras_seq_command, options):
    from keras_seq.inference.translator import Translator
    from keras_seq_cli.main import main

    translator = Translator.load(tiny_run)
    monkeypatch.setattr(Translator, "load", staticmethod(lambda *_, **__: translator))
    lines = ["5 mai 1999", "", "March 5, 2021", "6 mai 1999"]
    text = "".join(f"{line}\n" for line in lines)
    expected = keras_seq_command("translate", tiny_run, *options, stdin=text.encode()).out
    given, answers = Pipe(), Pipe()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(given.reader, encoding="utf-8"))
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(answers.writer, encoding="utf-8"))
    codes = []
    thread = threading.Thread(
        target=lambda: codes.append(main(["translate", str(tiny_run), "--stream", *options])),
        daemon=True,
    )
    thread.start()
    found = [line_of(answers.reader)] if options else []
    for line in lines:
        given.writer.write(f"{line}\n".encode())
        given.writer.flush()
        found.append(line_of(answers.reader))
    given.writer.close()
    thread.join(60)
    assert codes == [0]
    for stream in (sys.stdin, sys.stdout, answers.reader):
        stream.close()
    # Only translations are compared: the last digit of a score depends on the batch size.
    assert [line.split(b"\t")[-1] for line in found] == [
        line.split(b"\t")[-1] for line in expected.splitlines(keepends=True)
    ]


class Counted(io.RawIOBase):
    """Input that records at each read how many lines are read but not answered yet."""

    def __init__(self, lines, written):
        self._lines = iter(lines)
        self._written = written
        self.ahead = []
        self._given = 0

    def readable(self):
        return True

    def readinto(self, buffer):
        self.ahead.append(self._given - self._written())
        line = next(self._lines, b"")
        self._given += bool(line)
        buffer[: len(line)] = line
        return len(line)


class Output(io.RawIOBase):
    """Output that counts its lines."""

    lines = 0

    def writable(self):
        return True

    def write(self, data):
        self.lines += bytes(data).count(b"\n")
        return len(data)


def test_reading_does_not_run_ahead_of_writing(tiny_run, monkeypatch, without_tensorflow):
    """At most one chunk of 64 batches is in memory."""
    from keras_seq_cli.main import main

    output = Output()
    source = Counted((b" \n" for _ in range(5000)), lambda: output.lines)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BufferedReader(source), encoding="utf-8"))
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BufferedWriter(output)))
    assert main(["translate", str(tiny_run), "--batch-size", "16"]) == 0
    assert output.lines == 5000
    assert max(source.ahead) <= 64 * 16 < 1100
    assert min(source.ahead[1:]) >= 0


@pytest.mark.usefixtures("without_tensorflow")
def test_progress_option_reports_lines_without_a_terminal(keras_seq_command, tiny_run, tmp_path):
    (tmp_path / "in").write_text("\n" * 1234)
    outcome = keras_seq_command("translate", tiny_run, tmp_path / "in", "--progress")
    assert outcome.lines == [""] * 1234
    assert outcome.err.startswith("1,234 of 1,234 lines, ") and outcome.err.endswith(" lines/s\n")
    outcome = keras_seq_command("translate", tiny_run, "--progress", stdin=b"\n\n")
    assert outcome.err.startswith("2 lines, ")
    assert keras_seq_command("translate", tiny_run, stdin=b"\n").err == ""
    assert keras_seq_command("translate", tiny_run, "--no-progress", stdin=b"\n").err == ""


@pytest.mark.process
def test_terminal_shows_progress_and_stdout_stays_clean(tiny_run):
    """Runs the command in a process whose stderr is a terminal."""
    terminal, side = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "keras_seq", "translate", tiny_run, "--beam-size", "1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=side,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "100"},
    )
    os.close(side)
    said = []

    def read():
        # Linux raises an error when the other side of the terminal is closed.
        try:
            while data := os.read(terminal, 4096):
                said.append(data)
        except OSError:
            pass

    reading = threading.Thread(target=read)
    reading.start()
    out, _ = process.communicate(b"5 mai 1999\n\n6 mai 1999\n", timeout=120)
    reading.join(30)
    os.close(terminal)
    text = b"".join(said).decode()
    assert process.returncode == 0, text
    assert out.count(b"\n") == 3 and b"\x1b" not in out
    assert f"loading {tiny_run} ..." in text
    assert "3 lines" in text and "lines/s" in text
    assert "oneDNN" not in text and "Traceback" not in text


def test_progress_is_shown_only_where_it_does_not_mix_with_output(monkeypatch):
    from keras_seq_cli.progress import shows_progress

    class Stream(io.StringIO):
        def __init__(self, terminal):
            super().__init__()
            self.isatty = lambda: terminal

    for err, out, output, expected in (
        (True, False, None, True),
        (True, True, None, False),
        (True, True, "file", True),
        (False, False, None, False),
    ):
        monkeypatch.setattr("sys.stderr", Stream(err))
        monkeypatch.setattr("sys.stdout", Stream(out))
        assert shows_progress(None, output) == expected
        assert shows_progress(True, output) and not shows_progress(False, output)
