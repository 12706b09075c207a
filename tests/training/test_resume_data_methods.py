"""Resuming with pair weights, alignments, word dropout and subword regularization."""

import numpy as np
import pytest
from training.toy import assert_equal_tensors, killed_after, quiet_train, tensors_of, toy_settings

from keras_seq import InputError
from keras_seq.data import BatchStream, TokenCorpus
from keras_seq.preparation import open_or_prepare, prepare_run
from keras_seq.settings import load_settings
from keras_seq.training.feed import batch_shapes, training_stream

pytestmark = pytest.mark.slow

METHODS = {
    "training__word_dropout": 0.2,
    "training__source_word_dropout": 0.1,
    "training__subword_alpha": 0.4,
}


def settings_of(folder, max_steps, **overrides):
    if not (folder / "weights").exists():
        toy_settings(folder)
        lines = (folder / "train.tsv").read_text().count("\n")
        # Each line has five words, and the target is the reversed source.
        (folder / "links").write_text("0-4 1-3 2-2 3-1 4-0\n" * lines)
        (folder / "weights").write_text("".join(f"{1 + n % 3}\n" for n in range(lines)))
    options = {
        "data__weights": str(folder / "weights"),
        "data__alignments": str(folder / "links"),
        "model__dropout": 0.2,
        "training__validate_every": 5,
        "training__checkpoint_every": 2,
        "training__max_steps": max_steps,
        "training__schedule": "cosine",
        "training__warmup_steps": 0,
    }
    return toy_settings(folder, **(options | METHODS | overrides))


def test_resume_with_data_methods_reproduces_the_training_state(tmp_path):
    """Monotonic attention adds random noise in training, and the learning rate has cycles."""
    model = {
        "model.family": "rnn",
        "model.attention": "bahdanau_monotonic",
        "model.embedding_units": 16,
        "model.encoder_units": 8,
        "model.decoder_units": 16,
        "model.attention_units": 16,
    }
    base = settings_of(tmp_path, 9, training__cycles=3).to_dict() | {"model": {}}
    settings = load_settings(base=base, overrides=model)
    quiet_train(settings, tmp_path / "straight")
    result, said = quiet_train(
        settings, killed_after(4, tmp_path / "straight", tmp_path / "killed")
    )
    assert result.steps == 9
    assert "resuming after step 4\n" in said
    straight, killed = (
        tensors_of(tmp_path / name, 9, "training") for name in ("straight", "killed")
    )
    assert_equal_tensors(killed, straight)


def test_data_method_settings_reach_the_training_batches(tmp_path):
    """Without the data methods, the batches are those of a plain `BatchStream`."""
    run = prepare_run(settings_of(tmp_path, 1), tmp_path / "run")
    stream = training_stream(run)
    batches = [stream.batch(k) for k in range(stream.batches_per_epoch)]
    lengths = {np.count_nonzero(row) for batch in batches for row in batch["source"]} - {0}
    # A line has five tokens, or up to ten if spaces are separate tokens, and the end token.
    assert lengths > {6, 7, 8} and max(lengths) <= 11
    hidden = [np.mean(batch[key][batch["weight"] > 0][:, 1:6] == 1) for batch in batches
              for key in ("target_input", "source")]  # fmt: skip
    assert 0.15 < np.mean(hidden[::2]) < 0.25 and 0.05 < np.mean(hidden[1::2]) < 0.15
    assert {1.0, 2.0, 3.0} == {float(weight) for b in batches for weight in b["weight"]} - {0.0}
    assert all(
        (b["alignment"].sum((1, 2)) > 0).tolist() == (b["weight"] > 0).tolist() for b in batches
    )

    off = dict.fromkeys((key.replace("__", ".") for key in METHODS), 0.0)
    plain = prepare_run(settings_of(tmp_path, 1, **off), tmp_path / "plain")
    expected = BatchStream(
        TokenCorpus.open(plain.train_directory), batch_tokens=300, seed=1, shapes=batch_shapes()
    )
    for key, array in training_stream(plain).batch(5).items():
        np.testing.assert_array_equal(array, expected.batch(5)[key])


def test_resume_with_changed_data_methods_raises_input_error(tmp_path):
    quiet_train(settings_of(tmp_path, 1), tmp_path / "run")
    for change, words in (
        ({"training__word_dropout": 0.1}, "training.word_dropout 0.2 -> 0.1"),
        ({"training__source_word_dropout": 0.0}, "training.source_word_dropout 0.1 -> 0.0"),
        ({"training__subword_alpha": 0.2}, "training.subword_alpha 0.4 -> 0.2"),
        ({"training__subword_nbest": 9}, "training.subword_nbest -1 -> 9"),
        ({"data__weights": None}, "data.weights .*weights -> none"),
        ({"data__alignments": None}, "data.alignments .*links -> none"),
        ({"data__file_weights": [2.0]}, r"data.file_weights none -> \[2.0\]"),
    ):
        with pytest.raises(InputError, match=words):
            open_or_prepare(settings_of(tmp_path, 1, **change), tmp_path / "run")
    open_or_prepare(settings_of(tmp_path, 2), tmp_path / "run")
