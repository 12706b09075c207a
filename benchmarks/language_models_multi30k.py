"""Compares language models and n-grams on the English captions of Multi30k.

    python benchmarks/language_models_multi30k.py --output FOLDER --steps 300

All models share one subword vocabulary and train for the same number of updates. The output is the
perplexity per token and per word. The perplexity per word does not depend on the subwords: it
divides the same log-probability by the number of words plus one end of line per caption. The n-gram
baseline uses the order with the lowest validation perplexity.
"""

from __future__ import annotations

import argparse
import gzip
import math
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import machine
from kneser_ney import KneserNey

import keras_seq
from keras_seq.run import Run
from keras_seq.run.models import load_models
from keras_seq.text import BOS_ID, EOS_ID, PAD_ID, Tokenizer

FILES = {"train": "train", "valid": "val", "test": "test_2016_flickr"}
PRESETS = ["lm-gru", "lm-lstm", "lm-transformer"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", type=Path, required=True, help="folder for text and runs")
    parser.add_argument("--presets", nargs="*", default=PRESETS)
    parser.add_argument("--steps", type=int, default=300, help="updates of each")
    parser.add_argument("--batch-tokens", type=int, default=2048)
    parser.add_argument("--warmup-steps", type=int, default=100)
    # Averages about 50 updates; a longer average lags behind in a training this short.
    parser.add_argument("--ema", type=float, default=0.98)
    parser.add_argument("--precision", default="bfloat16")
    parser.add_argument("--orders", type=int, nargs="+", default=[1, 2, 3, 4, 5])
    options = parser.parse_args()
    print(machine.describe(), flush=True)
    options.output.mkdir(parents=True, exist_ok=True)
    text = {name: unpacked(file, options.output / f"{name}.en") for name, file in FILES.items()}
    for preset in options.presets:
        run = Run.open(trained(preset, options))
        if preset == options.presets[0]:
            vocabulary = run.target_tokenizer
            counted(vocabulary, text, options.orders)
        if run.target_tokenizer.to_bytes() != vocabulary.to_bytes():
            raise SystemExit(f"{preset}: has another vocabulary, so tokens cannot be compared")
        scorer = keras_seq.LikelihoodScorer.load(run.path)
        for name in ("valid", "test"):
            found = scorer([""] * len(text[name]), text[name])
            log_probability = math.fsum(one.total for one in found)
            tokens = sum(len(one.tokens) for one in found)
            report(preset, name, log_probability, tokens, text[name])


def unpacked(file: str, path: Path) -> list[str]:
    """Reads lines of a Multi30k file and writes them as plain text for the training."""
    with gzip.open(machine.multi30k() / f"{file}.en.gz", "rt", encoding="utf-8") as stream:
        lines = [line.rstrip("\n") for line in stream]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return lines


def trained(preset: str, options: argparse.Namespace) -> Path:
    """Trains a run and returns its directory."""
    settings = keras_seq.load_settings(
        preset=preset,
        overrides={
            "data.text": str(options.output / "train.en"),
            "data.valid_text": str(options.output / "valid.en"),
            "training.max_steps": options.steps,
            "training.validate_every": max(1, options.steps // 2),
            "training.checkpoint_every": max(1, options.steps // 2),
            "training.batch_tokens": options.batch_tokens,
            "training.warmup_steps": options.warmup_steps,
            "training.ema": options.ema,
            "training.precision": options.precision,
            "training.sample_count": 0,
        },
    )
    folder: Path = options.output / preset
    if folder.exists():
        shutil.rmtree(folder)
    wall, processor = time.perf_counter(), time.process_time()
    keras_seq.train(settings, folder)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    parameters = load_models(Run.open(folder), (), "best", None).count_params()
    print(
        f"{preset}: {parameters:,} parameters, {options.steps:,} updates in {processor:.0f} s of "
        f"processor time, {wall:.0f} s by the clock",
        flush=True,
    )
    return folder


def counted(tokenizer: Tokenizer, text: dict[str, list[str]], orders: Sequence[int]) -> None:
    """Prints the perplexity of n-gram models on the same tokens."""
    rows = {
        name: [[*ids, EOS_ID] for ids in tokenizer.encode(lines)] for name, lines in text.items()
    }
    possible = [
        token for token in range(tokenizer.vocabulary_size) if token not in (PAD_ID, BOS_ID)
    ]
    models = [KneserNey(rows["train"], order, len(possible)) for order in orders]
    for model in models:
        model.check(rows["valid"][:1], possible)
    best = min(models, key=lambda model: -math.fsum(map(model.log_probability, rows["valid"])))
    print(f"{tokenizer.vocabulary_size:,} subwords; {sum(map(len, rows['train'])):,} to train on")
    for model in [models[0], best]:
        for name in ("valid", "test"):
            log_probability = math.fsum(map(model.log_probability, rows[name]))
            tokens = sum(map(len, rows[name]))
            report(f"{model.order}-gram", name, log_probability, tokens, text[name])


def report(what: str, name: str, log_probability: float, tokens: int, lines: Sequence[str]) -> None:
    words = sum(len(line.split()) + 1 for line in lines)
    print(
        f"{what}, {name}: perplexity of a token {math.exp(-log_probability / tokens):.2f}, "
        f"of a word {math.exp(-log_probability / words):.2f} ({tokens:,} tokens, {words:,} words)",
        flush=True,
    )


if __name__ == "__main__":
    main()
