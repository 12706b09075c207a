"""Exported models with a pretrained encoder return the outputs of the run on a stock server."""

import pytest
from hub_preset import save_preset, who_comes_first
from serving.test_label_exports import AWKWARD
from stock_server import StockProcess, Tensor

import keras_seq
from keras_seq import litert, runtime
from keras_seq.run import Run
from keras_seq.serving import (
    export_ctranslate2,
    export_litert,
    export_onnx,
    export_saved_model,
)
from keras_seq.serving.graph_file.operations import ALLOWED, TEXT, WORD_PIECES, operations
from keras_seq.settings import load_settings
from keras_seq.text import InputError
from keras_seq.training import train

pytestmark = pytest.mark.slow

TEXTS = [text for text, _ in who_comes_first(8, 3)] + AWKWARD
DECODER = {
    "model.units": 16,
    "model.feedforward_units": 16,
    "model.num_heads": 1,
    "model.num_decoder_layers": 1,
    "search.max_length": 8,
    "search.beam_size": 2,
}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """A classifier and a translation model trained for a few updates."""
    folder = tmp_path_factory.mktemp("pretrained")
    preset = save_preset(folder / "preset")
    path = folder / "lines.tsv"
    lines = [f"{text}\t{label}\n" for text, label in who_comes_first(300, 1)]
    path.write_text("".join(lines), encoding="utf-8")
    few = {"training.max_steps": 5, "training.learning_rate": 0.01, "training.ema": 0.0}
    for task, key, more in (
        ("classify", "data.labeled", {}),
        ("translate", "data.pairs", DECODER),
    ):
        overrides = {"task": task, key: str(path), **few, **more}
        settings = load_settings(preset=f"hub:{preset}", overrides=overrides)
        train(settings, folder / task, notice=lambda line: None)
    return folder


@pytest.mark.weekly
def test_exported_labels_and_translations_equal_those_of_the_run(runs, tmp_path):
    expected = {
        "classify": keras_seq.Classifier.load(runs / "classify")(TEXTS),
        "translate": keras_seq.Translator.load(runs / "translate")(TEXTS),
    }
    for task, output in (("classify", "label"), ("translate", "translation")):
        notices = []
        version = export_saved_model(
            Run.open(runs / task), tmp_path / task, verify=5, notice=notices.append
        )
        assert notices[0].startswith("5 lines of the validation text come out as the run")
        assert operations(version) <= ALLOWED
        assert operations(version) >= WORD_PIECES
        guide = (version.parent / "serving" / "README.md").read_text(encoding="utf-8")
        assert {name for name in TEXT if f"`{name}`" in guide} == operations(version) & TEXT
        # The server process has neither Keras nor KerasHub.
        with StockProcess(version) as process:
            answer = process.run("serving_default", {"text": Tensor.row(TEXTS)})
        found = [one[0] if isinstance(one, list) else one for one in answer[output].rows()]
        assert [one.decode() for one in found] == expected[task]
        folder = export_onnx(Run.open(runs / task), tmp_path / f"{task}-onnx", verify=5)
        assert runtime.load(folder)(TEXTS) == expected[task]
        file = export_litert(Run.open(runs / task), tmp_path / f"{task}.tflite", verify=5)
        assert litert.load(file)(TEXTS) == expected[task]


def test_export_without_text_has_no_text_operations(runs, tmp_path):
    version = export_saved_model(Run.open(runs / "classify"), tmp_path, ids_only=True, verify=5)
    assert operations(version) <= ALLOWED - TEXT


def test_ctranslate2_export_rejects_a_pretrained_hub_model(runs, tmp_path):
    with pytest.raises(InputError, match="transformer-hub"):
        export_ctranslate2(Run.open(runs / "translate"), tmp_path / "model")
