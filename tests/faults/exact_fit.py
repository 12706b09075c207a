"""Script with a user-written `fit` that can be killed and restarted: FOLDER [PARTS SECONDS].

The script kills itself SECONDS after file operation number PARTS of its saves begins.
"""

import os
import signal
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np

from keras_seq.process.optional_packages import without_optional_packages

with without_optional_packages():
    # Otherwise Keras imports packages that this script does not use, which takes seconds.
    import keras

import keras_seq.storage.checkpoints.directory as checkpoint_directory
import keras_seq.storage.checkpoints.store as checkpoints
from keras_seq import callbacks, schedules

STEPS_PER_EPOCH, EPOCHS = 7, 8


def batch(step):
    """Returns random inputs and a linear function of them as targets, determined by `step`."""
    generator = np.random.default_rng(step)
    inputs = generator.normal(size=(16, 6)).astype("float32")
    return inputs, inputs @ np.arange(6, dtype="float32")[:, None] + 0.1


class Gated(keras.layers.Layer):
    """Multiplies the input by 1 + a gate that a schedule sets."""

    def __init__(self):
        super().__init__()
        self.gate = self.add_weight(name="gate", shape=(), trainable=False)

    def call(self, inputs):
        return inputs * (1 + self.gate)


class Losses(keras.callbacks.Callback):
    """Records the loss of each epoch as state that the checkpoint carries over."""

    def __init__(self):
        super().__init__()
        self.state = {"losses": []}

    def restore(self, state):
        self.state = state

    def on_epoch_end(self, epoch, logs=None):
        if epoch == len(self.state["losses"]):
            self.state["losses"].append([float(logs["loss"]), float(logs["mae"])])


def say(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def kill_after(parts, seconds):
    begun = 0

    def slowly(call):
        def slow(*arguments):
            nonlocal begun
            begun += 1
            if begun == parts:
                threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()
            # Leave time for the kill to happen inside a save.
            time.sleep(0.01)
            return call(*arguments)

        return slow

    for module, names in (
        (checkpoint_directory, ("write_tensors", "write_file")),
        (checkpoints, ("write_file", "remove_temporaries")),
    ):
        for name in names:
            setattr(module, name, slowly(getattr(module, name)))


def main(folder):
    model = keras.Sequential(
        [
            keras.Input((6,)),
            keras.layers.Dense(16, activation="relu"),
            keras.layers.Dropout(0.3),
            Gated(),
            keras.layers.Dense(1),
        ]
    )
    model.compile(
        keras.optimizers.Adam(0.05, use_ema=True, ema_momentum=0.9), "mse", metrics=["mae"]
    )
    store = checkpoints.CheckpointStore(folder / "checkpoints", keep=5, notice=say)
    checkpoint = callbacks.ExactCheckpoint(store, every=2, steps_per_epoch=STEPS_PER_EPOCH)
    say(f"restored {checkpoint.restore(model)}")
    validation = callbacks.Validation(
        lambda step: {"bleu": float(-np.abs(keras.ops.convert_to_numpy(model.weights[0])).sum())},
        every=3,
        monitor="bleu",
        initial_step=checkpoint.step,
    )
    # No epoch improves by `min_delta`, so the learning rate falls repeatedly.
    plateau = keras.callbacks.ReduceLROnPlateau("loss", patience=2, factor=0.5, min_delta=100.0)
    losses = checkpoint.carry("losses", Losses())
    checkpoint.carry("validation", validation)
    average = checkpoint.carry("average", callbacks.AverageWeights(3, every=5))
    checkpoint.carry("plateau", plateau, ("best", "wait", "cooldown_counter"))
    gate = callbacks.FollowSchedule(
        model.layers[2].gate, schedules.linear_annealing(40), initial_step=checkpoint.step
    )
    model.fit(
        checkpoint.remaining(batch),
        initial_epoch=checkpoint.epoch,
        epochs=EPOCHS,
        steps_per_epoch=STEPS_PER_EPOCH,
        shuffle=False,
        verbose=0,
        callbacks=[gate, validation, plateau, losses, average, checkpoint],
    )
    variables = [*model.variables, *model.optimizer.variables]
    arrays = {f"{i}": keras.ops.convert_to_numpy(v.value) for i, v in enumerate(variables)}
    arrays["losses"] = np.array(losses.state["losses"])
    arrays["best"] = np.array([validation.best, validation.best_step, validation.step])
    arrays["averaged"] = np.array(average.kept)
    arrays["plateau"] = np.array([plateau.best, plateau.wait])
    np.savez(folder / "end.tmp.npz", **arrays)
    os.replace(folder / "end.tmp.npz", folder / "end.npz")


if __name__ == "__main__":
    warnings.simplefilter("error", UserWarning)
    keras.utils.set_random_seed(1)
    if len(sys.argv) > 2:
        kill_after(int(sys.argv[2]), float(sys.argv[3]))
    main(Path(sys.argv[1]))
