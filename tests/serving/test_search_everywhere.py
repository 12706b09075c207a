"""The same search options give the same translations in Python, `translate` and the exports.

The SavedModel runs through TensorFlow's C API in a process without any package, like a stock model
server that has only the operations of `keras_seq.serving.graph_file.operations`. The ONNX export
runs in `keras_seq.runtime`, the one for LiteRT in `keras_seq.litert`.
"""

from typing import NamedTuple

import keras
import pytest
from stock_server import StockProcess, Tensor
from weekly import weekly_but

import keras_seq
from keras_seq import litert, runtime
from keras_seq.text.dates import date_pairs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        keras.backend.backend() != "tensorflow", reason="only TensorFlow writes a SavedModel"
    ),
]

LINES = [source for source, _ in date_pairs(12, seed=3)] + ["", "1.2.2003", "?"]


class Case(NamedTuple):
    """Search options and the name of the run's fixture."""

    run: str
    options: dict


CASES = {
    # All beam search options; each changes the results of a model trained for four updates.
    "beam": Case(
        "tiny_run",
        {
            "beam_size": 4,
            "n_best": 3,
            "patience": 1.5,
            "length_normalization": "gnmt",
            "alpha": 0.6,
            "coverage_penalty": 0.3,
            "min_length": 4,
            "min_length_ratio": 0.25,
            "max_length": 14,
            "max_length_ratio": 1.5,
            "max_length_extra": 3,
            "no_repeat_ngram_size": 3,
            "repetition_penalty": 1.2,
            "forbidden": ["-0", "9"],
            "prefix": "20",
            "batch_size": 5,
        },
    ),
    "sampling": Case(
        "tiny_rnn_run",
        {
            "method": "sampling",
            "n_best": 3,
            "temperature": 0.8,
            "top_k": 20,
            "top_p": 0.95,
            "seed": 4294967295,
            "min_length": 3,
            "no_repeat_ngram_size": 2,
            "forbidden": "1",
        },
    ),
}


def arguments(options):
    for name, value in options.items():
        for one in value if isinstance(value, list) else [value]:
            yield f"--{name.replace('_', '-')}={one}"


def test_cases_cover_every_search_setting():
    used = {name for case in CASES.values() for name in case.options}
    # An export has no place for reranking, and refuses it (tests/search/test_search_settings.py).
    reranking = {"rerank", "candidates"}
    assert used == set(keras_seq.settings.SearchSettings.model_fields) - reranking


@pytest.mark.parametrize("name", weekly_but(CASES, "beam"))
def test_search_options_work_equally_in_python_command_and_export(
    name, request, keras_seq_command, tmp_path
):
    run, options = request.getfixturevalue(CASES[name].run), CASES[name].options
    expected = keras_seq.Translator.load(run, **options).translate(LINES)
    assert len({one.text for found in expected for one in found}) > len(LINES)

    (tmp_path / "lines.txt").write_text("".join(f"{line}\n" for line in LINES))
    translated = keras_seq_command("translate", run, tmp_path / "lines.txt", *arguments(options))
    assert translated.code == 0, translated.err
    assert translated.lines == [
        f"{number}\t{one.score:.4f}\t{one.text}"
        for number, found in enumerate(expected, 1)
        for one in found or [keras_seq.inference.hypothesis.Hypothesis("", 0.0, False)]
    ]

    exported = keras_seq_command(
        "export", run, tmp_path / "served", "--verify=0", *arguments(options)
    )
    assert exported.code == 0, exported.err
    with StockProcess(tmp_path / "served" / "1") as server:
        answer = server.run("n_best", {"text": Tensor.row(LINES)})
    for row, found in enumerate(expected):
        texts = [text.decode() for text in answer["translation"].rows()[row]]
        assert texts == [one.text for one in found] + [""] * (options["n_best"] - len(found))
        for one, score in zip(found, answer["score"].rows()[row], strict=False):
            assert score == pytest.approx(one.score, abs=1e-4)

    loaded = []
    for kind, load in (("onnx", runtime.load), ("litert", litert.load)):
        path = tmp_path / f"{kind}.tflite"
        exported = keras_seq_command(
            "export", run, path, f"--format={kind}", "--verify=0", *arguments(options)
        )
        assert exported.code == 0, exported.err
        loaded.append(load(path))
    for kind, model in zip(("onnx", "litert"), loaded, strict=True):
        for row, found in zip(model.run(LINES), expected, strict=True):
            assert (kind, [(one.text, one.truncated) for one in row]) == (
                kind,
                [(one.text, one.truncated) for one in found],
            )
            scores = [one.score for one in found]
            assert [one.score for one in row] == pytest.approx(scores, abs=1e-4)
