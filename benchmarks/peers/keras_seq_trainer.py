"""keras-seq's training with its own batches, `fit`, and the additions of its presets.

Presets add gradient clipping and a moving average of the weights. The other tools run without them.
"""

import argparse
import os
import pathlib
import sys

import worker

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

from training_speed import Turn

from keras_seq.process.threads import configure_training_threads
from keras_seq.run import Run
from keras_seq.settings import load_settings

# Settings that change a preset to the shape that all tools share.
SHAPES = {
    "transformer": {
        "model.dropout": 0.1,
        "model.attention_dropout": 0.1,
        "model.activation_dropout": 0.1,
    },
    # Like OpenNMT-tf: attention is as wide as the decoder, and the output layer is not tied.
    "rnn": {
        "model.context": "init",
        "model.attention_units": 512,
        "model.tie_output": False,
    },
}


def settings_of(run: Run, shape: str, precision: str):
    """Settings of the run with the given shape and precision."""
    overrides = {**SHAPES[shape], "training.precision": precision, "training.label_smoothing": 0.1}
    if shape == "transformer":
        return load_settings(base=run.settings.to_dict(), overrides=overrides)
    settings = load_settings(preset="rnn-base", overrides=overrides)
    return settings.model_copy(
        update={"tokenizer": run.settings.tokenizer, "data": run.settings.data}
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("run")
    parser.add_argument("--shape", choices=SHAPES, required=True)
    parser.add_argument("--precision", choices=["float32", "bfloat16"], required=True)
    arguments = parser.parse_args()
    configure_training_threads()
    run = Run.open(arguments.run)
    turn = Turn(Run(run.path, settings_of(run, arguments.shape, arguments.precision)))
    done = 0

    def train(count):
        nonlocal done
        _, _, tokens = turn.train(done, done + count)
        done += count
        return tokens

    worker.serve_training(train, "keras-seq", "tensorflow")


if __name__ == "__main__":
    main()
