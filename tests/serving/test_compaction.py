"""Compaction makes a graph smaller and does not change its results."""

import shutil

import pytest


@pytest.fixture(scope="module")
def versions(tmp_path_factory):
    """A SavedModel with a loop, a branch and variables, before and after compaction."""
    import tensorflow as tf

    from keras_seq.serving.compaction import compact

    class Module(tf.Module):
        def __init__(self):
            super().__init__()
            self.scale = tf.Variable(3.0)
            self.shifts = [tf.Variable([float(n), 2.0 * n]) for n in range(3)]

        @tf.function(
            input_signature=[
                tf.TensorSpec([None, 2], tf.float32),
                tf.TensorSpec([], tf.int32, name="steps"),
            ]
        )
        def answer(self, values, steps):
            for step in tf.range(steps):
                for shift in self.shifts:
                    values = values * self.scale * 0.25 + shift * 0.25
                if step % 2 == 0:
                    values = values - tf.cast(tf.shape(values)[0], tf.float32)
                else:
                    values = values + tf.cast(tf.shape(values)[0], tf.float32) * 2.0
            return {"values": values, "sum": tf.reduce_sum(values)}

    folder = tmp_path_factory.mktemp("compaction")
    module = Module()
    tf.saved_model.save(module, str(folder / "before"), signatures=module.answer)
    shutil.copytree(folder / "before", folder / "after")
    compact(folder / "after")
    return folder / "before", folder / "after"


def graph_of(version):
    from tensorflow.core.protobuf import saved_model_pb2

    model = saved_model_pb2.SavedModel()
    model.ParseFromString((version / "saved_model.pb").read_bytes())
    return model.meta_graphs[0].graph_def


INPUTS = {"values": [[1.0, 2.0], [3.0, -4.0]], "steps": 5}


def test_compacted_graph_gives_identical_results_in_a_session(versions):
    from tensorflow.compat import v1

    answers = []
    for version in versions:
        with v1.Graph().as_default(), v1.Session() as session:
            served = v1.saved_model.load(session, ["serve"], str(version)).signature_def[
                "serving_default"
            ]
            answers.append(
                session.run(
                    {name: output.name for name, output in served.outputs.items()},
                    {served.inputs[name].name: value for name, value in INPUTS.items()},
                )
            )
    before, after = answers
    assert before["sum"] == after["sum"] != 0
    assert before["values"].tolist() == after["values"].tolist()


def test_compacted_saved_model_loads_in_python_with_an_identical_result(versions):
    import tensorflow as tf

    answers = [
        tf.saved_model.load(str(version)).signatures["serving_default"](
            values=tf.constant(INPUTS["values"]), steps=tf.constant(5)
        )
        for version in versions
    ]
    assert answers[0]["sum"].numpy() == answers[1]["sum"].numpy()


def test_compaction_shrinks_the_graph_and_drops_save_operations(versions):
    before, after = map(graph_of, versions)
    assert after.ByteSize() < 0.6 * before.ByteSize()

    def operations(graph):
        return [node.op for function in graph.library.function for node in function.node_def]

    assert operations(after).count("Const") < operations(before).count("Const")
    # A server never saves a model, so compaction drops the save operations.
    assert "SaveV2" in operations(before)
    assert "SaveV2" not in operations(after)
    assert "RestoreV2" in operations(after)
    nodes = [node for function in after.library.function for node in function.node_def]
    assert not [node for node in (*after.node, *nodes) if "_output_shapes" in node.attr]


def test_compaction_keeps_input_and_variable_names(versions):
    before, after = map(graph_of, versions)

    def shared_names(graph):
        return sorted(n.attr["shared_name"].s for n in graph.node if n.op == "VarHandleOp")

    assert shared_names(before) == shared_names(after)
    inputs = [
        {node.name for node in graph.node if node.op == "Placeholder"} for graph in (before, after)
    ]
    assert inputs[0] == inputs[1] >= {"serving_default_steps", "serving_default_values"}
