"""The file for LiteRT is self-contained, verified, and published atomically."""

import json
import os
import re
import shutil
import subprocess
import sys
import unicodedata
import zipfile

import keras
import numpy as np
import pytest
from small_transformers import SOURCES, TARGETS, learned_run

import keras_seq
from keras_seq import litert
from keras_seq.inference.translator import Translator
from keras_seq.run import Run
from keras_seq.runtime import RuntimeInputError
from keras_seq.serving import export_litert
from keras_seq.serving.litert_conversion import convert_to_litert
from keras_seq.serving.model_graphs import ModelGraph
from keras_seq.text import InputError

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        keras.backend.backend() != "tensorflow", reason="only TensorFlow converts to LiteRT"
    ),
]

pytest.importorskip("ai_edge_litert", reason="the extra litert is not installed")


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A run that has memorized four sentences, with separate vocabularies."""
    return learned_run(tmp_path_factory.mktemp("learned") / "run")[0]


@pytest.fixture(scope="module")
def exported(learned, tmp_path_factory):
    """The export of `learned`, and the notices."""
    notices = []
    destination = tmp_path_factory.mktemp("litert") / "ende.tflite"
    assert export_litert(learned, destination, notice=notices.append) == destination
    return destination, notices


def test_file_has_the_model_and_an_archive_that_any_program_reads(exported):
    path, notices = exported
    assert notices[0] == "4 validation lines of text come out as the run translates them"
    assert re.fullmatch(r"\d+\.\d MB", notices[1]) and len(notices) == 2
    assert os.listdir(path.parent) == [path.name]
    # The identifier of the format, in the place where it is by the schema of LiteRT.
    assert path.read_bytes()[4:8] == b"TFL3"
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        names = {"checkpoint.json", "model.json", "source.model", "target.model"}
        assert {*archive.namelist()} == names


def test_an_app_translates_as_the_page_describes(exported):
    """The steps of docs/portable-exports.md, without code of keras-seq."""
    from ai_edge_litert.interpreter import Interpreter
    from sentencepiece import SentencePieceProcessor

    with zipfile.ZipFile(exported[0]) as archive:
        stored = json.loads(archive.read("model.json"))
        source, target = (
            SentencePieceProcessor(model_proto=archive.read(f"{name}.model"))
            for name in ("source", "target")
        )
    form = stored["source"]["form"]
    call = Interpreter(str(exported[0])).get_signature_runner("serving_default")
    size = call.get_input_details()["source"]["shape"][1]
    for text, expected in zip(SOURCES, TARGETS, strict=True):
        text = text if form == "none" else unicodedata.normalize(form.upper(), text)
        ids = [*source.encode(text)[: stored["max_length"]], 3]
        row = np.array([ids + [0] * (size - len(ids))], np.int32)
        tokens = call(source=row)["tokens"][0, 0].tolist()
        end = next((place for place, token in enumerate(tokens) if token in (0, 3)), None)
        assert target.decode(tokens[:end]) == expected


@pytest.mark.parametrize("options", [{}, {"beam_size": 3, "n_best": 3}])
def test_translations_and_scores_equal_those_of_the_run(learned, exported, tmp_path, options):
    path = exported[0]
    if options:
        path = export_litert(learned, tmp_path / "other.tflite", verify=0, **options)
    lines = [*SOURCES, "", "das ähm", "das " * 300]
    expected = Translator.load(learned.path, **options).translate(lines)
    found = litert.load(path, threads=1).run(lines)
    for row, right in zip(found, expected, strict=True):
        assert [(one.text, one.truncated) for one in row] == [
            (one.text, one.truncated) for one in right
        ]
        np.testing.assert_allclose(
            [one.score for one in row], [one.score for one in right], atol=1e-5
        )
    assert litert.load(path)(SOURCES) == TARGETS


def test_module_imports_neither_keras_nor_tensorflow(exported):
    code = (
        "import sys\n"
        "from keras_seq import litert\n"
        f"print(litert.load({str(exported[0])!r})({SOURCES[:1]!r})[0])\n"
        "print(sorted({'keras', 'tensorflow', 'jax', 'torch', 'pydantic'} & {*sys.modules}))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines() == [TARGETS[0], "[]"]


def test_longest_input_truncates_longer_ones(learned, exported, tmp_path):
    longest = min(len(learned.source_tokenizer.encode([line])[0]) for line in SOURCES)
    notices = []
    path = export_litert(learned, tmp_path / "a.tflite", max_input=longest, notice=notices.append)
    fitting = [
        line for line in SOURCES if len(learned.source_tokenizer.encode([line])[0]) <= longest
    ]
    assert 0 < len(fitting) < len(SOURCES)
    assert notices[0].startswith(f"{len(fitting)} validation lines of text come out as the run")
    found = litert.load(path).run([*fitting, max(SOURCES, key=len) * 2])
    assert [row[0].truncated for row in found] == [False] * len(fitting) + [True]
    for wrong in (0, 201, -1):
        with pytest.raises(InputError, match="expected 1 to 200 tokens, the maximum of the run"):
            export_litert(learned, tmp_path / "b.tflite", max_input=wrong)
    assert os.listdir(tmp_path) == ["a.tflite"]


@pytest.mark.slow
@pytest.mark.weekly
def test_int8_export_reports_the_change_and_is_smaller(learned, exported, tmp_path):
    notices = []
    path = export_litert(
        learned, tmp_path / "int8.tflite", quantization="int8", notice=notices.append
    )
    assert notices[0].startswith("4 validation lines of text come out as the run")
    assert re.fullmatch(
        r"int8: BLEU \d+\.\d\d on them, [+-]\d+\.\d\d against \d+\.\d\d; \d lines differ",
        notices[1],
    )
    assert path.stat().st_size < exported[0].stat().st_size
    assert len(litert.load(path)(SOURCES)) == 4


def test_commands_write_the_file_and_answer_lines(learned, tmp_path, keras_seq_command):
    path = tmp_path / "ende.tflite"
    done = keras_seq_command(
        "export", learned.path, path, "--format", "litert", "--max-input", 20, "--beam-size", 1
    )
    assert (done.code, done.lines) == (0, [str(path)]), done.err
    assert "INFO" not in done.err and "come out as the run translates them" in done.err

    def answers(*arguments):
        return subprocess.run(
            [sys.executable, "-m", "keras_seq.litert", *map(str, arguments)],
            input="".join(f"{line}\n" for line in [*SOURCES, ""]),
            capture_output=True,
            encoding="utf-8",
            check=False,
        )

    assert answers(path).stdout.split("\n") == [*TARGETS, "", ""]
    assert answers().stderr.startswith("usage: ")
    missing = answers(tmp_path / "missing.tflite")
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)
    code = (
        "import sys\n"
        "sys.modules['ai_edge_litert'] = None\n"
        "from keras_seq import litert\n"
        "sys.exit(litert.main(sys.argv[1:]))"
    )
    lacking = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, input="", check=False
    )
    assert (lacking.returncode, lacking.stderr.count("\n")) == (2, 1)
    assert "ai_edge_litert" in lacking.stderr
    error = keras_seq_command("export", learned.path, tmp_path / "x", "--max-input", 20).error
    assert error == "--max-input: not for --format savedmodel"


def rewritten(path, model, **entries):
    """Writes an export again with another model before the archive, and other settings."""
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    files["model.json"] = json.dumps(json.loads(files["model.json"]) | entries).encode()
    path.write_bytes(model)
    with zipfile.ZipFile(path, "a") as archive:
        for name, content in files.items():
            archive.writestr(name, content)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda path: path.write_bytes(b"TFL3"), "not an export to LiteRT: "),
        (lambda path: path.unlink(), "not an export to LiteRT: "),
        (lambda path: rewritten(path, b"TFL3" * 9), "cannot be loaded: "),
        (lambda path: rewritten(path, b"", format="other"), "export it again"),
        (
            lambda path: rewritten(path, b"", answer="dance"),
            "answer: received 'dance', expected one of text",
        ),
        (
            lambda path: rewritten(path, b"", source={"file": "../a"}),
            "source.file: received '../a', expected",
        ),
    ],
)
def test_damaged_export_is_one_clear_line(exported, tmp_path, change, message):
    path = shutil.copyfile(exported[0], tmp_path / "a.tflite")
    change(path)
    with pytest.raises(RuntimeInputError) as error:
        litert.load(path)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_what_cannot_be_exported_is_said_before_anything_is_written(learned, tmp_path, monkeypatch):
    import tensorflow as tf

    graph = ModelGraph(lambda x: {"out": tf.linalg.inv(x)}, {"x": ([2, 2], tf.float32)})
    with pytest.raises(InputError, match=r"has no form in LiteRT: LiteRT has no MatrixInverse$"):
        convert_to_litert(graph, [], "float32")
    with pytest.raises(InputError, match="'int4', expected one of float32, int8"):
        export_litert(learned, tmp_path / "a.tflite", quantization="int4")
    with pytest.raises(InputError, match=r"a\.lite: expected a name that ends in \.tflite"):
        export_litert(learned, tmp_path / "a.lite")
    (tmp_path / "taken.tflite").mkdir()
    with pytest.raises(InputError, match="exists already"):
        export_litert(learned, tmp_path / "taken.tflite")
    monkeypatch.setitem(sys.modules, "ai_edge_litert.interpreter", None)
    with pytest.raises(InputError, match=r"pip install 'keras-seq\[litert\]'"):
        export_litert(learned, tmp_path / "a.tflite")
    assert os.listdir(tmp_path) == ["taken.tflite"]


@pytest.mark.weekly
def test_autoencoder_and_ensemble_are_exported(learned, tmp_path):
    lines = [" ".join(f"{a}{b}") for a in "abcdef" for b in "abcdef"]
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in lines))
    sizes = dict.fromkeys(("embedding_units", "encoder_units", "decoder_units", "latent_units"), 6)
    settings = keras_seq.load_settings(
        preset="vae",
        overrides={f"model.{name}": size for name, size in sizes.items()}
        | {"data.text": str(tmp_path / "text"), "training.max_steps": 4},
    )
    keras_seq.train(settings, tmp_path / "run", notice=[].append)
    run = Run.open(tmp_path / "run")
    path = export_litert(run, tmp_path / "vae.tflite", verify=20, max_input=30)
    expected = keras_seq.Autoencoder.load(tmp_path / "run").reconstruct([*lines[:5], " "])
    assert litert.load(path)([*lines[:5], " "]) == expected
    with pytest.raises(InputError, match="the samples of an autoencoder depend on the latent"):
        export_litert(run, tmp_path / "sampled.tflite", method="sampling")

    other = shutil.copytree(learned.path, tmp_path / "other")
    path = export_litert(learned, tmp_path / "both.tflite", ensemble=[other], max_input=20)
    assert litert.load(path)(SOURCES) == TARGETS
