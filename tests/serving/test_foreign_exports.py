"""An untrusted SavedModel is rejected if its graph could do more than compute outputs."""

import os
import shutil
import time
import tracemalloc

import pytest
from foreign_model import change_graph, save_foreign

from keras_seq.serving import SavedModelTranslator
from keras_seq.serving.graph_file import wire
from keras_seq.serving.graph_file.operations import ALLOWED, check_trusted, operations
from keras_seq.text import InputError
from keras_seq.text.protobuf import field


def copied(text):
    import tensorflow as tf

    return tf.strings.join([text, "!"])


def writes(path):
    """Returns a translation function that also writes a file."""
    import tensorflow as tf

    def translate(text):
        with tf.control_dependencies([tf.raw_ops.WriteFile(filename=path, contents="PWNED")]):
            return tf.strings.join([text, "!"])

    return translate


def writes_in_functions(path):
    import tensorflow as tf

    inner = tf.function(writes(path), input_signature=[tf.TensorSpec([None], tf.string)])

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string)])
    def outer(text):
        return tf.cond(tf.size(text) > 0, lambda: inner(text), lambda: text)

    return outer


def reads(path):
    import tensorflow as tf

    return lambda text: tf.fill(tf.shape(text), tf.io.read_file(path))


def lists(path):
    import tensorflow as tf

    return lambda text: tf.fill(
        tf.shape(text), tf.strings.reduce_join(tf.io.matching_files(f"{path}*"))
    )


def runs_python(path):
    import tensorflow as tf

    def translate(text):
        found = tf.numpy_function(lambda given: given, [text], tf.string)
        found.set_shape([None])
        return found

    return translate


FOREIGN = {
    "WriteFile": writes,
    "ReadFile": reads,
    "MatchingFiles": lists,
    "PyFunc": runs_python,
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("operation", FOREIGN)
def test_graph_with_a_disallowed_operation_is_rejected(tmp_path, operation):
    version = save_foreign(tmp_path / "1", FOREIGN[operation](str(tmp_path / "victim")))
    with pytest.raises(InputError, match=f"never exports: '{operation}'; .* use --trust if you"):
        SavedModelTranslator(version)
    assert not (tmp_path / "victim").exists()


def test_disallowed_operation_in_a_nested_function_is_found(tmp_path):
    version = save_foreign(tmp_path / "1", writes_in_functions(str(tmp_path / "victim")))
    with pytest.raises(InputError, match="WriteFile"):
        check_trusted(version)


def test_untrusted_model_runs_no_code_without_the_trust_option(tmp_path, keras_seq_command):
    import tensorflow as tf

    victim = tmp_path / "victim"
    version = save_foreign(
        tmp_path / "1",
        copied,
        at_start=lambda: tf.raw_ops.WriteFile(filename=str(victim), contents="PWNED"),
    )
    found = keras_seq_command("translate", version, "a dog")
    assert found.code == 2
    assert "'WriteFile'" in found.error and "--trust" in found.error
    assert not victim.exists()
    # The attack is real: with --trust, the graph writes the file.
    found = keras_seq_command("translate", version, "a dog", "--trust")
    assert (found.code, found.lines) == (0, ["a dog!"])
    assert victim.read_text() == "PWNED"


def test_server_rejects_an_untrusted_model_at_start_and_while_watching(tmp_path):
    import asyncio

    from keras_seq.serving.http.watcher import ModelWatcher

    victim = str(tmp_path / "victim")
    base = tmp_path / "served"
    save_foreign(base / "2", writes(victim))
    notices = []
    watcher = ModelWatcher(base, notices.append)
    with pytest.raises(InputError, match="WriteFile"):
        watcher.start(2, base / "2")
    save_foreign(base / "1", copied)
    watcher.start(1, base / "1")
    asyncio.run(watcher.check())
    assert watcher.current.version == 1
    assert len(notices) == 1 and "version 2 skipped" in notices[0]
    assert not os.path.exists(victim)
    watcher.close()
    # With trust=True the model is served, and its warm-up already runs the operation.
    trusting = ModelWatcher(base, notices.append, trust=True)
    trusting.start(2, base / "2")
    assert os.path.exists(victim)
    trusting.close()


def test_own_export_passes_the_trust_check_within_two_seconds(tiny_export):
    # Time of the processor, which other programs do not lengthen.
    started = time.process_time()
    check_trusted(tiny_export / "1")
    assert time.process_time() - started < 2
    assert operations(tiny_export / "1") <= ALLOWED
    assert not ALLOWED & {"WriteFile", "ReadFile", "SaveV2", "MergeV2Checkpoints", "PyFunc"}


def test_operations_equal_those_read_by_tensorflow(tiny_export):
    from tensorflow.core.protobuf import saved_model_pb2

    model = saved_model_pb2.SavedModel()
    model.ParseFromString((tiny_export / "1" / "saved_model.pb").read_bytes())
    [meta_graph] = model.meta_graphs
    expected = {node.op for node in meta_graph.graph_def.node}
    for function in meta_graph.graph_def.library.function:
        expected |= {node.op for node in function.node_def}
    assert operations(tiny_export / "1") == expected


@pytest.fixture
def export_copy(tiny_export, tmp_path):
    return shutil.copytree(tiny_export / "1", tmp_path / "copy" / "1")


def restoring_node(meta_graph):
    name = meta_graph.saver_def.restore_op_name
    [node] = [node for node in meta_graph.graph_def.node if node.name == name]
    return node


def call_in_another_node(meta_graph):
    more = meta_graph.graph_def.node.add()
    more.CopyFrom(restoring_node(meta_graph))
    more.name = "more"


def read_in_the_graph(meta_graph):
    more = meta_graph.graph_def.node.add()
    more.name, more.op = "more", "RestoreV2"


def use_the_restoring_node(meta_graph):
    more = meta_graph.graph_def.node.add()
    more.name, more.op = "more", "Identity"
    more.input.append(f"{meta_graph.saver_def.restore_op_name}:0")


def return_the_restoring_node(meta_graph):
    output = meta_graph.signature_def["n_best"].outputs["translation"]
    output.name = f"{meta_graph.saver_def.restore_op_name}:0"


def restore_from_another_file(meta_graph):
    restoring_node(meta_graph).input[0] = "other:0"


def read_another_file_in_the_function(meta_graph):
    for function in meta_graph.graph_def.library.function:
        for node in function.node_def:
            if node.op == "RestoreV2":
                node.input[0] = "constant:output:0"


def call_by_an_attribute_of_an_attribute(meta_graph):
    name = restoring_node(meta_graph).attr["f"].func.name
    more = meta_graph.graph_def.node.add()
    more.name, more.op = "more", "PartitionedCall"
    more.attr["f"].func.name = "harmless"
    more.attr["f"].func.attr["g"].func.name = name


def name_a_gradient(meta_graph):
    gradient = meta_graph.graph_def.library.gradient.add()
    gradient.function_name, gradient.gradient_func = "one", "other"


@pytest.mark.parametrize(
    "change",
    [
        call_in_another_node,
        read_in_the_graph,
        use_the_restoring_node,
        return_the_restoring_node,
        restore_from_another_file,
        read_another_file_in_the_function,
        call_by_an_attribute_of_an_attribute,
        name_a_gradient,
    ],
)
def test_restore_operation_outside_of_restoring_is_rejected(export_copy, change):
    check_trusted(export_copy)
    change_graph(export_copy, change)
    with pytest.raises(InputError, match="reads variables outside of its restore operation"):
        check_trusted(export_copy)


def test_field_number_beyond_32_bits_does_not_hide_an_operation(tmp_path):
    """Protobuf's C++ parser drops the high bits and reads `92 80 80 80 10` as field 2."""

    def message(number, content):
        return bytes([number * 8 + 2, len(content)]) + content

    hidden = b"\x92\x80\x80\x80\x10" + bytes([9]) + b"WriteFile"
    node = message(1, b"more") + message(2, b"Cast") + hidden
    (tmp_path / "saved_model.pb").write_bytes(message(2, message(2, message(1, node))))
    with pytest.raises(InputError, match="damaged: not the graph of a SavedModel"):
        check_trusted(tmp_path)


def test_wrong_wire_type_for_the_name_does_not_hide_an_operation(tmp_path):
    """TensorFlow ignores a 4-byte field 2; a naive parser would read Cast as the operation."""
    from tensorflow.core.protobuf import saved_model_pb2

    def message(number, content):
        return bytes([number * 8 + 2, len(content)]) + content

    node = message(1, b"more") + message(2, b"WriteFile") + b"\x15Cast"
    content = message(2, message(2, message(1, node)))
    model = saved_model_pb2.SavedModel.FromString(content)
    assert model.meta_graphs[0].graph_def.node[0].op == "WriteFile"
    (tmp_path / "saved_model.pb").write_bytes(content)
    with pytest.raises(InputError, match="damaged: not the graph of a SavedModel"):
        check_trusted(tmp_path)


@pytest.mark.parametrize("name", ["saved_model.cpb", "saved_model.pbtxt"])
def test_additional_graph_file_in_another_format_is_rejected(export_copy, name):
    (export_copy / name).touch()
    with pytest.raises(InputError, match=f"{name}: cannot be checked"):
        check_trusted(export_copy)


@pytest.mark.parametrize("kind", ["pipe", "link"])
def test_pipe_or_link_among_the_variables_is_rejected(export_copy, keras_seq_command, kind):
    path = export_copy / "variables" / "variables.index"
    path.unlink()
    os.mkfifo(path) if kind == "pipe" else path.symlink_to("/dev/zero")
    found = keras_seq_command("translate", export_copy, "a dog")
    assert found.code == 2
    assert f"variables.index: a {kind}, expected a regular file" in found.error


def test_large_graph_file_of_zeros_is_rejected_quickly(export_copy):
    path = export_copy / "saved_model.pb"
    path.write_bytes(b"")
    os.truncate(path, 200 << 20)
    started = time.monotonic()
    with pytest.raises(InputError, match="damaged: not the graph"):
        check_trusted(export_copy)
    assert time.monotonic() - started < 10


def test_trust_option_is_rejected_for_a_run_directory(tiny_run, keras_seq_command):
    found = keras_seq_command("translate", tiny_run, "a dog", "--trust")
    assert found.code == 2
    assert "expected a SavedModel, received a run" in found.err


@pytest.mark.parametrize(
    ("inner", "numbers", "words"),
    [
        (b"\x12\x00", (), "contains several graphs, expected one"),
        (b"\x0a\x00", (2,), "more than 50,000 fields"),
        (b"\x0a\x00", (2, 2), "more than 50,000 fields"),
        (b"\x1a\x00", (2, 1), "more than 50,000 fields"),
        (b"\x0a\x00", (2, 1, 5), "more than 50,000 fields"),
    ],
    ids=["graphs", "nodes", "functions", "inputs", "attributes"],
)
def test_file_of_tiny_fields_is_rejected_in_little_memory(
    tmp_path, monkeypatch, inner, numbers, words
):
    # The real limit is 4 million fields.
    monkeypatch.setattr(wire, "_MAX_FIELDS", 50_000)
    content = inner * 100_000
    for number in reversed(numbers):
        content = field(number, content)
    (tmp_path / "saved_model.pb").write_bytes(field(2, content) if numbers else content)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=words):
            check_trusted(tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 6 << 20
    finally:
        tracemalloc.stop()
