"""A vocabulary that asks for more weights than the run has."""

import shutil

import pytest
from weekly import weekly

from keras_seq.run import Run
from keras_seq.text import InputError, Tokenizer


@pytest.mark.parametrize("name, width", [("tiny_run", 32), *weekly(("tiny_rnn_run", 16))])
def test_vocabulary_of_more_entries_than_the_weights_have_is_refused(
    name, width, request, tmp_path, keras_seq_command
):
    """The model would be built, with a table of gigabytes, before the weights are compared."""
    run = request.getfixturevalue(name)
    Run.open(run).require_weights_of_vocabulary()
    shutil.copytree(run, tmp_path / "run")
    words = (f"word{number}" for number in range(60_000))
    large = Tokenizer.train(words, kind="word", size=60_000).to_bytes()
    for path in (tmp_path / "run" / "tokenizer").iterdir():
        path.write_bytes(large)
    outcome = keras_seq_command("translate", tmp_path / "run", "hi")
    assert outcome.code == 2
    assert "settings.toml and the vocabulary describe a model of at least" in outcome.error
    size = int(outcome.error.split("at least ")[1].split(" ")[0].replace(",", ""))
    # Two bytes for each entry of the table, and something for the rest.
    assert 2 * width * 60_000 < size < 2 * width * 60_000 + 100_000
    with pytest.raises(InputError, match="they do not belong together"):
        Run.open(tmp_path / "run").require_weights_of_vocabulary()
