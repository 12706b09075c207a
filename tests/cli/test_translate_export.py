"""`keras-seq translate` with an export instead of a run."""

import functools
import json
import os
import shutil
import subprocess
import sys
import time

import pytest

from keras_seq.run import Run

TEXT = "\n".join(
    ["March 5, 2021", "", "5. März\r2021", "   ", "a\x00b", "5\u2028mars", "😀 </s>", "6 mai 1999"]
).encode()


@pytest.fixture(scope="module")
def load():
    from keras_seq.inference.translator import Translator

    return functools.cache(Translator.load)


@pytest.fixture
def by_run(keras_seq_command, tiny_run, load, monkeypatch):
    """Translates with the run; prints two translations per line, as `tiny_export` does."""
    from keras_seq.inference.translator import Translator

    monkeypatch.setattr(Translator, "load", staticmethod(load))
    return functools.partial(keras_seq_command, "translate", tiny_run, "--n-best", "2")


@pytest.fixture
def by_export(keras_seq_command, tiny_export):
    return functools.partial(keras_seq_command, "translate", tiny_export)


def numbers_apart(lines):
    """Splits lines into columns and rounds scores to three digits; the fourth may differ."""
    rows = [line.split("\t") for line in lines]
    return [
        [f"{float(c):.3f}" if c.count(".") == 1 and c[:1] == "-" else c for c in row]
        for row in rows
    ]


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--format", "tsv"], ["--batch-size", "3"]])
def test_translate_with_an_export_writes_what_the_run_writes(by_run, by_export, options):
    expected, found = by_run(*options, stdin=TEXT), by_export(*options, stdin=TEXT)
    assert (found.code, found.err) == (0, expected.err)
    assert numbers_apart(found.lines) == numbers_apart(expected.lines)
    assert len(found.lines) > len(TEXT.split(b"\n"))


def test_jsonl_of_an_export_equals_that_of_the_run_without_tokens(by_run, by_export):
    def objects(outcome, digits=3):
        found = [json.loads(line) for line in outcome.lines]
        for one in found:
            for translation in one["translations"]:
                translation["score"] = round(translation["score"], digits)
        return found

    expected = objects(by_run("--format", "jsonl", stdin=TEXT))
    for one in expected:
        for translation in one["translations"]:
            assert translation.pop("tokens")
    assert objects(by_export("--format", "jsonl", stdin=TEXT)) == expected


def test_ways_to_give_text_and_to_name_an_export_agree(
    by_export, keras_seq_command, tmp_path, tiny_export
):
    text = b"March 5, 2021\n\n6 mai 1999\n"
    (tmp_path / "in").write_bytes(text)
    expected = by_export(stdin=text).lines
    assert [line.split("\t")[0] for line in expected] == ["1", "1", "2", "3", "3"]
    assert by_export(tmp_path / "in").lines == expected
    assert by_export("-", stdin=text).lines == expected
    assert keras_seq_command("translate", tiny_export / "1", stdin=text).lines == expected
    outcome = by_export(tmp_path / "in", "-o", tmp_path / "out")
    assert (outcome.code, outcome.out) == (0, b"")
    assert (tmp_path / "out").read_bytes() == "".join(f"{line}\n" for line in expected).encode()
    assert by_export("March 5, 2021").lines == expected[:2]


def test_bad_text_is_reported_the_same_for_export_and_run(by_run, by_export, tmp_path):
    text = b"\xef\xbb\xbfa\r\n\xff\xfe\r\n\r\nb\xc3"
    assert by_export(stdin=text).err == by_run(stdin=text).err
    for arguments in (
        ["absent.txt", "-o", tmp_path / "out"],
        [tmp_path],
        ["hi", "--batch-size", "0"],
    ):
        expected, found = by_run(*arguments), by_export(*arguments)
        assert (found.code, found.error) == (2, expected.error)


def test_long_line_is_truncated_in_bounded_time_and_reported(by_export):
    by_export("warm up")
    start = time.monotonic()
    outcome = by_export(stdin=f"a\n{'word ' * 200_000}\nb\n".encode())
    assert time.monotonic() - start < 10
    assert {line.split("\t")[0] for line in outcome.lines} == {"1", "2", "3"}
    assert "cut short" in outcome.err


def test_the_newest_version_is_taken(keras_seq_command, tiny_export, tmp_path):
    for version in ("2", "10"):
        shutil.copytree(tiny_export / "1", tmp_path / version)
    (tmp_path / ".tmp-11").mkdir()
    # Version 2 is damaged, so the command would fail if it used this version.
    (tmp_path / "2" / "saved_model.pb").write_bytes(b"\xff")
    assert keras_seq_command("translate", tmp_path, "5 mai 1999").code == 0
    (tmp_path / "11").mkdir()
    outcome = keras_seq_command("translate", tmp_path, "5 mai 1999")
    assert (outcome.code, outcome.error) == (
        2,
        f"{tmp_path}/11: not a SavedModel: it has no saved_model.pb",
    )


def test_export_batch_size_equals_the_default_of_a_run(tiny_export):
    from keras_seq.serving import SavedModelTranslator
    from keras_seq.settings import SearchSettings

    translator = SavedModelTranslator(tiny_export / "1")
    assert translator.batch_size == SearchSettings().batch_size


@pytest.mark.usefixtures("without_tensorflow")
def test_blank_lines_need_no_tensorflow(by_export):
    outcome = by_export("--format", "tsv", stdin=b"\n \n\xe3\x80\x80\n")
    assert (outcome.code, len(outcome.lines)) == (0, 4)


@pytest.mark.usefixtures("without_tensorflow")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ["--beam-size", "3"],
            "'--beam-size': is fixed in an export: export again with this option",
        ),
        (["--n-best", "2"], "'--n-best': is fixed in an export: export again"),
        (["--forbidden", "Hund"], "'--forbidden': is fixed in an export"),
        (["--ensemble", "other"], "'--ensemble': is fixed in an export: export again"),
        (
            ["--alignment", "hard"],
            "'--alignment': an export cannot do this: translate with the run",
        ),
        (["--attention", "term"], "'--attention': an export cannot do this"),
        (["--rerank", "chrf"], "'--rerank': an export cannot do this: translate with the run"),
        (["--replace-unknown"], "'--replace-unknown': an export cannot do this"),
        (["--show-beam", "x.html"], "'--show-beam': an export cannot do this"),
        (["--prefixes", "x"], "'--prefixes': an export cannot do this"),
        (["--engine", "ctranslate2"], "'--engine': an export cannot do this"),
        (["--engine", "onnx"], "'--engine': needs an ONNX export, received a SavedModel: omit"),
        (["--runner", "ray"], "'--runner': an export cannot do this"),
        (["--quantize", "int8"], "'--quantize': an export cannot do this"),
        (["--input", "x", "--output-dir", "y"], "'--input': an export cannot do this"),
        (["--output-dir", "y"], "'--output-dir': an export cannot do this"),
        (["--which", "latest"], "'--which': is fixed in an export"),
        (["--workers", "2"], "'--workers': an export cannot do this"),
        (["--overwrite"], "'--overwrite': an export cannot do this"),
    ],
)
def test_what_an_export_cannot_do_is_refused(by_export, options, words):
    outcome = by_export("hi", *options)
    assert (outcome.code, outcome.out) == (2, b"")
    assert words in outcome.error


def test_every_translate_option_is_honored_or_rejected_by_an_export(tiny_export):
    """Fails if a new option is not considered here and would be silently ignored."""
    import typer

    from keras_seq_cli.main import app
    from keras_seq_cli.output_options import OutputOptions
    from keras_seq_cli.search_options import OPTIONS
    from keras_seq_cli.translate_export import (
        ONNX_OPTIONS,
        SAVED_MODEL_OPTIONS,
        reject_options,
    )

    # An export needs no plugin.
    # tests/training/test_target_languages.py translates with an export and --to.
    known = {"run", "text", "output", "scores", "trust", "help", "import_", "to"}
    others = {
        "engine",
        "runner",
        "quantize",
        "prefixes",
        "ensemble",
        "which",
        "inputs",
        "output_dir",
        "workers",
        "overwrite",
    }
    command = typer.main.get_command(app).commands["translate"]
    shown = set(OutputOptions.__dataclass_fields__)
    assert {parameter.name for parameter in command.params} <= known | others | set(OPTIONS) | shown
    free = []
    for name in OPTIONS:
        try:
            reject_options(OutputOptions(), {name: 1}, {}, SAVED_MODEL_OPTIONS)
        except typer.BadParameter:
            continue
        free.append(name)
    assert free == ["batch_size"]
    # The runtime of an ONNX export checks all but these.
    assert set(OPTIONS) - ONNX_OPTIONS == {"forbidden", "prefix", "rerank", "candidates"}


@pytest.mark.usefixtures("without_tensorflow")
def test_directory_that_is_neither_run_nor_export_is_rejected(keras_seq_command, tmp_path):
    (tmp_path / "some" / "thing").mkdir(parents=True)
    outcome = keras_seq_command("translate", tmp_path / "some", "hi")
    assert (outcome.code, outcome.out) == (2, b"")
    assert "neither a run directory of keras-seq nor an export" in outcome.error


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("saved_model.pb", lambda content: b""),
        ("saved_model.pb", lambda content: b"\xff\xfe no graph"),
        ("saved_model.pb", lambda content: content[: len(content) // 2]),
        ("saved_model.pb", lambda content: content[:-1]),
        ("variables/variables.index", lambda content: content[: len(content) // 2]),
        ("variables/variables.data-00000-of-00001", lambda content: content[: len(content) // 2]),
        (
            "variables/variables.data-00000-of-00001",
            lambda content: content[:5000] + bytes([content[5000] ^ 1]) + content[5001:],
        ),
        ("variables/variables.data-00000-of-00001", None),
        ("variables/variables.index", None),
    ],
)
def test_damaged_export_is_reported_in_one_line(
    keras_seq_command, tiny_export, tmp_path, name, damage
):
    version = tmp_path / "1"
    shutil.copytree(tiny_export / "1", version)
    file = version / name
    if damage is None:
        file.unlink()
    else:
        file.write_bytes(damage(file.read_bytes()))
    outcome = keras_seq_command("translate", tmp_path, "5 mai 1999")
    assert (outcome.code, outcome.out) == (2, b"")
    assert outcome.error.startswith(str(version))
    assert outcome.err == f"keras-seq: {outcome.error}\n"


@pytest.mark.slow
def test_an_export_without_text_is_refused(keras_seq_command, tiny_run, tmp_path):
    from keras_seq.serving import export_saved_model

    version = export_saved_model(Run.open(tiny_run), tmp_path / "ids", ids_only=True, verify=0)
    outcome = keras_seq_command("translate", version, "5 mai 1999")
    assert (outcome.code, outcome.out) == (2, b"")
    assert (
        "exported with --ids-only: export again without this option, or translate with the run"
        in outcome.error
    )


def test_saved_model_of_another_origin_is_rejected(keras_seq_command, tmp_path):
    import tensorflow as tf

    module = tf.Module()
    module.double = tf.function(lambda x: 2 * x, input_signature=[tf.TensorSpec([None])])
    tf.saved_model.save(module, str(tmp_path / "1"), signatures={"serving_default": module.double})
    outcome = keras_seq_command("translate", tmp_path, "5 mai 1999")
    assert (outcome.code, outcome.out) == (2, b"")
    assert "not one of keras-seq export" in outcome.error


@pytest.mark.usefixtures("without_tensorflow")
def test_missing_tensorflow_error_says_what_to_install(by_export):
    from keras_seq.serving.c_library import library

    # Earlier tests have cached the library.
    library.cache_clear()
    outcome = by_export("5 mai 1999")
    assert outcome.code == 2
    assert outcome.error == "tensorflow is needed: python -m pip install tensorflow"


# Tests in a separate process


def test_translate_with_an_export_imports_neither_tensorflow_nor_keras(tiny_export):
    script = (
        "import sys; from keras_seq_cli.main import main; code = main(sys.argv[1:]); "
        "heavy = {'tensorflow', 'tensorflow_text', 'keras', 'jax'} & set(sys.modules); "
        "sys.exit(f'{code} {heavy}' if code or heavy else 0)"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, "translate", tiny_export, "5 mai 1999"],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    # TensorFlow's library prints at most one line.
    assert (result.returncode, result.stderr.count("\n")) in ((0, 0), (0, 1)), result.stderr
    assert "oneDNN" not in result.stderr
    assert result.stdout.count("\n") == 2


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_stream_translates_a_pipe_line_by_line(tiny_export, by_export):
    lines = [b"5 mai 1999\n", b"\n", b"March 5, 2021\n"]
    expected = by_export("--format", "jsonl", stdin=b"".join(lines)).lines
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "keras_seq",
            "translate",
            tiny_export,
            "--stream",
            "--format",
            "jsonl",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with process:
        for line, one in zip(lines, expected, strict=True):
            process.stdin.write(line)
            process.stdin.flush()
            answer, one = json.loads(process.stdout.readline()), json.loads(one)
            assert [t["text"] for t in answer["translations"]] == [
                t["text"] for t in one["translations"]
            ]
        process.stdin.close()
    assert process.returncode == 0
