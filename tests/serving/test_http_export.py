"""`keras-seq serve` with a real export returns the translations of the run."""

import base64
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from http_serving import serving

from keras_seq.inference.translator import Translator
from keras_seq.run import Run
from keras_seq.text.dates import date_pairs

pytestmark = pytest.mark.process

NASTY = ["", " ", "\t", "😀 ᏣᎳᎩ </s> <pad>", "a\x00b", "e\u0301", "5\u2028mars", "w" * 10_000]


@pytest.fixture(scope="module")
def base(tiny_run, tmp_path_factory):
    from keras_seq.serving import export_saved_model

    base = tmp_path_factory.mktemp("served") / "dates"
    export_saved_model(Run.open(tiny_run), base, verify=0, n_best=2)
    return base


@pytest.fixture(scope="module")
def served(base):
    with serving(base, trust=False) as served:
        yield served
        assert served.stop() == 0


@pytest.fixture(scope="module")
def lines():
    return [source for source, _ in date_pairs(160, seed=7)] + NASTY


def close(found, expected):
    """Asserts equal responses; the last digits of scores may depend on the batch shape."""
    assert [row["translation"] for row in found] == [row["translation"] for row in expected]
    assert [row["truncated"] for row in found] == [row["truncated"] for row in expected]
    for row, other in zip(found, expected, strict=True):
        assert row["score"] == pytest.approx(other["score"], abs=1e-4)


def test_served_answers_equal_the_translations_of_the_run(served, lines, tiny_run):
    translator = Translator.load(tiny_run, n_best=2)
    expected = translator.translate(lines)
    for found, hypotheses in zip(served.predict(lines), expected, strict=True):
        best = hypotheses[0] if hypotheses else None
        assert found["translation"] == (best.text if best else "")
        assert found["truncated"] == (best.truncated if best else False)
        assert found["score"] == pytest.approx(best.score if best else 0, abs=1e-4)
    for found, hypotheses in zip(served.predict(lines, "n_best"), expected, strict=True):
        texts = [hypothesis.text for hypothesis in hypotheses]
        assert found["translation"] == texts + [""] * (2 - len(texts))


def test_answer_to_a_row_does_not_depend_on_its_batch(served, lines):
    together = served.predict(lines)
    close([served.predict([line])[0] for line in lines[-40:]], together[-40:])
    close(served.predict(lines[:64]), together[:64])
    close(served.predict(lines[::-1])[::-1], together)
    with ThreadPoolExecutor(32) as pool:
        close(list(pool.map(lambda line: served.predict([line])[0], lines)), together)


def test_guide_rest_examples_work_against_the_server(served, base):
    guide = (base / "serving" / "README.md").read_text(encoding="utf-8")
    rest = guide[guide.index("## Call: REST") : guide.index("## Call: gRPC")]
    expected = re.search(r"Each of the three requests returns\n\n```\n(.*)\n```", guide)[1]

    def here(lines):
        # The guide uses port 8501; the test server uses a free port.
        assert "localhost:8501" in lines
        return lines.replace("localhost:8501", served.url.removeprefix("http://"))

    (shell,) = re.findall(r"```bash\n(.*?)```", rest, flags=re.DOTALL)
    found = subprocess.run(["bash", "-c", here(shell)], capture_output=True, check=True)
    (answer,) = json.loads(found.stdout)["predictions"]
    assert answer["translation"] == expected
    (python,) = re.findall(r"```python\n(.*?)```", rest, flags=re.DOTALL)
    found = subprocess.run(
        [sys.executable, "-c", here(python)], capture_output=True, check=True, encoding="utf-8"
    )
    assert found.stdout == f"{expected} {answer['score']} {answer['truncated']}\n"


def test_ids_signature_gives_the_same_translations_as_text(served, tiny_run):
    tokenizer = Run.open(tiny_run).source_tokenizer
    target = Run.open(tiny_run).target_tokenizer
    (ids,) = tokenizer.encode(["March 5, 2021"])
    (found,) = served.predict([ids], "ids")
    (expected,) = served.predict(["March 5, 2021"], "n_best")
    texts = target.decode(
        [row[:length] for row, length in zip(found["ids"], found["length"], strict=True)]
    )
    assert texts == expected["translation"]
    # Padding does not change a row, and ids outside the vocabulary are accepted.
    (padded,) = served.predict([[*ids, 0, 0, 0]], "ids")
    assert padded["score"] == pytest.approx(found["score"], abs=1e-4)
    served.predict([[2**31 - 1, -5]], "ids")
    assert served.predict([[]], "ids")[0]["length"] == [0, 0]
    answer = served.client.post(served.predict_url, json={"signature_name": "ids", "inputs": []})
    assert answer.json()["outputs"]["ids"] == []


def test_long_text_is_truncated_and_invalid_utf8_is_replaced(served):
    (row,) = served.predict(["w " * 2**19])
    assert row["truncated"] is True
    raw = {"b64": base64.b64encode(b"\xff\xfe 5 mai 1999 \xc3").decode()}
    replaced = "\ufffd\ufffd 5 mai 1999 \ufffd"
    close(served.predict([raw]), served.predict([replaced]))
    answer = served.client.post(served.predict_url, json={"inputs": []})
    assert answer.json() == {"outputs": {"translation": [], "score": [], "truncated": []}}
