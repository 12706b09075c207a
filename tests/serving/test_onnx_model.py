"""The ONNX export is self-contained, verified, and published atomically."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import numpy as np
import pytest
from small_transformers import SOURCES, TARGETS, learned_run

import keras_seq
from keras_seq import runtime
from keras_seq.inference.translator import Translator
from keras_seq.run import Run
from keras_seq.serving import export_onnx
from keras_seq.serving.model_graphs import ModelGraph
from keras_seq.serving.onnx_conversion import save_onnx
from keras_seq.text import InputError

pytestmark = pytest.mark.slow

pytest.importorskip("tf2onnx", reason="the extra onnx is not installed")


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A run that has memorized four sentences, with separate vocabularies."""
    return learned_run(tmp_path_factory.mktemp("learned") / "run")[0]


@pytest.fixture(scope="module")
def exported(learned, tmp_path_factory):
    """The export of `learned`, and the notices."""
    notices = []
    destination = tmp_path_factory.mktemp("onnx") / "ende"
    assert export_onnx(learned, destination, notice=notices.append) == destination
    return destination, notices


def python(folder, code, *arguments):
    """Returns the lines of stdout of Python code that runs in a folder, without this project."""
    hidden = ["keras_seq", "keras", "tensorflow", "onnx", "torch", "jax", "pydantic"]
    guard = f"import sys; sys.modules.update(dict.fromkeys({hidden}))\n"
    result = subprocess.run(
        [sys.executable, "-c", guard + code, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.split("\n")[:-1]


def test_exported_directory_is_complete_and_its_readme_code_runs(learned, exported):
    folder, notices = exported
    assert notices[0] == "4 validation lines of text come out as the run translates them"
    assert re.fullmatch(r"\d+\.\d MB", notices[1]) and len(notices) == 2
    graphs = {"start.onnx", "step.onnx", "grow.onnx"}
    texts = {"Dockerfile", "README.md", "checkpoint.json", "model.json", "requirements.txt"}
    assert {*os.listdir(folder)} == graphs | texts | {"runtime.py", "source.model", "target.model"}
    readme = (folder / "README.md").read_text(encoding="utf-8")
    # Without the address, Docker would listen at all of the computer.
    assert re.findall(r"docker run -p (\S+)", readme) == ["127.0.0.1:8000:8000"]
    code = re.search(r"```python\n(.*?)```", readme, re.DOTALL)[1]
    assert python(folder, code.replace('"text"', repr(SOURCES[0]))) == [str(TARGETS[:1])]
    for line in (folder / "requirements.txt").read_text().splitlines():
        name, _, version = line.partition("==")
        assert __import__(name).__version__ == version


def test_translations_and_scores_equal_those_of_the_run(learned, exported):
    model = runtime.load(exported[0])
    # A pair of surrogates is one character; a single one is not a character.
    lines = [*SOURCES, "", "das ähm", "das \ud83d\ude00", "\ud83d das"]
    expected = Translator.load(learned.path).translate(lines)
    found = model.run(lines)
    assert [[one.text for one in row] for row in found] == [
        [one.text for one in row] for row in expected
    ]
    for row, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(
            [one.score for one in row], [one.score for one in right], atol=1e-5
        )
    assert model(SOURCES) == TARGETS


def test_runtime_imports_neither_keras_nor_tensorflow(exported):
    code = (
        "import sys\n"
        "from keras_seq import runtime\n"
        f"print(runtime.load({str(exported[0])!r})({SOURCES[:1]!r})[0])\n"
        "heavy = {'keras', 'tensorflow', 'jax', 'torch', 'onnx', 'pydantic'} & {*sys.modules}\n"
        "print(sorted(heavy))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.splitlines() == [TARGETS[0], "[]"]


def test_settings_of_the_search_can_be_replaced(learned, exported):
    model = runtime.load(exported[0], beam_size=3, n_best=3, threads=1)
    expected = Translator.load(learned.path, beam_size=3, n_best=3).translate(SOURCES)
    found = [[one.text for one in row] for row in model.run(SOURCES)]
    assert found == [[one.text for one in row] for row in expected]
    assert {len(row) for row in found} == {3}


def test_int8_export_reports_the_change_and_is_smaller(learned, exported, tmp_path):
    notices = []
    folder = export_onnx(learned, tmp_path / "int8", quantization="int8", notice=notices.append)
    assert notices[0].startswith("4 validation lines of text come out as the run")
    assert re.fullmatch(
        r"int8: BLEU \d+\.\d\d on them, [+-]\d+\.\d\d against \d+\.\d\d; \d lines differ",
        notices[1],
    )
    small, large = ((f / "step.onnx").stat().st_size for f in (folder, exported[0]))
    assert small < large
    assert len(runtime.load(folder)(SOURCES)) == 4


def test_commands_of_the_runtime_answer_lines_and_http(exported, tmp_path):
    folder = exported[0]
    code = "import runtime; sys.stdin = open(sys.argv[1]); sys.exit(runtime.main([]))"
    (tmp_path / "lines.txt").write_text("".join(f"{line}\n" for line in [*SOURCES, ""]))
    assert python(folder, code, str(tmp_path / "lines.txt")) == [*TARGETS, ""]
    with subprocess.Popen(
        [sys.executable, folder / "runtime.py", "--port", "0"],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    ) as process:
        try:
            url = process.stderr.readline().strip()
            assert httpx.get(url).json() == {"status": "ok"}
            answer = httpx.post(url, json={"instances": [SOURCES[0], ""]})
            found = answer.json()["predictions"]
            assert [one["text"] for one in found] == [TARGETS[0], ""]
            assert found[0]["truncated"] is False and found[0]["score"] <= 0
            for wrong in (
                {"instances": "a"},
                {"instances": [1]},
                {},
                [],
                {"instances": [""] * 1025},
            ):
                assert httpx.post(url, json=wrong).status_code == 400
            many = (part for part in [b"{}"])
            assert "Content-Length" in httpx.post(url, content=many).json()["error"]
            assert httpx.post(url, content=b"{").status_code == 400
            assert httpx.post(url, content=b"").status_code == 400
            taken = subprocess.run(
                [sys.executable, folder / "runtime.py", "--port", url.rpartition(":")[2]],
                capture_output=True,
                text=True,
                check=False,
            )
            assert (taken.returncode, taken.stderr.count("\n")) == (2, 1)
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
            assert process.stderr.read().count("Traceback") == 0
        finally:
            process.kill()


def test_lines_are_read_and_written_in_utf_8_in_any_locale(exported):
    def answers(content):
        return subprocess.run(
            [sys.executable, exported[0] / "runtime.py"],
            input=content,
            capture_output=True,
            env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
            check=False,
        )

    right = answers("".join(f"{line}\r\n" for line in SOURCES).encode())
    assert right.stdout.decode().split("\n") == [*TARGETS, ""]
    wrong = answers(b"das\n\xff\n")
    assert (wrong.returncode, wrong.stdout) == (2, b"")
    assert wrong.stderr.startswith(b"runtime: 'utf-8' codec") and wrong.stderr.count(b"\n") == 1


def changed(folder, **entries):
    """Replaces entries of `model.json`."""
    path = folder / "model.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | entries))


def changed_part(folder, part, **entries):
    """Replaces entries of a part of `model.json`."""
    stored = json.loads((folder / "model.json").read_text(encoding="utf-8"))
    changed(folder, **{part: stored[part] | entries})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: (f / "model.json").unlink(), "not an export, it has no model.json"),
        (lambda f: (f / "model.json").write_text("{"), "model.json: cannot be read: "),
        (lambda f: (f / "model.json").write_text("[]"), "not an export of this version of keras"),
        (
            lambda f: (f / "model.json").write_text(json.dumps({"format": "keras-seq onnx, 9"})),
            "not an export of this version of keras-seq: export it again",
        ),
        (lambda f: (f / "model.json").write_text("[" * 200_000), "model.json: cannot be read: "),
        (lambda f: changed(f, format="keras-seq onnx, format 1"), "export it again"),
        (
            lambda f: changed(f, format="keras-seq onnx, format 3"),
            "format 3 of a newer keras-seq, expected 2: upgrade keras-seq, or use a newer runtime",
        ),
        (lambda f: changed(f, answer="dance"), "answer: received 'dance', expected one of text,"),
        (lambda f: changed(f, batch_size="many"), "batch_size: received 'many', expected an int"),
        (
            lambda f: changed_part(f, "search", alpha=None),
            "alpha: received None, expected a num",
        ),
        (lambda f: changed_part(f, "source", form="x"), "source.form: received 'x', expected one"),
        (lambda f: changed_part(f, "source", separator=3), "separator: received 3, expe"),
        (
            lambda f: shutil.copy(f / "start.onnx", f / "step.onnx"),
            "step.onnx: damaged: it lacks logits, tokens, values",
        ),
        (lambda f: (f / "source.model").write_bytes(b""), "source.model: cannot be read: "),
        (lambda f: changed(f, search=None), "search: received None, expected an"),
        (
            lambda f: changed(f, source={"file": "/etc/x.json"}),
            "source.file: received '/etc/x.json'",
        ),
        (lambda f: (f / "step.onnx").write_bytes(b"\x08"), "step.onnx: cannot be loaded: "),
        (
            lambda f: (f / "start.onnx").unlink(),
            "start.onnx: cannot be read: No such file or directory",
        ),
        (lambda f: (f / "source.model").write_bytes(b"a"), "source.model: cannot be read: "),
    ],
)
def test_damaged_export_is_one_clear_line(exported, tmp_path, keras_seq_command, change, message):
    folder = shutil.copytree(exported[0], tmp_path / "export")
    change(folder)
    with pytest.raises(runtime.RuntimeInputError) as error:
        runtime.load(folder)
    assert message in str(error.value) and "\n" not in str(error.value)
    if (folder / "model.json").exists():
        assert message in keras_seq_command("translate", folder, "a").error


def test_unknown_and_contradicting_search_settings_are_refused(exported):
    for options, message in (
        ({"beam": 3}, "beam: unknown, expected one of alpha"),
        ({"prefix": "das"}, "prefix: unknown"),
        ({"rerank": "chrf"}, "rerank: unknown"),
        ({"beam_size": 0}, "beam_size: received 0, expected an integer from 1 to 1000"),
        ({"beam_size": 2.0}, "beam_size: received 2.0, expected an integer"),
        ({"n_best": True}, "n_best: received True, expected an integer"),
        ({"method": "foo"}, "method: received 'foo', expected one of beam, sampling"),
        ({"top_p": 0}, "top_p: received 0, expected a number from above 0 to 1"),
        ({"batch_size": -3}, "batch_size: received -3, expected an integer from 1"),
        ({"threads": "x"}, "threads: received 'x', expected an integer from 1"),
        ({"coverage_penalty": 0.2}, "export with --coverage-penalty"),
    ):
        with pytest.raises(runtime.RuntimeInputError, match=re.escape(message)):
            runtime.load(exported[0], **options)
    with pytest.raises(runtime.RuntimeInputError, match="expected at most the beam size, 5"):
        runtime.load(exported[0], n_best=9)
    with pytest.raises(TypeError, match="not one string"):
        runtime.load(exported[0])("das")


def test_translate_command_reads_the_export(exported, learned, keras_seq_command, tmp_path):
    (tmp_path / "in").write_text("".join(f"{line}\n" for line in SOURCES))
    found = keras_seq_command("translate", exported[0], tmp_path / "in", "--engine", "onnx")
    assert (found.code, found.lines) == (0, TARGETS)
    error = keras_seq_command("translate", learned.path, "a", "--engine", "onnx").error
    assert "--format onnx" in error
    expected = keras_seq_command("translate", learned.path, tmp_path / "in", "--n-best", "2")
    options = ("--n-best", "2", "--batch-size", "3")
    found = keras_seq_command("translate", exported[0], tmp_path / "in", *options)
    assert (found.code, found.lines) == (0, expected.lines) and len(found.lines) > len(TARGETS)
    for options, words in (
        (["--beam-size", "0"], "beam_size: received 0, expected an integer from 1 to 1000"),
        (["--coverage-penalty", "0.2"], "export with --coverage-penalty"),
        (["--forbidden", "das"], "'--forbidden': is fixed in an export"),
        (["--trust"], "'--trust': expected a SavedModel, received an ONNX export"),
    ):
        error = keras_seq_command("translate", exported[0], "a", *options).error
        assert words in error, error
    other = shutil.copytree(exported[0], tmp_path / "other")
    changed(other, task="dance")
    assert runtime.load(other)(SOURCES) == TARGETS
    error = keras_seq_command("translate", other, "a").error
    assert error.endswith(f"expected 'translate': use python {other}/runtime.py < input > output")
    for command, words in (
        ("classify", f"it has no settings.toml: use python {exported[0]}/runtime.py"),
        ("serve", f"serve it with python {exported[0]}/runtime.py --port 8501"),
    ):
        assert keras_seq_command(command, exported[0], stdin=b"a\n").error.endswith(words)


def test_export_that_answers_otherwise_is_not_published(learned, tmp_path, monkeypatch):
    # A copy of the runtime answers in another process.
    right = "texts = self._processor.decode(pieces) if pieces else []"
    source = Path(runtime.__file__).read_text(encoding="utf-8")
    assert source.count(right) == 1
    wrong = tmp_path / "runtime.py"
    wrong.write_text(source.replace(right, "texts = ['wrong' for _ in pieces]"), encoding="utf-8")
    monkeypatch.setattr(runtime, "__file__", str(wrong))
    with pytest.raises(InputError, match="returns another output than the run for 4 of 4 inputs"):
        export_onnx(learned, tmp_path / "onnx")
    assert not (tmp_path / "onnx").exists()


def test_operation_without_onnx_form_is_one_clear_line(tmp_path):
    import tensorflow as tf

    graph = ModelGraph(lambda x: {"out": tf.bitcast(x, tf.int32)}, {"x": ([None], tf.float32)})
    with pytest.raises(InputError, match=r"^a.onnx: an operation of the model has no ONNX form"):
        save_onnx(graph, tmp_path / "a.onnx")

    def wrong(x):
        raise RuntimeError("the code of the model")

    with pytest.raises(RuntimeError, match=r"^the code of the model$"):
        save_onnx(ModelGraph(wrong, {"x": ([None], tf.float32)}), tmp_path / "a.onnx")


def test_what_cannot_be_exported_is_said_before_anything_is_written(
    learned, tmp_path, monkeypatch, keras_seq_command
):
    with pytest.raises(InputError, match="'int4', expected one of float32, int8"):
        export_onnx(learned, tmp_path / "onnx", quantization="int4")
    (tmp_path / "taken").mkdir()
    with pytest.raises(InputError, match="exists already"):
        export_onnx(learned, tmp_path / "taken")
    error = keras_seq_command(
        "export", learned.path, tmp_path / "onnx", "--format", "onnx", "--ids-only"
    ).error
    assert error == "--ids-only: not for --format onnx"
    monkeypatch.setitem(sys.modules, "tf2onnx", None)
    with pytest.raises(InputError, match=r"pip install 'keras-seq\[onnx\]'"):
        export_onnx(learned, tmp_path / "onnx")
    assert os.listdir(tmp_path) == ["taken"]


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
    folder = export_onnx(Run.open(tmp_path / "run"), tmp_path / "onnx", verify=20)
    expected = keras_seq.Autoencoder.load(tmp_path / "run").reconstruct([*lines[:5], " "])
    assert runtime.load(folder)([*lines[:5], " "]) == expected

    other = shutil.copytree(learned.path, tmp_path / "other")
    folder = export_onnx(learned, tmp_path / "both", ensemble=[other])
    assert runtime.load(folder)(SOURCES) == TARGETS
