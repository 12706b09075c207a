"""The default model of lemmas, features and forms resumes, and its exports answer as the run."""

import numpy as np
import pytest
import safetensors.numpy
from stock_server import StockProcess, Tensor
from training.test_features import COLUMNS, LINES, write_forms
from training.toy import quiet_train

import keras_seq
from keras_seq import litert, runtime
from keras_seq.preparation import resolve_settings
from keras_seq.run import Run
from keras_seq.serving import export_litert, export_onnx, export_saved_model

# Only the sizes differ from the defaults.
SMALL = {
    "data.columns": COLUMNS,
    "model.units": 16,
    "model.feedforward_units": 16,
    "model.num_heads": 2,
    "model.num_encoder_layers": 1,
    "model.num_decoder_layers": 1,
    "training.validate_every": 2,
    "training.checkpoint_every": 2,
    "training.sample_count": 0,
}


def train_by_default(path, pairs, steps):
    earlier = Run.open(path) if path.exists() else None
    values = SMALL | {"data.pairs": str(pairs), "training.max_steps": steps}
    settings, _ = resolve_settings(overrides=values, earlier=earlier)
    quiet_train(settings, path)
    return Run.open(path)


def arrays_of(run, step, part):
    return safetensors.numpy.load_file(run.path / f"checkpoints/step-{step:08}/{part}.safetensors")


@pytest.mark.slow
@pytest.mark.weekly
def test_default_model_of_inflection_resumes_and_is_exported(tmp_path):
    pairs = write_forms(tmp_path / "forms.tsv")
    run = train_by_default(tmp_path / "run", pairs, 4)
    model = run.settings.model
    assert (model.copy, model.feature_encoder, model.members) == (True, "linear", 2)
    assert (model.position, model.cross_position) == ("rotary", "rotary")
    assert run.settings.data.concatenation == 0
    train_by_default(tmp_path / "resumed", pairs, 2)
    resumed = train_by_default(tmp_path / "resumed", pairs, 4)
    for part in ("weights", "training"):
        expected, found = (arrays_of(each, 4, part) for each in (run, resumed))
        assert expected.keys() == found.keys()
        for name, array in expected.items():
            np.testing.assert_array_equal(array, found[name], name)

    lines = [*LINES, "form\tX;FUT", "ähm\tX;PL"]
    answers = keras_seq.Translator.load(run.path)(lines)
    assert len(set(answers)) > 1
    version = export_saved_model(run, tmp_path / "served", verify=0)
    texts, features = zip(*(line.split("\t") for line in lines), strict=True)
    with StockProcess(version) as server:
        inputs = {"text": Tensor.row(texts), "features": Tensor.row(features)}
        answer = server.run("serving_default", inputs)
    assert [text.decode() for text in answer["translation"].rows()] == answers
    assert runtime.load(export_onnx(run, tmp_path / "onnx", verify=0))(lines) == answers
    file = export_litert(run, tmp_path / "forms.tflite", verify=0, max_input=20)
    assert litert.load(file)(lines) == answers
