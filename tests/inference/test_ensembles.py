"""Ensembles of runs in Python, on the command line and in an export."""

import json

import numpy as np
import pytest

from keras_seq import Classifier, LikelihoodScorer, Translator
from keras_seq.run import Run
from keras_seq.run.models import build_run_model, load_model, weight_arrays
from keras_seq.settings import load_settings
from keras_seq.text import InputError

LINES = ["2 January 2026", "", "5 maart 1999"]


@pytest.fixture(scope="module")
def other_run(tiny_run, tmp_path_factory):
    """A recurrent model with random weights and the Transformer's vocabulary."""
    first = Run.open(tiny_run)
    sizes = {f"model.{side}_units": 8 for side in ("embedding", "encoder", "decoder", "attention")}
    settings = load_settings(preset="rnn-small", overrides={**sizes, "search.beam_size": 7})
    run = Run.create(tmp_path_factory.mktemp("other") / "run", settings)
    run.save_vocabularies(*first.vocabularies)
    chance = np.random.default_rng(5)
    weights = {
        name: chance.normal(0, 0.5, array.shape).astype(array.dtype)
        for name, array in weight_arrays(build_run_model(run)).items()
    }
    run.save_checkpoint(1, {"weights": weights}, {"step": 1})
    run.mark_best(1)
    return run.path


def log_probability(models, source, target):
    """Log-probability of a target under the mean of the models' probabilities."""
    shares = []
    for model in models:
        logits = np.asarray(
            model({"source": np.array([source]), "target": np.array([[2, *target[:-1]]])}),
            np.float64,
        )[0]
        shares.append(np.exp(logits) / np.exp(logits).sum(-1, keepdims=True))
    return np.log(np.mean(shares, axis=0)[np.arange(len(target)), target]).sum()


@pytest.mark.slow
def test_ensemble_translations_have_the_score_of_the_mean_probability(tiny_run, other_run):
    runs = [Run.open(tiny_run), Run.open(other_run)]
    models = [load_model(run) for run in runs]
    translator = Translator.load(tiny_run, ensemble=[other_run], n_best=2)
    for line, hypotheses in zip(LINES, translator.translate(LINES), strict=True):
        assert len(hypotheses) == (2 if line else 0)
        for one in hypotheses:
            target = [*one.tokens] if one.truncated else [*one.tokens, 3]
            (source,) = runs[0].source_tokenizer.encode([line])
            total = log_probability(models, [*source, 3], target)
            assert one.score == pytest.approx(total / len(target), abs=1e-4)


@pytest.mark.slow
def test_ensemble_of_a_run_with_itself_translates_as_the_run(tiny_run, keras_seq_command):
    alone = keras_seq_command("translate", tiny_run, "-", stdin="\n".join(LINES).encode())
    twice = keras_seq_command(
        "translate", tiny_run, "-", "--ensemble", tiny_run, stdin="\n".join(LINES).encode()
    )
    assert (alone.code, twice.code) == (0, 0), twice.err
    assert alone.out == twice.out


@pytest.mark.weekly
@pytest.mark.slow
def test_export_of_an_ensemble_is_verified(tiny_run, other_run, tmp_path, keras_seq_command):
    done = keras_seq_command(
        "export", tiny_run, tmp_path / "served", "--ensemble", other_run, "--verify", 3
    )
    assert done.code == 0, done.err
    assert "3 lines of the validation text come out as the run translates them" in done.err
    weights = sum(
        array.nbytes
        for path in (tiny_run, other_run)
        for array in weight_arrays(load_model(Run.open(path))).values()
    )
    (data,) = (tmp_path / "served/1/variables").glob("variables.data-*")
    assert data.stat().st_size >= weights


def test_ensemble_with_another_vocabulary_is_rejected(
    tiny_run, tiny_rnn_run, tmp_path, keras_seq_command
):
    for command in (["translate", tiny_run, "x y"], ["export", tiny_run, tmp_path / "served"]):
        refused = keras_seq_command(*command, "--ensemble", tiny_rnn_run)
        assert refused.code == 2
        assert refused.error.startswith(
            f"{tiny_rnn_run}: its vocabulary differs from that of {tiny_run}: train the runs of"
        )
    refused = keras_seq_command("translate", tiny_run, "x y", "--ensemble", tmp_path / "none")
    assert refused.code == 2 and str(tmp_path / "none") in refused.error


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["export", "--format", "keras"], "--ensemble: not for --format keras"),
        (["export", "--format", "ctranslate2"], "--ensemble: not for --format ctranslate2"),
    ],
)
def test_export_formats_without_ensemble_support_reject_the_option(
    tiny_run, tmp_path, keras_seq_command, command, said
):
    refused = keras_seq_command(
        command[0], tiny_run, tmp_path / "out", *command[1:], "--ensemble", tiny_run
    )
    assert (refused.code, refused.error) == (2, said)


@pytest.mark.slow
def test_likelihood_and_diagnosis_use_the_mean_of_the_ensemble(
    tiny_run, other_run, tmp_path, keras_seq_command
):
    files = tmp_path / "source", tmp_path / "target"
    files[0].write_text("2 January 2026\n", encoding="utf-8")
    files[1].write_text("2026-01-02\n", encoding="utf-8")
    runs = [Run.open(tiny_run), Run.open(other_run)]
    (source,), (target,) = (
        tokenizer.encode([file.read_text().strip()])
        for tokenizer, file in zip(
            (runs[0].source_tokenizer, runs[0].target_tokenizer), files, strict=True
        )
    )
    expected = log_probability([load_model(run) for run in runs], [*source, 3], [*target, 3])
    scored = keras_seq_command("likelihood", tiny_run, *files, "--ensemble", other_run)
    assert scored.code == 0, scored.err
    assert float(scored.lines[0].split("\t")[0]) == pytest.approx(expected, abs=1e-4)
    command = ["diagnose", tiny_run, *files, "--beam-sizes", "2", "--json", "--ensemble", other_run]
    diagnosed = keras_seq_command(*command)
    assert diagnosed.code == 0, diagnosed.err
    (line,) = json.loads(diagnosed.out)["lines"]
    objective = expected / (len(target) + 1)
    assert line["reference"]["objective"] == pytest.approx(objective, abs=1e-4)


def test_options_that_a_predictor_does_not_have_raise_errors(tiny_run, classifier_run):
    with pytest.raises(TypeError, match="LikelihoodScorer does not search, received beam_size"):
        LikelihoodScorer.load(tiny_run, beam_size=2)
    with pytest.raises(TypeError, match="Classifier does not search, received n_best"):
        Classifier.load(classifier_run, n_best=2, batch_size=4)
    with pytest.raises(InputError, match="a run of task 'classify' has no ensembles"):
        Classifier.load(classifier_run, ensemble=[classifier_run])


@pytest.mark.process
@pytest.mark.weekly
def test_files_are_translated_by_an_ensemble(tiny_run, other_run, tmp_path, keras_seq_command):
    (tmp_path / "lines").write_text("".join(f"{line}\n" for line in LINES))
    outcome = keras_seq_command(
        "translate", tiny_run, "--input", tmp_path / "lines", "--output-dir", tmp_path / "out",
        "--ensemble", other_run, "--scores", "--workers", 1,
    )  # fmt: skip
    assert outcome.code == 0, outcome.err
    translator = Translator.load(tiny_run, ensemble=[other_run])
    rows = [line.split("\t") for line in (tmp_path / "out" / "lines").read_text().splitlines()]
    for row, line, found in zip(rows, LINES, translator.translate(LINES), strict=True):
        assert row[1] == (found[0].text if line else "")
        assert not line or float(row[0]) == pytest.approx(found[0].score, abs=1e-4)
    alone = Translator.load(tiny_run).translate(LINES)
    assert [one[0].score for one in alone if one] != pytest.approx(
        [float(row[0]) for row in rows if row[1]], abs=1e-3
    )
