"""Damaged and hostile exports for `keras_seq.runtime` are one clear line.

The exports are those of `golden/formats-1.tar.xz`, because an export takes long to make.
"""

import json
import os
import random
import shutil
from pathlib import Path

import numpy as np
import pytest
from golden_archive import unpack

from keras_seq import runtime
from keras_seq.search.options import TextSearchOptions
from keras_seq.serving.onnx_translator import OnnxTranslator
from keras_seq.text import InputError

pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")

LINES = ["a", "b d", ""]
# Values of wrong types, out of bounds, or with wrong contents.
WRONG = (None, "x\ny", "\ud800", -1, 10**30, 1.5, float("nan"), True, {}, [None], [[]])
RULES = {"form": "none", "lowercase": False, "separator": " "}


@pytest.fixture(scope="module")
def golden(tmp_path_factory):
    return unpack("formats-1.tar.xz", tmp_path_factory.mktemp("formats"))


@pytest.fixture
def export(golden, tmp_path):
    return shutil.copytree(golden / "onnx", tmp_path / "export")


def stored_of(folder):
    return json.loads((folder / "model.json").read_text(encoding="utf-8"))


def change(folder, place, value):
    """Replaces the entry of `model.json` at a place such as `search.alpha`."""
    stored = part = stored_of(folder)
    *path, last = place.split(".")
    for name in path:
        part = part[name]
    part[last] = value
    (folder / "model.json").write_text(json.dumps(stored), encoding="utf-8")


def refusal(folder):
    """Returns the error of loading or running an export; None if it answers."""
    try:
        answers = runtime.load(folder)(LINES)
    except runtime.RuntimeInputError as error:
        assert "\n" not in str(error)
        return str(error)
    assert len(answers) == 3 and not any("\n" in answer for answer in answers)
    return None


def places(stored, prefix=""):
    for name, value in stored.items():
        yield f"{prefix}{name}"
        if isinstance(value, dict) and name != "options":
            yield from places(value, f"{prefix}{name}.")


def test_each_entry_of_model_json_may_be_missing_or_wrong(export):
    original = (export / "model.json").read_bytes()
    refused = set()
    for place in places(json.loads(original)):
        for value in WRONG:
            change(export, place, value)
            error = refusal(export)
            if error is not None:
                refused.add(place)
                assert place.rpartition(".")[2] in error or place in ("format", "continues"), error
            (export / "model.json").write_bytes(original)
        stored = part = json.loads(original)
        *path, last = place.split(".")
        for name in path:
            part = part[name]
        del part[last]
        (export / "model.json").write_text(json.dumps(stored), encoding="utf-8")
        error = refusal(export)
        assert error is None or last in error or place == "format", error
        (export / "model.json").write_bytes(original)
    assert {*places(json.loads(original))} - refused == {"keras_seq"}


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("max_length", "5", "max_length: received '5', expected an integer from 1 to 100000"),
        ("task", ["a"], "task: received ['a'], expected one of translate, vae"),
        ("labels", ["a\nb"], "labels: received ['a\\nb'], expected a list of 1 to 100,0"),
        ("search", None, "search: received None, expected an object"),
        ("search.beam_size", 10**9, "search.beam_size: received 1000000000, expected an integer"),
        ("search.top_p", 0, "search.top_p: received 0, expected a number from above 0 to 1"),
        ("search.prefix", [300], "search.prefix: received 300, expected an id below 268"),
        ("search.forbidden_tokens", [10**9], "search.forbidden_tokens: received [1000000000]"),
        (
            "search.forbidden_sequences",
            [[]],
            "expected a list of 0 to 100,000 entries, each a list of 1 to 100,000 entries, each an "
            "integer from 0 to 1000000",
        ),
        ("labels", [], "labels: received [], expected a list of 1 to 100,000 entries, each a str"),
        ("source.separator", "a" * 101, "aa, expected a string of 1 to 100 characters"),
        ("threshold", 10**400, "expected a number from 0 to 1"),
        ("search.end_token", 268, "search.end_token: received 268, expected an id below 268"),
        ("source.form", "x", "source.form: received 'x', expected one of none, nfc, nfd, nfkc"),
        ("source.separator", "", "source.separator: received '', expected a string"),
        ("source.features", ["a"], "source.feature_separator: missing, expected a string"),
        ("source.file", "../a.model", "source.file: received '../a.model', expected one of sou"),
        ("source.file", "a\nb", "source.file: received 'a\\nb', expected one of source.model"),
        ("options.alpha", 3, "options.'alpha': received 3, expected an object"),
        ("options.alpha", {}, "options.'alpha'.type: missing, expected one of string, integer"),
        ("options.alpha.maximum", "x", "options.'alpha'.maximum: received 'x', expected a number"),
    ],
)
def test_wrong_entry_is_named_with_the_file(export, place, value, message):
    change(export, place, value)
    error = refusal(export)
    assert error.startswith(f"{export / 'model.json'}: ") and message in error
    with pytest.raises(InputError) as same:
        OnnxTranslator(export)
    assert str(same.value) == error


def test_search_of_too_many_tokens_is_refused(export):
    with pytest.raises(runtime.RuntimeInputError, match="batch_size: received 100,000, expected"):
        runtime.load(export, batch_size=100_000, beam_size=1000)
    # No size of a batch is small enough.
    settings = {"method": "sampling", "n_best": 100_000, "max_length": 10_000}
    change(export, "options.n_best.maximum", 100_000)
    with pytest.raises(runtime.RuntimeInputError) as error:
        runtime.load(export, batch_size=1, **settings)
    assert str(error.value) == (
        "n_best x max_length: received 100,000 x 10,000, expected at most 268,435,456 tokens"
    )


def test_bounds_of_the_search_equal_those_of_the_settings():
    fields = TextSearchOptions.__dataclass_fields__
    for name, schema in runtime._SEARCH.items():
        if name not in fields:
            # Ids instead of text.
            assert name in ("forbidden_tokens", "forbidden_sequences", "start_token", "end_token")
            continue
        words = (("ge", "minimum"), ("gt", "exclusiveMinimum"), ("le", "maximum"))
        bounds = {word: schema[word] for _, word in words if word in schema}
        if name != "prefix":
            metadata = fields[name].metadata
            assert bounds == {word: metadata[key] for key, word in words if key in metadata}, name


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
@pytest.mark.parametrize("name", ["model.json", "source.model", "step.onnx"])
def test_pipe_is_refused_instead_of_waited_for(export, name):
    (export / name).unlink()
    os.mkfifo(export / name)
    assert f"{export / name}: cannot be read: it is not a regular file" in refusal(export)
    with pytest.raises(InputError, match=rf"{name}: .*pipe"):
        OnnxTranslator(export)


def test_link_is_followed_by_the_runtime_and_refused_by_the_command(export, tmp_path):
    (export / "source.model").rename(tmp_path / "elsewhere")
    (export / "source.model").symlink_to(tmp_path / "elsewhere")
    assert refusal(export) is None
    with pytest.raises(InputError, match=r"source\.model: .*link"):
        OnnxTranslator(export)
    # The directory itself may be a link, as that of a run.
    (export / "source.model").unlink()
    (tmp_path / "elsewhere").rename(export / "source.model")
    (tmp_path / "link").symlink_to(export)
    assert OnnxTranslator(tmp_path / "link").translate(["a"])


def test_folder_that_cannot_be_opened_is_one_line(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for folder in (tmp_path / "loop", tmp_path / ("a" * 300), tmp_path / "missing", __file__):
        with pytest.raises(runtime.RuntimeInputError, match="not an export"):
            runtime.load(folder)
        with pytest.raises(InputError):
            OnnxTranslator(folder)


@pytest.mark.parametrize(
    ("name", "size"),
    [("model.json", 65 << 20), ("source.model", 65 << 20), ("start.onnx", 3 << 30)],
)
def test_file_that_is_too_large_is_not_read(export, name, size):
    with open(export / name, "r+b") as file:
        file.truncate(size)
    assert f"{export / name}: {size:,} bytes, expected at most" in refusal(export)


def test_damaged_graphs_are_one_line(export, capfd):
    generator = random.Random(3)
    damaged = 0
    for name in ("start.onnx", "step.onnx", "grow.onnx"):
        content = (export / name).read_bytes()
        for number in range(15):
            changed = bytearray(content)
            if number % 5:
                changed[generator.randrange(len(changed))] ^= 1 << generator.randrange(8)
            else:
                del changed[generator.randrange(len(changed)) :]
            (export / name).write_bytes(changed)
            error = refusal(export)
            if error is not None:
                damaged += 1
                assert str(export) in error
        (export / name).write_bytes(content)
    assert damaged > 20
    # onnxruntime prints nothing besides.
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("entries", "sizes", "message"),
    [
        (
            {"search.forbidden_sequences": [[267]]},
            [100],
            "it has 100 logits, expected at least 268",
        ),
        ({"search.repetition_penalty": 2}, [267], "it has 267 logits, expected at least 268"),
        ({"search.repetition_penalty": 2}, [300, 268], "logits is float32 (2, 2, 268)"),
        ({"search.no_repeat_ngram_size": 1}, [300, 268], "logits is float32 (2, 2, 268)"),
        ({"task": "language-model", "continues": True}, [100], "it has 100 logits, expected at"),
    ],
)
def test_too_few_logits_are_one_line(export, monkeypatch, entries, sizes, message):
    """Ids of the settings, the prompt and the steps before index the logits."""
    for place, value in entries.items():
        change(export, place, value)
    call = runtime.Graph.__call__

    def changed_call(self, inputs, outputs=None):
        if "token" in inputs:
            inputs = {**inputs, "token": np.minimum(inputs["token"], 267)}
        found = call(self, inputs, outputs)
        if "logits" in found:
            logits = found["logits"].numpy()
            size = sizes[min(int(inputs["position"]), len(sizes) - 1)]
            # The last logits are the highest.
            wide = np.concatenate([logits, np.full((*logits.shape[:2], 32), 9, np.float32)], -1)
            found["logits"] = wide[..., :size]
        return found

    monkeypatch.setattr(runtime.Graph, "__call__", changed_call)
    assert f"{export / 'step.onnx'}: damaged: {message}" in refusal(export)


@pytest.mark.parametrize("features", [[], ["a"]])
def test_prompt_of_a_larger_vocabulary_is_one_line(export, features):
    """A prompt is of the source vocabulary, which an export may make larger than the target's."""
    change(export, "task", "language-model")
    change(export, "continues", True)
    change(export, "target", stored_of(export)["source"])
    change(export, "source.feature_separator", "\t")
    change(export, "source.features", features)
    model = runtime.load(export)
    with pytest.raises(runtime.RuntimeInputError, match="it has 268 logits, expected at least 2"):
        model(["a\tunknown\ta"])


def test_names_in_a_graph_do_not_reach_the_terminal(export):
    """onnxruntime quotes the names of nodes and inputs."""
    onnx = pytest.importorskip("onnx")
    name = "\x1b[31m" + "red" * 300
    value = onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [1])
    graphs = {
        "cannot be loaded: ": ([onnx.helper.make_node("Unknown", [name], ["y"], name=name)], []),
        "unknown input ": ([onnx.helper.make_node("Identity", [name], ["y"])], [value]),
    }
    for message, (nodes, inputs) in graphs.items():
        output = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1])
        graph = onnx.helper.make_graph(nodes, "g", inputs, [output])
        operators = [onnx.helper.make_opsetid("", 18)]
        model = onnx.helper.make_model(graph, opset_imports=operators, ir_version=9)
        (export / "start.onnx").write_bytes(model.SerializeToString())
        with pytest.raises(runtime.RuntimeInputError) as error:
            runtime.Graph(export / "start.onnx", 1)({})
        assert f"start.onnx: {message}" in str(error.value)
        assert "\\x1b[31mred" in str(error.value) and "\x1b" not in str(error.value)
        assert len(str(error.value)) < 400


@pytest.mark.parametrize(
    ("graph", "output"),
    [("start", "memory_mask"), ("step", "values"), ("step", "new_state_beam_ancestors")],
)
def test_output_that_is_a_list_is_one_line(export, graph, output):
    onnx = pytest.importorskip("onnx")
    path = export / f"{graph}.onnx"
    model = onnx.load(path)
    for node in model.graph.node:
        node.output[:] = ["array" if name == output else name for name in node.output]
        node.input[:] = ["array" if name == output else name for name in node.input]
    model.graph.node.append(onnx.helper.make_node("SequenceConstruct", ["array"], [output]))
    (place,) = [i for i, value in enumerate(model.graph.output) if value.name == output]
    kind = model.graph.output[place].type.tensor_type
    sequence = onnx.helper.make_tensor_sequence_value_info(output, kind.elem_type, None)
    model.graph.output[place].CopyFrom(sequence)
    onnx.save(model, path)
    name = output.removeprefix("new_")
    assert refusal(export) == f"{path}: damaged: {name} is a list, not an array"


def test_graph_that_needs_too_much_memory_is_not_called_damaged(tmp_path):
    onnx = pytest.importorskip("onnx")
    size = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.INT64, [1])
    output = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [None])
    node = onnx.helper.make_node("ConstantOfShape", ["x"], ["y"])
    graph = onnx.helper.make_graph([node], "g", [size], [output])
    operators = [onnx.helper.make_opsetid("", 18)]
    model = onnx.helper.make_model(graph, opset_imports=operators, ir_version=9)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    filled = runtime.Graph(tmp_path / "model.onnx", 1)
    assert filled({"x": np.array([3], np.int64)})["y"].numpy().tolist() == [0, 0, 0]
    with pytest.raises(runtime.RuntimeInputError, match=r"model\.onnx: cannot be run: .*onnx"):
        filled({"x": np.array([1 << 60], np.int64)})


@pytest.mark.parametrize(
    ("place", "value", "options", "message"),
    [
        ("options.beam_size.enum", ["\x1b[31m"], {"beam_size": 9}, r"one of \x1b[31m"),
        ("options.seed", {"type": "integer", "maximum": 8}, {"seed": 9}, "an integer to 8"),
        ("options.\x1b[31m", {"type": "integer"}, {"x": 9}, r"expected one of \x1b[31m"),
    ],
)
def test_options_of_an_export_do_not_reach_the_terminal(export, place, value, options, message):
    change(export, place, value)
    with pytest.raises(runtime.RuntimeInputError) as error:
        runtime.load(export, **options)
    assert message in str(error.value) and str(error.value).isprintable()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("tokens", "tokenz", "step.onnx: damaged: it lacks tokens"),
        ("parents", "parentz", "step.onnx: unknown input 'parentz'"),
        ("memory_mask", "memory_mazk", "step.onnx: unknown input 'memory_mazk'"),
    ],
)
def test_renamed_inputs_and_outputs_are_one_line(export, old, new, message):
    content = (export / "step.onnx").read_bytes()
    assert old.encode() in content
    (export / "step.onnx").write_bytes(content.replace(old.encode(), new.encode()))
    assert message in refusal(export)


def graph_of(outputs):
    """A graph whose outputs do not depend on its inputs."""

    def call(inputs, names=None):
        return outputs

    call.path = Path("model.onnx")
    return call


def classifier(tmp_path, outputs, **entries):
    """A classifier of word pieces with the labels x and y, whose graph has these outputs."""
    pieces = {"lowercase": True, "strip_accents": False, "vocabulary": ["[PAD]", "a", "b\rc"]}
    (tmp_path / "source.json").write_text(json.dumps(pieces), encoding="utf-8")
    stored = {
        "format": runtime.FORMAT,
        "task": "classify",
        "batch_size": 2,
        "options": {},
        "max_length": 5,
        "labels": ["x", "y"],
        "source": {"file": "source.json"},
        **entries,
    }
    (tmp_path / "model.json").write_text(json.dumps(stored), encoding="utf-8")
    graph = graph_of(outputs)
    return runtime.model_of(tmp_path, runtime.MODELS, lambda name: graph, {})


def test_graphs_whose_outputs_do_not_fit_are_one_line(tmp_path):
    right = np.array([[0.25, 0.75]], np.float32)
    assert classifier(tmp_path, {"probabilities": right})(["a"]) == ["y"]
    for wrong in (
        {},
        {"probabilities": right[0]},
        {"probabilities": right[:, :1]},
        {"probabilities": right.astype(np.int32)},
        {"probabilities": np.tile(right, (2, 1))},
    ):
        with pytest.raises(runtime.RuntimeInputError, match=r"^model.onnx: damaged: "):
            classifier(tmp_path, wrong)(["a"])
    tags = {"tags": np.array([[1, 0]], np.int32)}
    assert classifier(tmp_path, tags, task="tag")(["a"]) == ["y"]
    for row in ([2, 0], [-1, 0], [0], [[0], [0]]):
        wrong = {"tags": np.array([row], np.int32)}
        with pytest.raises(runtime.RuntimeInputError, match=r"^model.onnx: damaged: "):
            classifier(tmp_path, wrong, task="tag")(["a"])


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b'{"lowercase": 1, "strip_accents": false, "vocabulary": ["a"]}',
        b'{"lowercase": true, "strip_accents": false, "vocabulary": [1]}',
        b'{"lowercase": true, "strip_accents": false, "vocabulary": ["a\\nb"]}',
    ],
)
def test_damaged_word_pieces_are_one_line(tmp_path, content):
    classifier(tmp_path, {})
    (tmp_path / "source.json").write_bytes(content)
    with pytest.raises(runtime.RuntimeInputError, match=r"source\.json: ") as error:
        runtime.WordPieces(tmp_path, {"file": "source.json"})
    assert "\n" not in str(error.value)


def test_decoded_text_is_one_line_and_unknown_ids_are_refused(golden, tmp_path):
    classifier(tmp_path, {})
    pieces = runtime.WordPieces(tmp_path, {"file": "source.json"})
    assert pieces.decode([[0, 5, 5]]) == ["b c b c"]
    words = runtime.Vocabulary(golden / "onnx", {"file": "source.model", **RULES})
    # The bytes of a line feed and a carriage return.
    ids = [words._processor.piece_to_id(piece) for piece in ("<0x0A>", "<0x0D>")]
    assert ids and not {"\n", "\r"} & {*words.decode([ids])[0]}
    for vocabulary in (pieces, words):
        with pytest.raises(runtime.RuntimeInputError, match="generates the id 1000: export it"):
            vocabulary.decode([[5], [1000]])


@pytest.mark.parametrize("location", ["secret", "../secret", "{folder}/secret"])
def test_graph_reads_no_file_outside_of_the_export(export, tmp_path, location):
    """Data of a graph may be in another file, whose path the graph names."""
    onnx = pytest.importorskip("onnx")
    for folder in (export, tmp_path):
        (folder / "secret").write_bytes(b"S" * 16)
    weights = onnx.TensorProto(name="w", data_type=onnx.TensorProto.UINT8, dims=[16])
    weights.data_location = onnx.TensorProto.EXTERNAL
    weights.external_data.add(key="location", value=location.format(folder=tmp_path))
    output = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.UINT8, [16])
    node = onnx.helper.make_node("Identity", ["w"], ["y"])
    graph = onnx.helper.make_graph([node], "g", [], [output], [weights])
    operators = [onnx.helper.make_opsetid("", 18)]
    model = onnx.helper.make_model(graph, opset_imports=operators, ir_version=9)
    (export / "step.onnx").write_bytes(model.SerializeToString())
    if location == "secret":
        found = runtime.Graph(export / "step.onnx", 1)({})
        assert found["y"].numpy().tobytes() == b"S" * 16
    else:
        assert "step.onnx: cannot be loaded: " in refusal(export)
