"""Training that starts from the weights of another run, with its vocabulary or a new one."""

import shutil

import numpy as np
import pytest
from training.toy import assert_equal_tensors, quiet_train, tensors_of, toy_settings
from weekly import weekly_but

from keras_seq.preparation import prepare_run
from keras_seq.run import Run
from keras_seq.run.models import weight_arrays
from keras_seq.settings import load_settings
from keras_seq.training.loop import TrainingLoop
from keras_seq.training.stopping import SignalStop

pytestmark = pytest.mark.slow

RNN = {
    "model.family": "rnn",
    "model.embedding_units": 8,
    "model.encoder_units": 8,
    "model.decoder_units": 8,
    "model.attention_units": 8,
    "model.tie_output": False,
    "tokenizer.joint": False,
}


def rnn_settings(folder, **overrides):
    base = {key: value for key, value in toy_settings(folder).to_dict().items() if key != "model"}
    named = {key.replace("__", "."): value for key, value in overrides.items()}
    return load_settings(base=base, overrides=RNN | named)


def begun(settings, directory):
    """Returns the weights of a training before its first update, and its messages."""
    said = []
    run = prepare_run(settings, directory, notice=said.append)
    with SignalStop() as stop:
        weights = weight_arrays(TrainingLoop(run, said.append, stop).model)
    run.unlock()
    return weights, "\n".join(said)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a run `base` of three updates on letters; its best checkpoint is step 2."""
    folder = tmp_path_factory.mktemp("start")
    settings = {"training__max_steps": 3, "training__checkpoint_every": 1, "training__ema": 0.5}
    quiet_train(toy_settings(folder, **settings), folder / "base")
    Run.open(folder / "base").mark_best(2)
    (folder / "other.tsv").write_text("z y\ty z\nx w v\tv w x\n" * 20)
    (folder / "words.tsv").write_text("Ω abc b de\tb abc Ω gf\n" * 40)
    return folder


@pytest.fixture(scope="module")
def rnn(folder):
    quiet_train(rnn_settings(folder, training__max_steps=1), folder / "rnn")
    return folder / "rnn"


def tuning(folder, **overrides):
    settings = {
        "data__pairs": str(folder / "other.tsv"),
        "training__from_run": str(folder / "base"),
        "training__max_steps": 4,
        "training__checkpoint_every": 2,
        "training__freeze": ["embedding", "encoder_*"],
        "model__dropout": 0.2,
    }
    return toy_settings(folder, **(settings | overrides))


def test_fine_tuning_starts_from_the_best_weights_and_the_vocabulary(folder):
    weights, said = begun(tuning(folder), folder / "begun")
    assert f"initial weights: the best weights of {folder / 'base'}, of step 2, are copied" in said
    before = tensors_of(folder / "base", 2)
    assert before.keys() == weights.keys()
    for name, array in before.items():
        np.testing.assert_array_equal(weights[name], array, err_msg=name)
    run, base = Run.open(folder / "begun"), Run.open(folder / "base")
    assert run.source_tokenizer.to_bytes() == base.source_tokenizer.to_bytes()


@pytest.mark.weekly
def test_fine_tuning_resumes_bit_for_bit_without_the_base_run(folder):
    """Resumes before and after the first checkpoint; frozen weights equal those of the base run."""
    _, said = quiet_train(tuning(folder), folder / "straight")
    assert "resuming" not in said
    run = folder / "pieces"
    prepare_run(tuning(folder), run).unlock()
    shutil.move(folder / "base", folder / "away")
    try:
        quiet_train(tuning(folder, training__max_steps=2), run)
        _, said = quiet_train(tuning(folder), run)
    finally:
        shutil.move(folder / "away", folder / "base")
    assert "resuming after step 2" in said
    straight = tensors_of(folder / "straight", 4, "training")
    assert_equal_tensors(tensors_of(run, 4, "training"), straight)
    card = (folder / "straight" / "README.md").read_text()
    assert f"from the weights of `{folder / 'base'}`, step 2" in card

    before, after = tensors_of(folder / "base", 2), tensors_of(run, 4)
    frozen = {name for name in before if name.startswith(("embedding/", "encoder_"))}
    assert len(frozen) > 10
    for name, array in after.items():
        assert np.array_equal(array, before[name]) == (name in frozen), name
    assert not any("encoder_block" in name for name in straight if name.startswith("optimizer"))


def test_identical_new_vocabulary_copies_all_weights_unchanged(folder):
    settings = tuning(
        folder, data__pairs=str(folder / "train.tsv"), training__from_run_vocabulary="new"
    )
    weights, said = begun(settings, folder / "same")
    for name, array in tensors_of(folder / "base", 2).items():
        np.testing.assert_array_equal(weights[name], array, err_msg=name)
    assert "are copied, 0 start as the mean of the pieces" in said


TABLES = {
    "embedding/embeddings": "source",
    "source_embedding/embeddings": "source",
    "target_embedding/embeddings": "target",
    "logits/kernel": "target",
    "logits/bias": "target",
}


@pytest.mark.parametrize("family", weekly_but(["transformer", "rnn"], "transformer"))
def test_changed_vocabulary_copies_or_averages_embedding_rows(request, folder, family):
    base = folder / "base" if family == "transformer" else request.getfixturevalue("rnn")
    options = {
        "data__pairs": str(folder / "words.tsv"),
        "training__from_run": str(base),
        "training__from_run_vocabulary": "new",
        "training__freeze": None,
        # BPE has the few words of these lines as whole pieces.
        "tokenizer__kind": "bpe",
    }
    make = tuning if family == "transformer" else rnn_settings
    weights, said = begun(make(folder, **options), folder / f"new-{family}")
    run, before = Run.open(folder / f"new-{family}"), Run.open(base)
    averaged = 0
    for name, array in tensors_of(base, before.checkpoints.best_step).items():
        if name not in TABLES:
            np.testing.assert_array_equal(weights[name], array, err_msg=name)
            continue
        old, new = (getattr(each, f"{TABLES[name]}_tokenizer") for each in (before, run))
        assert old.vocabulary_size != new.vocabulary_size
        # The kernel of the output projection has a column for each token.
        old_rows, new_rows = array, weights[name]
        if name == "logits/kernel":
            old_rows, new_rows = array.T, new_rows.T
        assert len(new_rows) == new.vocabulary_size
        places = {piece.text: id for id, piece in enumerate(old.pieces)}
        copied = 0
        for id, piece in enumerate(new.pieces):
            if piece.text in places:
                copied += 1
                np.testing.assert_array_equal(new_rows[id], old_rows[places[piece.text]])
            elif piece.text == "▁abc":
                # The old pieces are single letters, so the word has a space and three pieces.
                cut = [i for i in old.encode(["abc"])[0] if old.pieces[i].text != "▁"]
                assert len(cut) == 3
                mean = old_rows[cut].mean(axis=0)
                np.testing.assert_allclose(new_rows[id], mean, rtol=1e-5, atol=1e-7)
                averaged += 1
            elif "Ω" in piece.text:
                # An unknown character gets a new row, neither a byte's row nor a mean.
                assert not (new_rows[id] == old_rows).all(axis=-1).any() or name == "logits/bias"
        assert copied > 256
        side = "joint" if family == "transformer" else TABLES[name]
        assert f"{side} vocabulary of {len(new_rows)}: the rows of {copied} pieces" in said
        assert "1 are new" in said or "2 are new" in said
    assert averaged == (1 if family == "transformer" else 4)
