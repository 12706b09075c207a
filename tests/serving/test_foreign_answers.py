"""What a graph of someone else computes is checked before it becomes a translation."""

import re

import pytest
from foreign_model import change_graph, save_foreign

from keras_seq.serving import SavedModelTranslator
from keras_seq.text import InputError


def exclaimed(text, end="!"):
    import tensorflow as tf

    return tf.strings.join([text, end])


def with_line_breaks(text):
    return exclaimed(text, "\n1\r\n2\r3\u2028")


def test_line_feeds_in_an_answer_become_spaces(tmp_path):
    translator = SavedModelTranslator(save_foreign(tmp_path / "1", with_line_breaks))
    # Files are split into lines at line feeds only, so a line separator stays.
    assert translator(["a", "b"]) == ["a 1  2 3\u2028", "b 1  2 3\u2028"]


def rename_outputs(name):
    def change(meta_graph):
        meta_graph.signature_def["n_best"].outputs["score"].name = name

    return change


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("x:x", "'x:x' is not the name of a tensor"),
        ("x", "'x' is not the name of a tensor"),
        ("x:\u0661", "is not the name of a tensor"),
        ("text:99999", "'text:99999' is not the name of a tensor"),
        ("", "'' is not the name of a tensor"),
        ("nowhere:0", "the graph has no 'nowhere:0'"),
        ("text:7", "does not have output 7"),
        ("\n" * 200 + ":1", "the graph has no '\\n\\n"),
    ],
)
def test_invalid_tensor_name_in_a_signature_is_an_error_of_one_line(tmp_path, name, words):
    version = save_foreign(tmp_path / "1", exclaimed)
    change_graph(version, rename_outputs(name))
    with pytest.raises(InputError, match=re.escape(words)) as caught:
        SavedModelTranslator(version)(["a"])
    message = str(caught.value).removeprefix(f"{version}: ")
    assert "\n" not in message and len(message) < 400
    assert message.startswith(("damaged: ", "cannot be run: "))


def test_other_number_of_rows_is_an_error(tmp_path):
    import tensorflow as tf

    def repeated(text):
        return tf.concat([text, text[:1]], 0)

    version = save_foreign(tmp_path / "1", repeated)
    with pytest.raises(InputError, match="number of outputs differs from that of the inputs"):
        SavedModelTranslator(version)(["a", "b"])


def lengths(text):
    import tensorflow as tf

    return tf.strings.length(text)


def long_rows(text):
    import tensorflow as tf

    return tf.fill(tf.concat([tf.shape(text), [2]], 0), "a")[:, :, None]


@pytest.mark.parametrize(
    ("output", "make"),
    [
        ("score", lengths),
        ("score", exclaimed),
        ("translation", lengths),
        ("truncated", exclaimed),
        ("translation", long_rows),
    ],
)
def test_answer_that_differs_from_its_signature_is_an_error(tmp_path, output, make):
    from tensorflow.core.framework import types_pb2

    makers = {"translate": exclaimed, **{output.replace("translation", "translate"): make}}
    version = save_foreign(tmp_path / "1", **makers)
    dtypes = {"translation": "DT_STRING", "score": "DT_FLOAT", "truncated": "DT_BOOL"}

    def claim(meta_graph):
        for name, info in meta_graph.signature_def["n_best"].outputs.items():
            info.dtype = types_pb2.DataType.Value(dtypes[name])
            del info.tensor_shape.dim[2:]

    change_graph(version, claim)
    expected = rf"{version}: damaged: output '{output}' is .*, expected {dtypes[output]}"
    with pytest.raises(InputError, match=expected):
        SavedModelTranslator(version)(["a", "b"])
