"""Frozen weights stay bit-identical in training, and the other weights are trained."""

import numpy as np
import pytest
from training.toy import quiet_train, toy_settings

from keras_seq.models import Transformer
from keras_seq.run import Run
from keras_seq.run.models import build_run_model, weight_arrays
from keras_seq.text import InputError
from keras_seq.training import loop
from keras_seq.training.optimizer import freeze


@pytest.mark.slow
def test_frozen_weights_stay_and_the_others_move(tmp_path, monkeypatch):
    begun = {}
    train = loop.TrainingLoop._train

    def note(self):
        begun.update(weight_arrays(self.model))
        train(self)

    monkeypatch.setattr(loop.TrainingLoop, "_train", note)
    patterns = ["encoder_*", "*/feed_forward/*"]
    settings = toy_settings(tmp_path, training__max_steps=3, training__freeze=patterns)
    quiet_train(settings, tmp_path / "run")
    run = Run.open(tmp_path / "run")
    model = build_run_model(run)
    from keras_seq.run.models import weight_shapes

    after = run.load_weights(weight_shapes(model), "latest")
    for name, array in after.items():
        same = np.array_equal(array, begun[name])
        assert same == (name.startswith("encoder_") or "/feed_forward/" in name), name


def small():
    return Transformer(20, 20, 1, 1, units=8, feedforward_units=16, num_heads=2)


def test_freeze_returns_frozen_names_and_leaves_the_rest_trainable():
    model = small()
    frozen = freeze(model, "encoder_block_0/*")
    assert frozen and all(name.startswith("encoder_block_0/") for name in frozen)
    assert len(model.trainable_weights) == len(model.weights) - len(frozen)
    assert freeze(small(), None) == []


def test_freeze_rejects_patterns_that_match_nothing_or_everything():
    with pytest.raises(InputError, match=r"training.freeze: received 'encodr\*'.*encoder_block_0"):
        freeze(small(), ["encodr*"])
    with pytest.raises(InputError, match="nothing is left to train"):
        freeze(small(), "*")
