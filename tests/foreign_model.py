"""Writes SavedModels that have the signatures of an export, but a graph of someone else."""

from collections.abc import Callable
from pathlib import Path
from typing import Any


def save_foreign(
    version: Path,
    translate: Callable[[Any], Any],
    at_start: Callable[[], Any] | None = None,
    **outputs: Callable[[Any], Any],
) -> Path:
    """Saves a model whose translation of each text is the row `translate(text)`.

    `outputs` replaces `score` or `truncated`, which are -1.0 and False by default. `at_start`
    makes the operation that a loader runs first.
    """
    import tensorflow as tf

    v1 = tf.compat.v1
    makers = {
        "translation": translate,
        "score": lambda text: tf.fill(tf.shape(text), -1.0),
        "truncated": lambda text: tf.fill(tf.shape(text), False),
    } | outputs
    with tf.Graph().as_default(), v1.Session() as session:
        text = v1.placeholder(tf.string, [None], "text")
        flat = {name: make(text) for name, make in makers.items()}
        rows = {name: value[:, None] for name, value in flat.items()}
        info = v1.saved_model.build_tensor_info
        signatures = {
            name: v1.saved_model.build_signature_def(
                {"text": info(text)},
                {key: info(value) for key, value in values.items()},
                "tensorflow/serving/predict",
            )
            for name, values in (("n_best", rows), ("serving_default", flat))
        }
        session.run(v1.global_variables_initializer())
        builder = v1.saved_model.Builder(str(version))
        builder.add_meta_graph_and_variables(
            session, ["serve"], signatures, main_op=at_start and at_start()
        )
        builder.save()
    return version


def change_graph(version: Path, change: Callable[[Any], None]) -> None:
    """Applies `change` to the meta graph in the file of a SavedModel."""
    from tensorflow.core.protobuf import saved_model_pb2

    model = saved_model_pb2.SavedModel()
    path = version / "saved_model.pb"
    model.ParseFromString(path.read_bytes())
    change(model.meta_graphs[0])
    path.write_bytes(model.SerializeToString())
