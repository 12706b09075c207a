"""Training probes the largest batches first, and the probe leaves no trace."""

import numpy as np
import pytest
from training.toy import quiet_train, toy_settings

from keras_seq.data import BatchStream, TokenCorpus, write_corpus
from keras_seq.training import OutOfMemoryError
from keras_seq.training.feed import largest_shapes


def stream_of(folder, lengths, **options):
    pairs = [([5] * source, [6] * target) for source, target in lengths]
    write_corpus(folder, pairs, max_source_length=1000, max_target_length=1000)
    return BatchStream(TokenCorpus.open(folder), batch_tokens=40, seed=1, **options)


@pytest.mark.parametrize("shapes", ["exact", "buckets"])
def test_largest_shapes_bound_every_batch_and_stay_within_the_budget(tmp_path, shapes):
    generator = np.random.default_rng(1)
    lengths = generator.integers(1, 30, (200, 2)).tolist()
    stream = stream_of(tmp_path / "corpus", lengths, shapes=shapes)
    seen = []
    for k in range(3 * stream.batches_per_epoch):
        batch = stream.batch(k)
        seen.append((*batch["source"].shape, batch["target_input"].shape[1]))
    largest = largest_shapes(stream)
    for rows, source, target in seen:
        assert rows * (source + target) <= largest[0][0] * (largest[0][1] + largest[0][2])
        maps = rows * max(source, target) ** 2
        assert maps <= max(shape[0] * max(shape[1:]) ** 2 for shape in largest)
    # The largest shapes also stay within the budget.
    assert all(rows * max(steps) <= 40 or rows == 1 for rows, *steps in largest)


def test_largest_shapes_cover_long_pairs_and_many_short_pairs(tmp_path):
    """With end tokens, one pair has up to 40 + 40 steps and forty pairs have 2 + 2 steps."""
    stream = stream_of(tmp_path / "corpus", [(39, 39)] + [(1, 1)] * 40)
    assert set(largest_shapes(stream)) == {(1, 40, 40)}
    stream = stream_of(tmp_path / "other", [(39, 9)] + [(1, 1)] * 40)
    assert set(largest_shapes(stream)) == {(20, 2, 2), (1, 40, 10)}


@pytest.mark.slow
@pytest.mark.weekly
def test_rehearsal_changes_no_training_state(tmp_path, monkeypatch):
    """Compares weights, moments, averages and seeds with and without a probe, with dropout."""
    from keras_seq.training import loop, setup
    from keras_seq.training.state import training_arrays

    found = {}
    finish = loop.TrainingLoop._finish

    def keep(self):
        found[name] = training_arrays(self.model)
        return finish(self)

    monkeypatch.setattr(loop.TrainingLoop, "_finish", keep)
    settings = toy_settings(tmp_path, training__max_steps=3, model__dropout=0.3)
    name = "with"
    quiet_train(settings, tmp_path / name)
    monkeypatch.setattr(setup.TrainingSetup, "probe_largest_batches", lambda self: None)
    name = "without"
    quiet_train(settings, tmp_path / name)
    for key, array in found["with"].items():
        np.testing.assert_array_equal(array, found["without"][key], err_msg=key)


def test_rehearsal_reports_out_of_memory_before_the_first_update(tmp_path, monkeypatch):
    """The test raises a `MemoryError`; tests/faults exhausts memory in a real process."""
    from keras_seq.training import setup

    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr(setup, "run_fit", full)
    with pytest.raises(OutOfMemoryError) as error:
        quiet_train(toy_settings(tmp_path, training__max_steps=3), tmp_path / "run")
    assert "a batch of 50 pairs, 6 source and 6 target steps" in str(error.value)
    assert "lower training.batch_tokens (300)" in str(error.value)
    assert error.value.exit_code == 4
