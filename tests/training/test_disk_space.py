"""A training does not start if its disk cannot hold a checkpoint."""

import shutil

import pytest
from training.toy import quiet_train, toy_settings

from keras_seq.text import InputError


@pytest.mark.slow
@pytest.mark.weekly
def test_training_without_space_for_a_checkpoint_is_refused(tmp_path, monkeypatch):
    """The size is compared with that of the files of a checkpoint."""
    usage = shutil.disk_usage(tmp_path)

    def with_free(size):
        monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=size))

    def settings(steps):
        steps = {"training__max_steps": steps, "training__validate_every": 9}
        return toy_settings(tmp_path, **steps, training__ema=0.5)

    quiet_train(settings(1), tmp_path / "run")
    checkpoint = tmp_path / "run" / "checkpoints" / "step-00000001"
    size = sum(path.stat().st_size for path in checkpoint.glob("*.safetensors"))
    # The headers of the files, with the names, are not counted.
    with_free(int(0.7 * size))
    with pytest.raises(InputError, match=r"run: a checkpoint needs \d.\d MB, but the disk has"):
        quiet_train(settings(2), tmp_path / "run")
    # A training that has nothing left to do needs no space.
    quiet_train(settings(1), tmp_path / "run")
    # The space that a killed save has taken is free again.
    leftover = tmp_path / "run" / "checkpoints" / ".tmp-step-00000002-x"
    leftover.mkdir()
    with_free(size)
    quiet_train(settings(2), tmp_path / "run")
    assert not leftover.exists()
