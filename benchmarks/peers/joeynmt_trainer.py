"""JoeyNMT's `TrainManager` with its own data pipeline, run in its own environment.

The size of a batch includes padding, and pairs are not sorted by length.
"""

import argparse
import itertools
import pathlib
import tempfile

import joeynmt_shapes
import torch
import worker
from joeynmt.config import parse_global_args
from joeynmt.prediction import prepare
from joeynmt.training import TrainManager

SHAPES = {
    "transformer": lambda: joeynmt_shapes.transformer(0.1),
    "rnn": lambda: joeynmt_shapes.rnn(0.2),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("corpus", type=pathlib.Path)
    parser.add_argument("--shape", choices=SHAPES, required=True)
    parser.add_argument("--threads", type=int, required=True)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as folder:
        trainer, data = manager(arguments.corpus, SHAPES[arguments.shape](), pathlib.Path(folder))
        batches = endless(data, trainer)

        def train(count):
            tokens = 0
            # The same steps as in `train_and_validate`, which cannot stop after some batches.
            for batch in itertools.islice(batches, count):
                trainer._train_step(batch)
                trainer.optimizer.step()
                trainer.model.zero_grad()
                tokens += int(batch.ntokens)
            return tokens

        worker.serve_training(train, "joeynmt", "torch")


def manager(corpus: pathlib.Path, model: dict, folder: pathlib.Path):
    """Returns the trainer and its training data."""
    words = folder / "words.txt"
    special = ["<unk>", "<pad>", "<s>", "</s>"]
    entries = [*special, *(f"w{i}" for i in range(4, worker.VOCABULARY))]
    words.write_text("".join(f"{word}\n" for word in entries))
    side = {"level": "word", "voc_file": str(words), "max_length": 200}
    # JoeyNMT recognizes the two sides by the suffix of the file name.
    data = {
        "train": str(corpus / "joeynmt"),
        "src": {**side, "lang": "source"},
        "trg": {**side, "lang": "target"},
        "dataset_type": "plain",
    }
    for name in ("source", "target"):
        link = corpus / f"joeynmt.{name}"
        if not link.exists():
            link.write_bytes((corpus / f"{name}.txt").read_bytes())
    training = {
        "optimizer": "adam",
        "adam_betas": [0.9, 0.98],
        "learning_rate": 1e-4,
        "scheduling": "decaying",
        "batch_size": 4096,
        "batch_type": "token",
        "normalization": "tokens",
        "loss": "crossentropy",
        "label_smoothing": 0.1,
        "use_cuda": False,
    }
    settings = parse_global_args(
        {
            "name": "peer",
            "model_dir": str(folder),
            "use_cuda": False,
            "training": training,
            "testing": {},
            "data": data,
            "model": model,
        }
    )
    made, pairs, _, _ = prepare(settings, rank=0, mode="train")
    trainer = TrainManager(
        rank=0,
        model=made,
        model_dir=folder,
        device=settings.device,
        autocast=settings.autocast,
        seed=1,
        train_args=settings.train,
        dev_args=settings.test,
    )
    return trainer, pairs


def endless(data, trainer):
    """Yields the batches of one epoch after another, without end."""
    for seed in itertools.count(1):
        yield from data.make_iter(
            batch_size=trainer.args.batch_size,
            batch_type=trainer.args.batch_type,
            seed=seed,
            shuffle=True,
            eos_index=trainer.model.eos_index,
            pad_index=trainer.model.pad_index,
        )


if __name__ == "__main__":
    main()
