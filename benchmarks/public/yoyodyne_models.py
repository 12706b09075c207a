"""Models of yoyodyne with the settings of its published results.

    python yoyodyne_models.py KIND WORK SEED ARCHITECTURE MINUTES

Batches of 100 pairs, Adam with a rate of 0.01, label smoothing 0.1, dropout 0.2, at most 50 epochs,
early stopping after 10 epochs without a lower validation loss, the checkpoint of the best
validation accuracy, greedy decoding. Features have a separate encoder. The training stops after the
epoch in which it has used MINUTES of processor time.
"""

import json
import pathlib
import shutil
import sys
from typing import Any

import peer_files
from yoyodyne.cli import main as yoyodyne

MODULES = "yoyodyne.models.modules"
SIZES = {"dropout": 0.2, "embedding_size": 64}


def node(path: str, **arguments: Any) -> dict[str, Any]:
    return {"class_path": path, "init_args": arguments}


def model(architecture: str, has_features: bool) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "decoder_dropout": 0.2,
        "decoder_hidden_size": 256,
        "embedding_size": 64,
        "label_smoothing": 0.1,
        "optimizer": node("torch.optim.Adam", lr=0.01),
    }
    if "Transformer" in architecture:
        encoder = node(f"{MODULES}.RotaryTransformerEncoder", hidden_size=256, layers=4, **SIZES)
        arguments["decoder_layers"] = 4
        warmup = node("yoyodyne.schedulers.WarmupInverseSquareRoot", warmup_epochs=10)
        arguments["scheduler"] = warmup
    else:
        encoder = node(f"{MODULES}.LSTMEncoder", hidden_size=256, **SIZES)
    arguments["source_encoder"] = encoder
    if has_features:
        features = node(f"{MODULES}.LinearEncoder", output_size=64, **SIZES)
        arguments["features_encoder"] = features
    return node(f"yoyodyne.models.{architecture}Model", **arguments)


def data(train: list[list[str]], has_features: bool) -> dict[str, Any]:
    """Strings are symbols between spaces if most of them have spaces, otherwise characters."""
    separators = {
        f"{side}_sep": " " if 2 * sum(" " in row[column] for row in train) > len(train) else ""
        for side, column in (("source", 0), ("target", 1))
    }
    features = {"features_col": 3, "features_sep": ";"} if has_features else {}
    lengths = dict.fromkeys(("max_source_length", "max_features_length"), 128)
    return {"batch_size": 100, **separators, **features, **lengths, "max_target_length": 128}


def write(path: pathlib.Path, values: dict[str, Any]) -> str:
    """Writes a configuration; JSON is YAML."""
    path.write_text(json.dumps(values), "utf-8")
    return str(path)


def main() -> None:
    work, seed, architecture, minutes = pathlib.Path(sys.argv[2]), *sys.argv[3:]
    # Of a training that was interrupted.
    shutil.rmtree(work / "models", ignore_errors=True)
    train = peer_files.read(work, "train")
    has_features = len(train[0]) > 2
    files = [
        f"--data={write(work / 'data.yaml', data(train, has_features))}",
        f"--data.model_dir={work / 'models'}",
        f"--model={write(work / 'model.yaml', model(architecture, has_features))}",
    ]
    stop = node("lightning.pytorch.callbacks.EarlyStopping", monitor="val_loss", patience=10)
    limit = node("processor_limit.ProcessorLimit", minutes=float(minutes))
    trainer = {
        "callbacks": [stop, limit],
        "gradient_clip_val": 3,
        "max_epochs": 50,
        "accelerator": "cpu",
        "enable_progress_bar": False,
        "logger": [node("lightning.pytorch.loggers.CSVLogger", save_dir=str(work / "models"))],
    }
    best = {"filename": "best", "mode": "max", "monitor": "val_accuracy"}
    yoyodyne.python_interface(
        [
            "fit",
            f"--checkpoint={write(work / 'checkpoint.yaml', best)}",
            *files,
            f"--data.train={work / 'train.tsv'}",
            f"--data.val={work / 'dev.tsv'}",
            f"--seed_everything={seed}",
            f"--trainer={write(work / 'trainer.yaml', trainer)}",
        ]
    )
    peer_files.write_seconds(work)
    [checkpoint] = (work / "models").rglob("best.ckpt")
    for part in peer_files.PREDICTED:
        yoyodyne.python_interface(
            [
                "predict",
                f"--ckpt_path={checkpoint}",
                *files,
                f"--data.predict={work / f'{part}.tsv'}",
                f"--prediction.path={work / f'predicted-{part}.txt'}",
            ]
        )


main()
