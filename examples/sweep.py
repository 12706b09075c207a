"""Searches settings of a model with Optuna.

    python -m pip install optuna
    python examples/sweep.py [--trials 10] [--steps 300]

Each trial trains a model on dates for some hundred updates. Optuna proposes the learning rate, the
dropout and the width, and stops trials that are worse than most others at the same update. The
best settings can be given to `keras-seq train` by `--set`.
"""

import argparse
import tempfile

import keras
import optuna

import keras_seq
from keras_seq.text import date_pairs


class Pruning(keras.callbacks.Callback):
    """Reports each validation to Optuna, and ends a trial that is not worth its time."""

    def __init__(self, trial: optuna.Trial) -> None:
        super().__init__()
        self.trial = trial
        self.validations = 0

    def on_test_end(self, logs: dict | None = None) -> None:
        self.validations += 1
        self.trial.report(logs["loss"], self.validations)
        if self.trial.should_prune():
            raise optuna.TrialPruned


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--pairs", type=int, default=3000)
    arguments = parser.parse_args()
    pairs = date_pairs(arguments.pairs)
    held_out = arguments.pairs // 20

    def objective(trial: optuna.Trial) -> float:
        settings = {
            "training.learning_rate": trial.suggest_float(
                "training.learning_rate", 5e-4, 1e-2, log=True
            ),
            "model.dropout": trial.suggest_float("model.dropout", 0.0, 0.3),
            "model.units": trial.suggest_categorical("model.units", [32, 64]),
        }
        with tempfile.TemporaryDirectory() as folder:
            translator = keras_seq.Translator.fit(
                pairs[held_out:],
                valid=pairs[:held_out],
                directory=folder,
                preset="transformer-symbols",
                settings={
                    **settings,
                    "model.members": 1,
                    "training.max_steps": arguments.steps,
                    "training.validate_every": max(1, arguments.steps // 5),
                    "training.patience": 0,
                    "training.sample_count": 0,
                },
                callbacks=[Pruning(trial)],
                notice=lambda line: None,
            )
            return min(translator.history.validation["loss"])

    study = optuna.create_study(pruner=optuna.pruners.MedianPruner(n_startup_trials=3))
    study.optimize(objective, n_trials=arguments.trials)
    print(f"lowest validation loss {study.best_value:.3f}")
    print(" ".join(f"--set {name}={value}" for name, value in study.best_params.items()))


if __name__ == "__main__":
    main()
