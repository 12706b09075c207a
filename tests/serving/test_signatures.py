"""Signatures of a SavedModel read without TensorFlow equal those read by TensorFlow."""

import pytest

from keras_seq.serving.graph_file.signatures import TensorInfo, read_signatures
from keras_seq.text import InputError


def as_tensorflow_reads_it(version):
    from tensorflow.core.framework import types_pb2
    from tensorflow.core.protobuf import saved_model_pb2

    model = saved_model_pb2.SavedModel()
    model.ParseFromString((version / "saved_model.pb").read_bytes())

    def tensors(infos):
        return {
            name: TensorInfo(
                types_pb2.DataType.Name(info.dtype),
                tuple(None if axis.size == -1 else axis.size for axis in info.tensor_shape.dim)
                if not info.tensor_shape.unknown_rank
                else None,
                info.name,
            )
            for name, info in infos.items()
        }

    [graph] = model.meta_graphs
    return {
        name: (tensors(signature.inputs), tensors(signature.outputs))
        for name, signature in graph.signature_def.items()
    }


def test_export_signatures_equal_those_read_by_tensorflow(tiny_export):
    found = read_signatures(tiny_export / "1")
    assert {"serving_default", "n_best", "ids"} <= set(found)
    assert found == as_tensorflow_reads_it(tiny_export / "1")


def test_unknown_rank_and_unknown_sizes_are_none(tmp_path):
    from tensorflow.core.framework import types_pb2
    from tensorflow.core.protobuf import saved_model_pb2

    model = saved_model_pb2.SavedModel()
    signature = model.meta_graphs.add().signature_def["f"]
    signature.inputs["any"].dtype = types_pb2.DT_DOUBLE
    signature.inputs["any"].tensor_shape.unknown_rank = True
    signature.inputs["rows"].dtype = types_pb2.DT_INT64
    for size in (-1, 3):
        signature.inputs["rows"].tensor_shape.dim.add(size=size)
    (tmp_path / "saved_model.pb").write_bytes(model.SerializeToString())
    found = read_signatures(tmp_path)
    assert found["f"].inputs["any"] == ("DT_DOUBLE", None, "")
    assert found["f"].inputs["rows"] == ("DT_INT64", (None, 3), "")
    assert found == as_tensorflow_reads_it(tmp_path)


def test_damaged_graph_files_raise_nothing_but_input_error(tiny_export, tmp_path):
    whole = (tiny_export / "1" / "saved_model.pb").read_bytes()
    cuts = [whole[: len(whole) * part // 100] for part in range(100)]
    flips = [
        whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :] for place in range(40)
    ]
    # A graph whose field is longer than the graph, before another graph.
    torn = b"\x12\x02\x0a\x05\x12\x00"
    refused = 0
    for content in [b"\xff" * 20, b"\x12\x80", b"{}", torn, *cuts, *flips]:
        (tmp_path / "saved_model.pb").write_bytes(content)
        try:
            read_signatures(tmp_path)
        except InputError as error:
            refused += 1
            assert (
                str(error) == f"{tmp_path}/saved_model.pb: damaged: not the graph of a SavedModel"
            )
    assert refused > 90


def test_missing_graph_file_raises_input_error(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_signatures(tmp_path)
