"""The SavedModel of a language model generates the same text as the run."""

import random

import numpy as np
import pytest
from serving.test_saved_model import Served

import keras_seq
from keras_seq import litert, runtime
from keras_seq.run import Run
from keras_seq.serving import export_litert, export_onnx, export_saved_model

pytestmark = pytest.mark.slow

PROMPTS = ["a", "", "b c", "a b c d e f g h", "  ", "unknown ☃ signs", "c " * 300]
SEARCHES = {
    "drawn": {"n_best": 3, "seed": 7},
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lm")
    generator = random.Random(1)
    lines = [" ".join(generator.choices("abcdefgh", k=generator.randint(1, 9))) for _ in range(300)]
    (folder / "text").write_text("".join(f"{line}\n" for line in lines))
    settings = keras_seq.load_settings(
        preset="lm-transformer",
        overrides={
            "data.text": str(folder / "text"),
            "model.num_layers": 1,
            "model.units": 16,
            "model.feedforward_units": 16,
            "model.num_heads": 2,
            "training.max_steps": 20,
            "training.schedule": "constant",
            "training.learning_rate": 0.02,
            "training.ema": 0.0,
            "training.sample_count": 0,
            "search.max_length": 20,
        },
    )
    keras_seq.train(settings, folder / "run", notice=[].append)
    return folder / "run"


@pytest.fixture(scope="module", params=SEARCHES)
def both(request, run, tmp_path_factory):
    """The run's generator and the export of the run."""
    search = SEARCHES[request.param]
    notices = []
    base = tmp_path_factory.mktemp("served")
    version = export_saved_model(Run.open(run), base, verify=5, notice=notices.append, **search)
    assert notices[0].startswith("5 lines of the validation text come out as the run")
    return keras_seq.Generator.load(run, **search), Served(version), base


def test_exported_model_continues_prompts_as_the_run_does(both):
    generator, served, _ = both
    expected = generator.generate(PROMPTS[:-1])
    answer = served.text(PROMPTS[:-1], "n_best")
    assert set(answer) == {"text", "score", "truncated"}
    for row, found in enumerate(expected):
        assert [text.decode() for text in answer["text"][row]] == [one.text for one in found]
        np.testing.assert_allclose(answer["score"][row], [one.score for one in found], atol=1e-4)
        assert answer["truncated"][row].tolist() == [one.truncated for one in found]
    first = served.text(PROMPTS[:-1])
    assert first["text"].tolist() == answer["text"][:, 0].tolist()


@pytest.mark.weekly
def test_other_exports_continue_prompts_as_the_run_does(both, run, tmp_path):
    generator, _, _ = both
    options = {"verify": 5, **SEARCHES["drawn"]}
    for model in (
        runtime.load(export_onnx(Run.open(run), tmp_path / "onnx", **options)),
        litert.load(export_litert(Run.open(run), tmp_path / "model.tflite", **options)),
    ):
        found = model.run(PROMPTS)
        for row, expected in zip(found, generator.generate(PROMPTS[:-1]), strict=False):
            assert [one.text for one in row] == [one.text for one in expected]
        assert all(one.truncated and one.text.startswith(("c " * 19).strip()) for one in found[-1])


def test_too_long_prompt_is_truncated(both):
    _, served, _ = both
    answer = served.text(PROMPTS, "n_best")
    assert answer["truncated"][-1].all()
    # The prompt is cut to 19 of at most 20 tokens, so that the model generates at least one.
    assert all(text.decode().startswith(("c " * 19).strip()) for text in answer["text"][-1])


def test_invalid_prompt_ids_become_unknown_words_or_an_empty_prompt(both):
    _, served, _ = both
    rows = np.array([[10, 11, 0, 0], [3, 2, -5, 10**6], [0, 11, 10, 3], [10, 11, 0, 9]], np.int32)
    answer = served("ids", ids=rows)
    assert answer["ids"][0].tolist() == answer["ids"][3].tolist()
    assert answer["ids"][0][:, :2].tolist() == [[10, 11]] * 3
    # Begin, end and out-of-vocabulary ids become unknown words; a row that begins with padding
    # is an empty prompt.
    assert answer["ids"][1][:, :4].tolist() == [[1, 1, 1, 1]] * 3
    nothing = served("ids", ids=np.zeros((1, 1), np.int32))
    assert answer["ids"][2].tolist() == nothing["ids"][0].tolist()


def test_language_model_guide_describes_prompts_not_translations(both):
    _, _, base = both
    guide = (base / "serving" / "README.md").read_text("utf-8")
    assert 'prediction["text"]' in guide and "one prompt a row" in guide
    assert "translation" not in guide.split("## Inputs and outputs")[0].replace("translated", "")
