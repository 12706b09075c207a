"""`keras-seq average`, compared with means of the checkpoint files by numpy."""

import numpy as np
import pytest
import safetensors.numpy
from training.toy import quiet_train, toy_settings

import keras_seq
from keras_seq.run import Run
from keras_seq.run.averaging import average_run


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run with three checkpoints, all validated."""
    folder = tmp_path_factory.mktemp("average")
    settings = {"max_steps": 6, "validate_every": 2, "checkpoint_every": 2, "ema": 0.0}
    named = {f"training__{key}": value for key, value in settings.items()}
    quiet_train(toy_settings(folder, **named), folder / "run")
    return folder / "run"


def weights(run, step):
    path = run / "checkpoints" / f"step-{step:08}" / "weights.safetensors"
    return safetensors.numpy.load_file(path)


@pytest.mark.slow
def test_average_last_writes_the_mean_of_the_last_checkpoints(trained, tmp_path, keras_seq_command):
    outcome = keras_seq_command("average", trained, tmp_path / "mean", "--last", 2)
    assert (outcome.code, outcome.out) == (0, b"")
    assert "the mean of the weights after steps 4, 6" in outcome.err
    averaged = weights(tmp_path / "mean", 6)
    given = weights(trained, 4), weights(trained, 6)
    assert averaged.keys() == given[0].keys()
    for name, array in averaged.items():
        assert array.dtype == np.float32
        expected = (given[0][name].astype("f8") + given[1][name]) / 2
        np.testing.assert_array_equal(array, expected.astype("f4"), err_msg=name)
    # The input run is unchanged, and the averaged run can translate.
    assert Run.open(trained).checkpoints.steps == [2, 4, 6]
    outcome = keras_seq_command("translate", tmp_path / "mean", "-", stdin=b"a b c d e\n")
    assert outcome.code == 0 and outcome.out.count(b"\n") == 1
    assert "after steps 4, 6" in (tmp_path / "mean" / "README.md").read_text()


def test_average_best_takes_the_best_validated_checkpoints(trained, tmp_path, keras_seq_command):
    run = Run.open(trained)
    lines = (trained / "metrics.jsonl").read_text()
    assert run.logs.validation_scores().keys() == {2, 4, 6}
    try:
        for step, score in ((2, 50.0), (4, 90.0), (6, 70.0)):
            run.logs.append_metrics({"kind": "validation", "step": step, "bleu": score})
        with open(trained / "metrics.jsonl", "a") as file:
            file.write('{"kind": "validation"}\nnonsense\n')
        outcome = keras_seq_command("average", trained, tmp_path / "one", "--best", 1)
        assert outcome.code == 0, outcome.err
        for name, array in weights(tmp_path / "one", 4).items():
            np.testing.assert_array_equal(array, weights(trained, 4)[name])
        outcome = keras_seq_command("average", trained, tmp_path / "two", "--best", 2)
        assert "after steps 4, 6" in outcome.err
    finally:
        (trained / "metrics.jsonl").write_text(lines)


@pytest.mark.slow
@pytest.mark.weekly
def test_average_of_a_classifier_has_the_mean_temperature(classifier_run, tmp_path):
    run = Run.open(classifier_run)
    steps = average_run(classifier_run, tmp_path / "mean", 2)
    fitted = [entry for entry in run.logs.entries("validation") if entry["step"] in steps]
    mean = sum(entry["temperature"] for entry in fitted) / 2
    assert len(steps) == len(fitted) == 2 and mean != 1
    classifier = keras_seq.Classifier.load(tmp_path / "mean")
    (row,), _ = classifier.log_probabilities(["today we see rain"])
    powers = np.exp(row / mean)
    (result,) = classifier.classify(["today we see rain"])
    assert result.probability == pytest.approx(powers.max() / powers.sum(), rel=1e-5)
    average_run(classifier_run, tmp_path / "both", 2, probabilities=True)
    rows = [
        keras_seq.Classifier.load(path, which=which).log_probabilities(["today we see rain"])[0]
        for path, which in ((tmp_path / "both", "best"), *((classifier_run, n) for n in steps))
    ]
    np.testing.assert_allclose(np.exp(rows[0]), np.exp(rows[1:]).mean(axis=0), rtol=1e-4)
    card = (tmp_path / "mean" / "README.md").read_text()
    assert f"keras-seq classify {tmp_path / 'mean'} < input > output" in card


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "expected one of --last, --best, --cycles and --which"),
        (["--last", 1, "--best", 1], "expected one of --last, --best, --cycles and --which"),
        (["--last", 4], "has 3 checkpoints, expected at least 4"),
        (["--best", 9], "has 3 validated checkpoints, expected at least 9"),
    ],
)
def test_average_rejects_invalid_checkpoint_options(
    trained, tmp_path, keras_seq_command, options, message
):
    outcome = keras_seq_command("average", trained, tmp_path / "mean", *options)
    assert outcome.code == 2 and message in outcome.err
    assert not (tmp_path / "mean").exists()


def test_average_refuses_to_overwrite_its_input_run(trained, tmp_path, keras_seq_command):
    (tmp_path / "link").symlink_to(trained)
    before = sorted(path for path in trained.rglob("*"))
    for output in (trained, tmp_path / "link", trained / "mean"):
        outcome = keras_seq_command("average", trained, output, "--last", 2, "--overwrite")
        assert outcome.code == 2 and "is the run to average, or lies in it" in outcome.err
    assert sorted(path for path in trained.rglob("*")) == before


def test_average_rejects_a_directory_that_a_training_writes_to(
    trained, tmp_path, keras_seq_command
):
    from keras_seq.storage import DirectoryLock

    (tmp_path / "mean").mkdir()
    lock = DirectoryLock(tmp_path / "mean")
    outcome = keras_seq_command("average", trained, tmp_path / "mean", "--last", 1)
    assert outcome.code == 2 and "another training is at work there" in outcome.err
    lock.release()
    assert keras_seq_command("average", trained, tmp_path / "mean", "--last", 1).code == 0
    # The command has released its lock on the directory.
    DirectoryLock(tmp_path / "mean").release()


def test_average_rejects_an_existing_run_and_a_damaged_checkpoint(
    trained, tmp_path, keras_seq_command
):
    outcome = keras_seq_command("average", trained, trained, "--last", 1)
    assert outcome.code == 2 and "has a run already" in outcome.err
    file = trained / "checkpoints" / "step-00000006" / "weights.safetensors"
    content = file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    try:
        outcome = keras_seq_command("average", trained, tmp_path / "mean", "--last", 2)
    finally:
        file.write_bytes(content)
    assert outcome.code == 2 and "damaged" in outcome.err
    assert not (tmp_path / "mean" / "settings.toml").exists()
