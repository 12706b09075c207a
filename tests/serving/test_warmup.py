"""Warm-up requests can be read and run as a server does."""

import pytest
import tensorflow as tf
from tensorflow_serving.apis import prediction_log_pb2

from keras_seq.serving.warmup import write_warmup

BATCHES = [["A dog runs."], ["", "zwei Hündinnen 犬🐕", "x" * 2000, "a\0b"]]


@pytest.fixture(scope="module")
def saved_model(tmp_path_factory):
    """A SavedModel that returns the length of each text."""

    class Lengths(tf.Module):
        @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
        def lengths(self, text):
            return {"length": tf.strings.length(text)}

    path = tmp_path_factory.mktemp("base") / "1"
    module = Lengths()
    tf.saved_model.save(module, str(path), signatures={"serving_default": module.lengths})
    return path


def test_each_warmup_request_runs_on_the_saved_model(saved_model):
    """Runs each request by the input names of its signature, as a server does."""
    path = write_warmup(saved_model, [{"text": lines} for lines in BATCHES])
    assert path == saved_model / "assets.extra" / "tf_serving_warmup_requests"
    answers = []
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        loaded = tf.compat.v1.saved_model.load(session, ["serve"], str(saved_model))
        for record in tf.compat.v1.io.tf_record_iterator(str(path)):
            log = prediction_log_pb2.PredictionLog.FromString(record)
            assert log.WhichOneof("log_type") == "predict_log"
            request = log.predict_log.request
            assert request.model_spec.name == ""
            signature = loaded.signature_def[request.model_spec.signature_name]
            assert set(request.inputs) == set(signature.inputs)
            assert signature.method_name == "tensorflow/serving/predict"
            feeds = {
                signature.inputs[name].name: tf.make_ndarray(tensor)
                for name, tensor in request.inputs.items()
            }
            answers.append(session.run(signature.outputs["length"].name, feeds).tolist())
    assert answers == [[len(line.encode()) for line in lines] for lines in BATCHES]


def test_warmup_calls_the_default_signature_even_without_rows(saved_model):
    path = write_warmup(saved_model, [{"text": ["a"]}, {"text": []}])
    logs = [
        prediction_log_pb2.PredictionLog.FromString(record.numpy())
        for record in tf.data.TFRecordDataset(str(path))
    ]
    requests = [log.predict_log.request for log in logs]
    names = [request.model_spec.signature_name for request in requests]
    assert names == ["serving_default"] * 2
    lines = [tf.make_ndarray(request.inputs["text"]) for request in requests]
    assert [values.tolist() for values in lines] == [[b"a"], []]


@pytest.mark.parametrize("batches", [[], [{"text": ["a"]}] * 1001, [{"text": "one string"}]])
def test_invalid_warmup_batches_raise_value_error(saved_model, batches):
    with pytest.raises(ValueError, match="must be"):
        write_warmup(saved_model, batches)
