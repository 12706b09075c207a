"""`keras-seq translate`: line N in, line N out."""

import functools
import gzip
import os
import shutil
import subprocess
import sys
import time

import pytest

from keras_seq.run import Run
from keras_seq.settings import load_settings

NASTY = [
    "March 5, 2021",
    "",
    "5. März\r2021",
    "5\u2028mars\u20292021",
    "   ",
    "5\u0085mars",
    "5\x0bmars\x0c\x1c2021",
    "\t",
    "a\x00b",
    "😀 ᏣᎳᎩ </s> <pad> <s>",
    "e\u0301 and \u00e9",
    "last",
]


@pytest.fixture
def untrained(tmp_path):
    """A run with a checkpoint whose weights fit no model."""
    import numpy as np

    tiny = {"num_encoder_layers": 1, "num_decoder_layers": 1, "units": 1, "num_heads": 1}
    run = Run.create(
        tmp_path / "untrained",
        load_settings(
            overrides={"model.feedforward_units": 1, **{f"model.{k}": v for k, v in tiny.items()}}
        ),
    )
    run.save_checkpoint(1, {"weights": {"a": np.zeros(99, np.float32)}}, {})
    return run.path


# Tests without TensorFlow


@pytest.mark.usefixtures("without_tensorflow")
def test_no_lines_and_blank_lines_need_no_tensorflow(keras_seq_command, untrained):
    assert (keras_seq_command("translate", untrained).code) == 0
    for text, lines in ((b"", []), (b"\n", [""]), (b"\n \n\t\r\n\xe3\x80\x80", [""] * 4)):
        outcome = keras_seq_command("translate", untrained, stdin=text)
        assert (outcome.code, outcome.lines) == (0, lines)


@pytest.mark.usefixtures("without_tensorflow")
def test_a_file_named_gz_is_compressed(keras_seq_command, untrained, tmp_path):
    (tmp_path / "in").write_bytes(b"\n \n")
    outcome = keras_seq_command("translate", untrained, tmp_path / "in", "-o", tmp_path / "out.gz")
    assert outcome.code == 0, outcome.err
    assert gzip.decompress((tmp_path / "out.gz").read_bytes()) == b"\n\n"


@pytest.mark.usefixtures("without_tensorflow")
def test_translate_rejects_unusable_runs_files_and_options(keras_seq_command, untrained, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad.gz").write_bytes(b"text")
    (tmp_path / "a.tflite").write_bytes(b"text")
    (tmp_path / "in").write_text("a\n")
    for arguments, words in (
        (["absent", "hi"], "absent: no such run directory"),
        ([tmp_path / "empty", "hi"], "neither a run directory of keras-seq nor an export"),
        ([tmp_path / "in", "hi"], "a file, expected a run directory"),
        ([tmp_path / "a.tflite", "hi"], f"use python -m keras_seq.litert {tmp_path}/a.tflite"),
        ([untrained, "absent.txt", "-o", tmp_path / "out"], "absent.txt: no such file"),
        ([untrained, tmp_path], "is a directory"),
        ([untrained, tmp_path / "bad.gz"], "not a valid gzip file"),
        ([untrained, tmp_path / "in", "-o", tmp_path], "cannot be written"),
        ([untrained, tmp_path / "in", "-o", tmp_path / "no" / "out"], "cannot be written"),
        ([untrained, tmp_path / "in", "-o", f"{tmp_path}/new/"], "cannot be written"),
        ([untrained, tmp_path / "in", "-o", tmp_path / "in"], "are the same file"),
        ([untrained, "hi", "--beam-size", "0"], "search.beam_size: received 0"),
        ([untrained, "hi", "--n-best", "9"], "expected at most search.beam_size (5)"),
        ([untrained, "hi", "--length-normalization", "mean"], "'average', 'gnmt' or 'none'"),
    ):
        outcome = keras_seq_command("translate", *arguments)
        assert (outcome.code, outcome.out) == (2, b""), arguments
        assert words in outcome.error
    assert not (tmp_path / "out").exists()
    assert (tmp_path / "in").read_text() == "a\n"


@pytest.mark.usefixtures("without_tensorflow")
def test_translate_rejects_a_run_without_a_checkpoint(keras_seq_command, tmp_path):
    Run.create(tmp_path / "new", load_settings())
    outcome = keras_seq_command("translate", tmp_path / "new", "hi")
    assert outcome.code == 2
    assert "no checkpoint, the training has not saved one yet" in outcome.error


# Tests with a model


@pytest.fixture(scope="module")
def load():
    from keras_seq.inference.translator import Translator

    return functools.cache(Translator.load)


@pytest.fixture
def translate(keras_seq_command, tiny_run, load, monkeypatch):
    """Runs `keras-seq translate` on the tiny run, which is loaded and compiled only once."""
    from keras_seq.inference.translator import Translator

    monkeypatch.setattr(Translator, "load", staticmethod(load))
    return functools.partial(keras_seq_command, "translate", tiny_run)


def test_line_n_in_is_line_n_out(translate):
    text = "\n".join(NASTY)
    outcome = translate(stdin=text.encode())
    assert outcome.code == 0
    assert len(outcome.lines) == len(NASTY)
    for line, found in zip(NASTY, outcome.lines, strict=True):
        if not line.strip():
            assert found == ""
    # A line has the same translation alone and among other lines.
    for number in (0, 9, 11):
        alone = translate(stdin=f"{NASTY[number]}\n".encode())
        assert alone.lines == [outcome.lines[number]]


def test_file_stdin_argument_and_output_file_translations_agree(translate, tmp_path):
    lines = ["March 5, 2021", "", "6 mai 1999"]
    text = "".join(f"{line}\n" for line in lines).encode()
    (tmp_path / "in").write_bytes(text)
    expected = translate(stdin=text).lines
    assert translate(tmp_path / "in").lines == expected
    assert translate("-", stdin=text).lines == expected
    outcome = translate(tmp_path / "in", "-o", tmp_path / "out")
    assert (outcome.code, outcome.out) == (0, b"")
    assert (tmp_path / "out").read_bytes() == "".join(f"{line}\n" for line in expected).encode()
    for line, found in zip(lines, expected, strict=True):
        assert translate(line).lines == [found]


def test_invalid_utf_8_is_replaced_with_one_warning(translate):
    outcome = translate(stdin=b"a\n\xff\xfe\n\nb\xc3\n\xffc\n")
    assert outcome.code == 0
    assert len(outcome.lines) == 5
    assert outcome.err.count("invalid UTF-8") == 1
    assert "standard input:2: invalid UTF-8" in outcome.err


def test_bom_and_crlf_do_not_reach_the_model(translate):
    plain = translate(stdin=b"5 mai 1999\n\n6 mai 1999\n")
    odd = translate(stdin=b"\xef\xbb\xbf5 mai 1999\r\n\r\n6 mai 1999\r\n")
    assert odd.lines == plain.lines
    assert odd.err.count("byte order mark") == odd.err.count("CRLF") == 1


def test_long_line_is_truncated_in_bounded_time_and_reported(translate):
    translate("warm up")
    for line in ("word " * 200_000, "w" * 1_000_000):
        start = time.monotonic()
        outcome = translate(stdin=f"a\n{line}\nb\n".encode())
        assert time.monotonic() - start < 10
        assert len(outcome.lines) == 3
        assert "cut short" in outcome.err


def test_scores_and_n_best_columns_contain_the_best_translation(translate):
    text = b"5 mai 1999\n\n6 mai 1999\n"
    best = translate(stdin=text).lines
    scored = translate("--scores", stdin=text).lines
    assert [line.split("\t")[1] for line in scored] == best
    assert all(float(line.split("\t")[0]) <= 0 for line in scored)
    outcome = translate("--n-best", "2", stdin=text)
    rows = [line.split("\t") for line in outcome.lines]
    assert [row[0] for row in rows] == ["1", "1", "2", "3", "3"]
    assert [rows[0][2], rows[2][2], rows[3][2]] == best
    assert float(rows[0][1]) >= float(rows[1][1])


@pytest.mark.process
@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_closed_output_pipe_is_not_an_error(tiny_run):
    process = subprocess.Popen(
        [sys.executable, "-m", "keras_seq", "translate", tiny_run],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()
    _, error = process.communicate(b"5 mai 1999\n" * 10)
    # A model trained for four updates may reach the length limit, which causes a warning.
    lines = [line for line in error.split(b"\n") if b" cut short at the longest " not in line]
    assert (process.returncode, lines) == (0, [b""])


def test_damaged_checkpoint_is_skipped_with_a_warning(keras_seq_process, tiny_run, tmp_path):
    shutil.copytree(tiny_run, tmp_path / "run")
    run = Run.open(tmp_path / "run")
    best = run.checkpoints.best_step
    weights = run.path / "checkpoints" / f"step-{best:08d}" / "weights.safetensors"
    os.truncate(weights, weights.stat().st_size // 2)
    outcome = keras_seq_process("translate", run.path, "5 mai 1999")
    assert (outcome.code, len(outcome.lines)) == (0, 1)
    assert f"step-{best:08d}: damaged: weights.safetensors" in outcome.err


# Tests with CTranslate2


@pytest.fixture
def by_ctranslate2(keras_seq_command, tiny_run, without_tensorflow):
    """Translates with the tiny run and CTranslate2, while importing Keras raises an error."""
    pytest.importorskip("ctranslate2", reason="the extra ctranslate2 is not installed")
    return functools.partial(keras_seq_command, "translate", tiny_run, "--engine", "ctranslate2")


def test_ctranslate2_translations_equal_those_of_tensorflow(translate, request):
    text = "\n".join(NASTY).encode()
    expected = translate("--scores", "--beam-size", "1", stdin=text)
    by_ctranslate2 = request.getfixturevalue("by_ctranslate2")
    outcome = by_ctranslate2("--scores", "--beam-size", "1", stdin=text)
    assert (outcome.code, outcome.err) == (0, expected.err)
    for line, other in zip(outcome.lines, expected.lines, strict=True):
        (score, text), (other_score, other_text) = line.split("\t"), other.split("\t")
        assert text == other_text
        assert float(score) == pytest.approx(float(other_score), abs=1.1e-4)


def test_ctranslate2_writes_n_best_translations(by_ctranslate2):
    outcome = by_ctranslate2("--n-best", "2", stdin=b"5 mai 1999\n\n6 mai 1999\n")
    rows = [line.split("\t") for line in outcome.lines]
    assert [row[0] for row in rows] == ["1", "1", "2", "3", "3"]
    assert rows[2] == ["2", "0.0000", ""]


def test_ctranslate2_computes_in_int8(by_ctranslate2):
    ctranslate2 = pytest.importorskip("ctranslate2")
    if "int8" not in ctranslate2.get_supported_compute_types("cpu"):
        pytest.skip("CTranslate2 has no int8 on this processor")
    exact, rounded = (
        by_ctranslate2("--scores", "--quantize", quantize, "5 mai 1999").lines[0].split("\t")[0]
        for quantize in ("float32", "int8")
    )
    assert exact != rounded
    assert float(exact) == pytest.approx(float(rounded), abs=0.5)


def test_ctranslate2_rejects_unsupported_options(by_ctranslate2, tmp_path):
    (tmp_path / "out").write_text("earlier\n")
    (tmp_path / "in").write_text("a\n")
    for arguments, words in (
        (["--length-normalization", "gnmt"], 'CTranslate2 has no "gnmt", expected "average"'),
        (["--quantize", "int9"], "quantize: received 'int9', expected"),
        (["--beam-size", "0"], "search.beam_size: received 0"),
    ):
        outcome = by_ctranslate2(tmp_path / "in", "-o", tmp_path / "out", *arguments)
        assert (outcome.code, outcome.out) == (2, b"")
        assert words in outcome.error
    assert (tmp_path / "out").read_text() == "earlier\n"


@pytest.mark.usefixtures("by_ctranslate2")
def test_ctranslate2_refuses_the_weights_of_another_model(keras_seq_command, tiny_run, tmp_path):
    shutil.copytree(tiny_run, tmp_path / "run")
    run = Run.open(tmp_path / "run")
    wider = load_settings(base=run.settings.to_dict(), overrides={"model.feedforward_units": 33})
    run.update_settings(wider)
    outcome = keras_seq_command("translate", run.path, "hi", "--engine", "ctranslate2")
    assert outcome.code == 2
    assert "does not belong to this model" in outcome.error


@pytest.mark.usefixtures("without_tensorflow")
def test_unavailable_or_unknown_engine_is_an_error(keras_seq_command, untrained, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    for arguments, words in (
        (["--engine", "ctranslate2"], "python -m pip install 'keras-seq[ctranslate2]'"),
        (["--engine", "marian"], "'marian' is not one of 'tensorflow', 'ctranslate2'"),
        (["--quantize", "int8"], "needs --engine ctranslate2"),
    ):
        outcome = keras_seq_command("translate", untrained, "hi", *arguments)
        assert (outcome.code, outcome.out) == (2, b"")
        assert words in outcome.error
