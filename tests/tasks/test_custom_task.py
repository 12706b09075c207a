"""A task from outside the package trains, resumes, predicts and exports like a built-in task."""

import inspect
import random

import pytest
from tasks import word_count

import keras_seq
from keras_seq.inference.classifier import Classifier
from keras_seq.run.models import load_model
from keras_seq.serving import export_saved_model

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def registered():
    word_count.register()
    yield
    # Unregister the task, because other tests list all tasks and settings.
    keras_seq.tasks.unregister_task(word_count.WordCount(), word_count.CounterSettings)


def labeled(count, seed):
    """Lines of one to four words, and their word counts."""
    generator = random.Random(seed)
    lines = [
        " ".join(generator.choices(["a", "dog", "runs", "far"], k=generator.randint(1, 4)))
        for _ in range(count)
    ]
    return "".join(f"{line}\t{len(line.split())}\n" for line in lines)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("word-count")
    (folder / "train.tsv").write_text(labeled(600, 1))
    (folder / "valid.tsv").write_text(labeled(60, 2))

    def settings(steps):
        return keras_seq.load_settings(
            overrides={
                "task": "word-count",
                "data.labeled": str(folder / "train.tsv"),
                "data.valid_labeled": str(folder / "valid.tsv"),
                "tokenizer.size": 280,
                "training.batch_tokens": 256,
                "training.learning_rate": 0.1,
                "training.warmup_steps": 10,
                "training.validate_every": 50,
                "training.checkpoint_every": 50,
                "training.max_steps": steps,
            }
        )

    first = keras_seq.train(settings(50), folder / "run")
    assert first.steps == 50
    # The second call resumes.
    result = keras_seq.train(settings(200), folder / "run")
    assert result.steps == 200
    return folder / "run", result


def test_custom_task_needs_fewer_than_80_lines():
    assert len(inspect.getsource(word_count).splitlines()) < 80


def test_custom_task_learns_and_answers(trained):
    run, result = trained
    assert result.metric == "accuracy" and result.best > 0.95
    opened = keras_seq.Run.open(run)
    classifier = Classifier.of_run(opened, load_model(opened))
    assert classifier(["a dog runs", "far"]) == ["3", "1"]


def test_custom_task_is_exported_and_verified(trained, tmp_path):
    run, _ = trained
    version = export_saved_model(keras_seq.Run.open(run), tmp_path / "served", verify=20)
    import tensorflow as tf

    answer = tf.saved_model.load(str(version)).signatures["serving_default"](
        text=tf.constant(["dog dog dog dog", "a"])
    )
    assert answer["label"].numpy().tolist() == [b"4", b"1"]


def test_two_tasks_cannot_have_one_name():
    with pytest.raises(ValueError, match="There is a family 'counter' already"):
        keras_seq.tasks.register_task(word_count.WordCount(), word_count.CounterSettings)
