"""`keras-seq demo` from training to scores, with a model too small to learn anything."""

from pathlib import Path

import pytest

from keras_seq.data import TokenCorpus
from keras_seq.preparation.demo import prepare_demo
from keras_seq.run import Run
from keras_seq.settings import SettingsError


@pytest.mark.slow
@pytest.mark.weekly
def test_demo_creates_and_keeps_its_corpus(tmp_path):
    run, test = prepare_demo(tmp_path / "demo", overrides=["seed=3"])
    assert len(TokenCorpus.open(run.train_directory)) == 30_000
    sources, references = run.valid_lines()
    assert len(sources) == len(references) == len(test) == 1000
    data = Run.open(run.path).settings.data
    # The corpus files remain after preparation, so that they can be used for training again.
    train, valid = Path(str(data.source)), Path(str(data.valid_source))
    assert valid.read_text("utf-8").split("\n")[:-1] == sources
    trained = train.read_text("utf-8").split("\n")[:-1]
    assert not {source for source, _ in test} & {*trained, *sources}
    assert sum(path.stat().st_size for path in run.corpus_directory.glob("test.*")) > 0


def test_demo_with_an_unknown_setting_creates_no_files(tmp_path):
    with pytest.raises(SettingsError, match="did you mean training.max_steps"):
        prepare_demo(tmp_path / "demo", overrides=["max_step=3"])
    assert not (tmp_path / "demo").exists()


@pytest.mark.slow
@pytest.mark.weekly
def test_the_demo_trains_translates_and_scores(keras_seq_command, tmp_path, monkeypatch):
    """Runs the demo in its default folder."""
    monkeypatch.chdir(tmp_path)
    tiny = {
        "model.num_encoder_layers": 1,
        "model.num_decoder_layers": 1,
        "model.units": 8,
        "model.feedforward_units": 8,
        "model.num_heads": 1,
        "training.max_steps": 1,
        "training.validate_every": 1,
        "search.max_length": 3,
        "search.beam_size": 1,
        "search.batch_size": 256,
    }
    settings = [word for key, value in tiny.items() for word in ("--set", f"{key}={value}")]
    outcome = keras_seq_command("demo", *settings)
    assert outcome.code == 0, outcome.err
    assert (tmp_path / "runs" / "demo" / "README.md").exists()
    examples, scores, share = outcome.lines[:10], outcome.lines[10:-1], outcome.lines[-1:]
    assert all("  ->  " in line for line in examples)
    names = [line.split(" = ")[0] for line in scores]
    assert sorted(names) == ["BLEU", "CER", "EXACT", "TER", "WER", "chrF2"]
    assert "unseen dates" in (tmp_path / "runs" / "demo" / "report.html").read_text("utf-8")
    assert share == ["0 of 1000 unseen dates are exactly right (0.0%)"]
    assert "keras-seq translate" in outcome.err
    assert keras_seq_command("demo").code == 2
