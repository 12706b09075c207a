"""The CTranslate2 export is self-contained, verified, and published atomically."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest
from small_transformers import SOURCES, TARGETS, learned_run, random_run
from weekly import weekly_but

from keras_seq.inference.translator import Translator
from keras_seq.run import Run
from keras_seq.run.models import weight_arrays
from keras_seq.serving.ctranslate2_model import QUANTIZATIONS, export_ctranslate2
from keras_seq.settings import load_settings
from keras_seq.text import InputError

pytestmark = pytest.mark.slow

ctranslate2 = pytest.importorskip("ctranslate2", reason="the extra ctranslate2 is not installed")


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A run that has memorized four sentences, with separate vocabularies."""
    return learned_run(tmp_path_factory.mktemp("learned") / "run")[0]


def run_readme(directory):
    """Returns the output of the Python code in README.md, in a process without this project."""
    readme = (directory / "README.md").read_text(encoding="utf-8")
    code = re.fullmatch(r".*```python\n(.*)```.*", readme, re.DOTALL)[1]
    guard = "import sys; sys.modules.update(dict.fromkeys(['keras_seq', 'keras', 'tensorflow']))\n"
    result = subprocess.run(
        [sys.executable, "-c", guard + code],
        cwd=directory,
        env={**os.environ, "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    return result.stdout.split("\n")[:-1]


def weights_of(directory):
    return (directory / "model.bin").stat().st_size


def test_exported_directory_is_complete_and_its_readme_code_runs(learned, tmp_path):
    notices = []
    destination = tmp_path / "ct2" / "ende"
    assert export_ctranslate2(learned, destination, notice=notices.append) == destination
    assert notices == ["4 lines of the validation text come out as keras-seq translates them"]
    names = {"source.model", "target.model", "source_vocabulary.json", "target_vocabulary.json"}
    common = {"README.md", "checkpoint.json", "config.json", "model.bin"}
    assert set(os.listdir(destination)) == common | names
    translated = run_readme(destination)
    assert translated == Translator.load(learned.path)(SOURCES[:2])
    assert translated[1] == TARGETS[1]


def test_a_joint_vocabulary_is_kept_once(tmp_path):
    run, _ = random_run(tmp_path / "run", joint=True)
    notices = []
    destination = export_ctranslate2(run, tmp_path / "model", notice=notices.append)
    assert notices == ["4 lines of the validation text come out as keras-seq translates them"]
    names = {"joint.model", "shared_vocabulary.json"}
    common = {"README.md", "checkpoint.json", "config.json", "model.bin"}
    assert set(os.listdir(destination)) == common | names
    assert len(run_readme(destination)) == 2
    # The embedding table is stored once, although three layers use it.
    table = 4 * run.source_tokenizer.vocabulary_size * run.settings.model.units
    assert weights_of(destination) < 4 * table


def test_exported_positions_suffice_for_the_default_decoding_length(tmp_path):
    run, _ = random_run(tmp_path / "run")
    directory = export_ctranslate2(run, tmp_path / "model", verify=0)
    translator = ctranslate2.Translator(str(directory))
    (result,) = translator.translate_batch([["▁cat"] * 200], beam_size=1)
    assert len(result.hypotheses[0]) == 256


@pytest.mark.parametrize(
    "quantization", weekly_but([name for name in QUANTIZATIONS if name != "float32"], "int8")
)
def test_quantized_model_is_smaller_and_its_bleu_is_reported(learned, tmp_path, quantization):
    notices = []
    whole = export_ctranslate2(learned, tmp_path / "whole", verify=0)
    directory = export_ctranslate2(
        learned, tmp_path / "small", quantization=quantization, notice=notices.append
    )
    assert weights_of(directory) < 0.8 * weights_of(whole)
    assert f"Weights in {quantization}," in (directory / "README.md").read_text(encoding="utf-8")
    assert notices[0] == "4 lines of the validation text come out as keras-seq translates them"
    told = re.fullmatch(
        rf"{quantization}(, here computed in \w+)?: BLEU (\d+\.\d\d) on them, ([+-]\d+\.\d\d) "
        r"against (\d+\.\d\d) \(greedy search\); \d lines differ",
        notices[1],
    )
    assert told
    assert float(told[2]) - float(told[4]) == pytest.approx(float(told[3]), abs=0.02)
    # The run has memorized these sentences, so BLEU is high even if one translation ends early.
    assert float(told[4]) > 50


def test_quantized_export_leaves_later_float32_exports_unchanged(learned, tmp_path):
    """CTranslate2 quantizes in place, which must not change the float32 weights."""
    export_ctranslate2(learned, tmp_path / "small", quantization="int8")
    before = export_ctranslate2(learned, tmp_path / "one", verify=0)
    after = export_ctranslate2(learned, tmp_path / "two", verify=0)
    assert (before / "model.bin").read_bytes() == (after / "model.bin").read_bytes()


def test_export_is_not_published_when_translations_differ_from_the_run(learned, tmp_path):
    shutil.copytree(learned.path, tmp_path / "run")
    run = Run.open(tmp_path / "run")
    # The same weights with another number of heads give other translations.
    changed = load_settings(base=run.settings.to_dict(), overrides={"model.num_heads": 9})
    Run.open(run.path).update_settings(changed)
    with pytest.raises(InputError) as raised:
        export_ctranslate2(run, tmp_path / "new" / "model", quantization="int8")
    found = re.fullmatch(
        r"the export returns another output than the run for (\d) of 4 inputs, "
        r"first for 'the cat sees the dog': received '.*', expected '.*'",
        str(raised.value),
    )
    assert int(found[1]) > 1
    assert os.listdir(tmp_path) == ["run"]
    # A reopened run reads the changed settings, so its export matches.
    export_ctranslate2(Run.open(run.path), tmp_path / "model")


def test_run_with_unsupported_search_settings_can_still_be_exported(tmp_path):
    overrides = {"search.length_normalization": "gnmt", "search.n_best": 3}
    run, _ = random_run(tmp_path / "run", **overrides)
    notices = []
    export_ctranslate2(run, tmp_path / "model", notice=notices.append)
    assert len(notices) == 1


@pytest.mark.weekly
def test_exports_of_the_best_and_latest_checkpoints_differ(tmp_path):
    run, model = random_run(tmp_path / "run")
    run.mark_best(1)
    doubled = {name: 2 * array for name, array in weight_arrays(model).items()}
    run.save_checkpoint(2, {"weights": doubled}, {})
    best, latest = (
        (export_ctranslate2(run, tmp_path / which, which=which) / "model.bin").read_bytes()
        for which in ("best", "latest")
    )
    assert best != latest


def test_invalid_exports_raise_input_error_and_write_nothing(learned, tmp_path, monkeypatch):
    run = learned
    (tmp_path / "there").mkdir()
    (tmp_path / "file").touch()
    rnn = Run.create(tmp_path / "rnn", load_settings(preset="rnn-small"))
    untrained = Run.create(tmp_path / "untrained", load_settings())
    before = sorted(tmp_path.rglob("*"))
    for given, place, quantization, words in (
        (run, "there", "float32", "there: exists already, name another"),
        (run, "file/model", "float32", "file is a file"),
        (run, "model", "int4", "quantization: received 'int4', expected one of float32, float16"),
        (rnn, "model", "float32", "rnn: model.family: received 'rnn'; CTranslate2 supports only"),
        (untrained, "model", "float32", "no checkpoint, the training has not saved one yet"),
    ):
        with pytest.raises(InputError, match=words):
            export_ctranslate2(given, tmp_path / place, quantization=quantization)
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(InputError, match=r"python -m pip install 'keras-seq\[ctranslate2\]'$"):
        export_ctranslate2(run, tmp_path / "model")
    assert sorted(tmp_path.rglob("*")) == before


FULL = """
import resource, signal, sys
from keras_seq.run import Run
from keras_seq.serving import export_ctranslate2
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), resource.RLIM_INFINITY))
try:
    export_ctranslate2(Run.open(sys.argv[1]), sys.argv[2], verify=0)
except ValueError as error:
    print(error)
"""


@pytest.mark.skipif(os.name != "posix", reason="limits of POSIX")
def test_file_size_limit_is_reported_in_one_line_and_leaves_nothing(learned, tmp_path):
    for size, place in ((1000, "a"), (15_000, "new/b")):
        result = subprocess.run(
            [sys.executable, "-c", FULL, learned.path, tmp_path / place, str(size)],
            capture_output=True,
            text=True,
            check=True,
        )
        assert result.stdout == f"{tmp_path / place}: cannot be written: file too large\n"
    assert os.listdir(tmp_path) == []


def test_exported_config_lists_special_tokens_and_layer_norm_epsilon(learned, tmp_path):
    directory = export_ctranslate2(learned, tmp_path / "model", verify=0)
    config = json.loads((directory / "config.json").read_text())
    assert config | {"multi_query_attention": False} == {
        "add_source_bos": False,
        "add_source_eos": True,
        "bos_token": "<s>",
        "decoder_start_token": "<s>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "layer_norm_epsilon": 1e-5,
        "multi_query_attention": False,
    }
