"""A SavedModel returns the run's outputs in a session and needs only stock operations."""

import shutil

import numpy as np
import pytest
from weekly import weekly_but

import keras_seq
from keras_seq.run import Run
from keras_seq.serving import export_saved_model
from keras_seq.text import InputError
from keras_seq.text.dates import date_pairs

pytestmark = pytest.mark.slow

LINES = [source for source, _ in date_pairs(20, seed=9)] + ["", "  ", "?", "x " * 300]


class Served:
    """A SavedModel loaded into a session, as in a model server."""

    def __init__(self, version):
        import tensorflow_text  # noqa: F401
        from tensorflow.compat import v1

        with v1.Graph().as_default():
            self.session = v1.Session()
            self.signatures = v1.saved_model.load(
                self.session, ["serve"], str(version)
            ).signature_def

    def __call__(self, signature, **inputs):
        found = self.signatures[signature]
        return self.session.run(
            {name: output.name for name, output in found.outputs.items()},
            {found.inputs[name].name: value for name, value in inputs.items()},
        )

    def text(self, lines, signature="serving_default"):
        return self(signature, text=np.array([line.encode() for line in lines], object))


@pytest.fixture(scope="module", params=weekly_but(["transformer", "rnn"], "transformer"))
def both(request, tmp_path_factory):
    """A run's translator with three results per line, and the export of the run."""
    run = request.getfixturevalue({"transformer": "tiny_run", "rnn": "tiny_rnn_run"}[request.param])
    base = tmp_path_factory.mktemp("served")
    notices = []
    version = export_saved_model(
        Run.open(run), base, beam_size=3, n_best=3, verify=5, notice=notices.append
    )
    assert version == base / "1"
    assert notices[0].startswith("5 lines of the validation text come out as the run translates")
    return keras_seq.Translator.load(run, beam_size=3, n_best=3), Served(version), version


def test_served_best_translation_equals_that_of_the_run(both):
    translator, served, _ = both
    expected = [found[0] if found else ("", 0.0, False) for found in translator.translate(LINES)]
    answer = served.text(LINES)
    assert [text.decode() for text in answer["translation"]] == [one[0] for one in expected]
    np.testing.assert_allclose(answer["score"], [one[1] for one in expected], atol=1e-4)
    assert answer["truncated"].tolist() == [one[2] for one in expected]


def test_served_n_best_translations_equal_those_of_the_run(both):
    translator, served, _ = both
    answer = served.text(LINES, "n_best")
    for row, expected in enumerate(translator.translate(LINES)):
        texts = [text.decode() for text in answer["translation"][row]]
        assert texts == [one.text for one in expected] + [""] * (3 - len(expected))
        scores = [one.score for one in expected] or [0.0]
        np.testing.assert_allclose(
            answer["score"][row], scores + [-1e30] * (3 - len(scores)), rtol=1e-6, atol=1e-4
        )


def test_ids_signature_gives_the_same_translations_as_text(both):
    translator, served, _ = both
    source, target = translator.source_tokenizer, translator.target_tokenizer
    lines = LINES[:6] + [""]
    rows = source.encode(lines)
    width = max(map(len, rows)) + 2
    # The graph accepts rows with and without an end token.
    ended = [[*row, 3] if n % 2 else row for n, row in enumerate(rows)]
    ids = np.array([[*row, *[0] * (width - len(row))] for row in ended], "int32")
    answer = served("ids", ids=ids)
    expected = served.text(lines, "n_best")
    for row in range(len(lines)):
        lengths = answer["length"][row]
        found = [answer["ids"][row, n, : lengths[n]] for n in range(3)]
        assert target.decode(found) == [text.decode() for text in expected["translation"][row]]
    np.testing.assert_allclose(answer["score"], expected["score"], rtol=1e-6)
    assert answer["length"][-1].tolist() == [0, 0, 0]
    # Ids outside the vocabulary become unknown words.
    strange = served("ids", ids=np.array([[10**9, -7, 5]], "int32"))
    unknown = served("ids", ids=np.array([[1, 1, 5]], "int32"))
    np.testing.assert_array_equal(strange["ids"], unknown["ids"])


def test_empty_batch_gives_empty_outputs(both):
    _, served, _ = both
    assert all(len(values) == 0 for values in served.text([]).values())
    assert all(len(values) == 0 for values in served.text([], "n_best").values())
    assert all(len(v) == 0 for v in served("ids", ids=np.zeros((0, 0), "int32")).values())
    assert served("ids", ids=np.zeros((2, 0), "int32"))["length"].tolist() == [[0] * 3] * 2


def test_a_row_does_not_depend_on_its_batch(both):
    _, served, _ = both
    together = served.text(LINES * 3, "n_best")
    for row, line in enumerate(LINES):
        alone = served.text([line], "n_best")
        assert alone["translation"][0].tolist() == together["translation"][row].tolist()
        assert alone["truncated"][0].tolist() == together["truncated"][row].tolist()
        np.testing.assert_allclose(alone["score"][0], together["score"][row], rtol=1e-5, atol=1e-5)


@pytest.mark.weekly
def test_export_without_text_has_no_text_operations_or_warmup_requests(tiny_rnn_run, tmp_path):
    from keras_seq.serving.graph_file.operations import ALLOWED, TEXT, operations

    notices = []
    version = export_saved_model(
        Run.open(tiny_rnn_run), tmp_path / "ids", ids_only=True, verify=5, notice=notices.append
    )
    assert notices[0].startswith("5 lines of the validation text come out")
    assert operations(version) <= ALLOWED - TEXT
    assert not (version / "assets.extra").exists()
    files = sorted(path.name for path in (version.parent / "serving").iterdir())
    assert files == ["batching.txt", "kserve.yaml", "kubernetes.yaml"]
    assert set(Served(version).signatures) >= {"serving_default", "ids"}


def test_export_uses_only_operations_of_stock_servers(both):
    from keras_seq.serving.graph_file.operations import ALLOWED, SENTENCEPIECE, operations

    found = operations(both[2])
    assert found <= ALLOWED
    assert found >= SENTENCEPIECE


def test_default_signature_outputs_are_named_stateful_partitioned_call(both):
    _, served, _ = both
    outputs = served.signatures["serving_default"].outputs
    assert {output.name.partition(":")[0] for output in outputs.values()} == {
        "StatefulPartitionedCall"
    }


def test_allowed_operations_exclude_xla_python_and_file_access():
    import tensorflow as tf

    from keras_seq.serving.graph_file.operations import ALLOWED, TEXT

    for name in ALLOWED - TEXT:
        assert hasattr(tf.raw_ops, name) or name in ("If", "While"), name
    wrong = ("Xla", "Addons", "PyFunc", "ReadFile", "WriteFile", "Lookup", "Table", "Dataset")
    assert not [name for name in ALLOWED if any(part in name for part in wrong)]


@pytest.mark.parametrize("planted", ["python", "table", "file"])
def test_python_table_and_file_operations_are_found_in_a_graph(planted, tmp_path):
    import tensorflow as tf

    from keras_seq.serving.graph_file.operations import ALLOWED, operations

    words = tmp_path / "words.txt"
    words.write_text("1\n2\n")
    module = tf.Module()
    if planted == "python":

        def answer(text):
            return tf.py_function(lambda x: x, [text], tf.string)

    elif planted == "table":
        module.table = tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(
                str(words),
                tf.int64,
                tf.lookup.TextFileIndex.WHOLE_LINE,
                tf.int64,
                tf.lookup.TextFileIndex.LINE_NUMBER,
            ),
            -1,
        )

        def answer(text):
            return module.table.lookup(tf.strings.to_number(text, tf.int64))

    else:

        def answer(text):
            return tf.io.read_file(str(words)) + text

    module.answer = tf.function(answer, input_signature=[tf.TensorSpec([None], tf.string)])
    tf.saved_model.save(module, str(tmp_path / "1"))
    found = operations(tmp_path / "1") - ALLOWED
    expected = {"python": "EagerPyFunc", "table": "LookupTableFindV2", "file": "ReadFile"}[planted]
    assert expected in found


def test_export_with_differing_translations_fails_verification(tiny_run, tiny_export):
    from keras_seq.serving import verify_saved_model

    sources = LINES[:5]
    expected = keras_seq.Translator.load(tiny_run)(sources)
    assert verify_saved_model(tiny_export / "1", sources, expected, batch_size=2) > 0
    with pytest.raises(InputError, match=r"for 1 of 5 inputs, .* expected 'other'"):
        verify_saved_model(tiny_export / "1", sources, [*expected[:4], "other"], batch_size=2)


def test_export_with_damaged_variables_fails_verification(tiny_export, tmp_path):
    from keras_seq.serving import verify_saved_model

    version = tmp_path / "1"
    shutil.copytree(tiny_export / "1", version)
    data = next((version / "variables").glob("*.data-*"))
    data.write_bytes(data.read_bytes()[:1000])
    with pytest.raises(InputError, match="does not run by itself"):
        verify_saved_model(version, ["a"], ["b"], batch_size=2)


def test_export_numbers_versions_and_a_failed_one_leaves_nothing(tiny_run, tmp_path, monkeypatch):
    base = tmp_path / "served"
    run = Run.open(tiny_run)
    assert export_saved_model(run, base, verify=0).name == "1"
    assert export_saved_model(run, base, verify=0, beam_size=1).name == "2"
    before = sorted(path.relative_to(base) for path in base.rglob("*"))
    # With this PYTHONHOME, the verification process cannot import TensorFlow.
    monkeypatch.setenv("PYTHONHOME", str(tmp_path))
    with pytest.raises(InputError, match="does not run by itself"):
        export_saved_model(run, base, verify=3)
    assert sorted(path.relative_to(base) for path in base.rglob("*")) == before


def test_exported_graph_file_is_smaller_than_one_megabyte(both):
    translator, _, version = both
    # The file contains the graph without the weights, so it is small.
    assert (version / "saved_model.pb").stat().st_size < 1_000_000
