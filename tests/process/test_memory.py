"""The free memory, and the refusal of what does not fit."""

import subprocess

import pytest

from keras_seq.process.memory import VARIABLE, free_memory, require_memory
from keras_seq.run.memory import attention_fits, require_model_memory, require_source_memory
from keras_seq.settings import load_settings
from keras_seq.text import InputError


def test_free_memory_is_that_of_the_machine_or_of_the_variable(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    # `free` reads the same file, and other processes change the number meanwhile.
    said = subprocess.run(["free", "-b"], capture_output=True, text=True, check=True).stdout
    available = int(said.split("\n")[1].split()[-1])
    assert 0 < free_memory() < 1.5 * available
    for value, size in (("1M", 1 << 20), ("1.5kb", 1536), ("4096", 4096), ("1000T", None)):
        monkeypatch.setenv(VARIABLE, value)
        assert free_memory() == size if size else free_memory() < 1.5 * available


@pytest.mark.parametrize("value", ["", "much", "-1G", "0", "nan", "inf", "1X"])
def test_a_wrong_variable_is_refused(monkeypatch, value):
    monkeypatch.setenv(VARIABLE, value)
    with pytest.raises(InputError, match=f"{VARIABLE}: received .*, expected a number of bytes"):
        free_memory()


def test_what_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setenv(VARIABLE, "1G")
    require_memory(1 << 30, "a table", "use less")
    message = "a table needs more than 3.0 GB of memory, 1.0 GB are free: use less"
    with pytest.raises(InputError, match=message):
        require_memory(3 << 30, "a table", "use less")


def test_models_are_counted_with_their_vocabulary(monkeypatch):
    """A Transformer of width 1,024 with 2^20 tokens has a table of 2^30 numbers of four bytes."""
    settings = load_settings(overrides={"model.units": 1024, "model.num_heads": 4})
    monkeypatch.setenv(VARIABLE, "4G")
    require_model_memory(settings, 1 << 10, 1 << 10)
    with pytest.raises(
        InputError, match="a model of more than 1,1[0-9]{2},[0-9,]+ parameters need"
    ):
        require_model_memory(settings, 1 << 20, 1 << 20)
    with pytest.raises(InputError, match="use a smaller model or a smaller vocabulary"):
        require_model_memory(settings, 1 << 18, 1 << 18, copies=4)


def test_the_attention_of_a_long_source_is_counted(monkeypatch):
    """Four heads over 2^14 tokens have 2^30 weights, of at least two bytes each."""
    settings = load_settings(overrides={"data.max_source_length": 1 << 14})
    monkeypatch.setenv(VARIABLE, "2G")
    require_source_memory(settings)
    assert attention_fits(settings, 1, 1 << 14)
    monkeypatch.setenv(VARIABLE, "1.9G")
    assert not attention_fits(settings, 1, 1 << 14)
    assert attention_fits(settings, 4, 1 << 12)
    message = r"the attention among data.max_source_length \(16,384\) tokens needs more than 2.0 GB"
    with pytest.raises(InputError, match=message):
        require_source_memory(settings)
    overrides = {"model.family": "rnn", "data.max_source_length": 100_000}
    require_source_memory(load_settings(overrides=overrides))


def test_a_training_of_a_large_model_is_refused_before_it_is_built(
    monkeypatch, tmp_path, dates_file, keras_seq_command
):
    monkeypatch.setenv(VARIABLE, "2G")
    outcome = keras_seq_command(
        "train", tmp_path / "run", "--pairs", dates_file,
        "--set", "model.units=16384", "--set", "model.num_heads=256",
    )  # fmt: skip
    assert outcome.code == 2
    assert "parameters needs more than" in outcome.error and "2.0 GB are free" in outcome.error
